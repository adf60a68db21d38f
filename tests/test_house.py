"""What holds for the repository as a whole, whatever the program does."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import cprsim

ROOT = Path(__file__).parent.parent
LARGEST_BYTES = 600_000

# Written in pieces, so that this file is no example of what it looks for.
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(?:" + "|".join(["home", "root", "Users", "work", "opt", "mnt"]) + r")/\w"
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
HEADING = re.compile(r"^#+\s+(.+)$", re.MULTILINE)
DIGEST = re.compile(r"results/[\w-]+-[0-9a-f]{10}\b")  # moves with every change of the code
COG = re.compile(r"<!-- \[\[\[cog.*?\[\[\[end\]\]\]", re.DOTALL)  # renewed and checked


@cache
def tracked() -> tuple[Path, ...]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return tuple(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


def texts(*suffixes: str) -> list[tuple[Path, str]]:
    return [(path, path.read_text("utf-8")) for path in tracked() if path.suffix in suffixes]


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands_of(markdown: str, program: str) -> set[str]:
    """First words after the program's name, at the beginning of a piece or a line of code."""
    code = "\n".join(CODE.findall(markdown))
    return set(re.findall(rf"^(?:`|\$ )?{program} ([a-z][a-z-]*)", code, re.MULTILINE))


def anchors(markdown: str) -> set[str]:
    """Names of the headings as links to them are written: lower case, dashes for spaces."""
    titles = HEADING.findall(re.sub(r"```.*?```", "", markdown, flags=re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


# --------------------------------------------------------------------------- what is in it


def test_no_file_is_large() -> None:
    large = {str(path): path.stat().st_size for path in tracked()}
    assert not {name: size for name, size in large.items() if size > LARGEST_BYTES}


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path, text in texts(".py", ".md", ".toml", ".yaml", ".txt", ".ipynb", "")
        for line in text.splitlines()
        if MACHINE_PATHS.search(line)
    ]
    assert found == []


def test_a_class_name_stands_once_in_the_package() -> None:
    """But for `cprsim.Scenario`, which has the name of the record that it wraps."""
    classes = Counter(
        node.name
        for path, text in texts(".py")
        if path.is_relative_to(ROOT / "cprsim")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    )
    assert len(classes) > 300
    assert {name for name, n in classes.items() if n > 1} == {"Scenario"}


# --------------------------------------------------------------------------- the documents


def test_every_link_of_the_documents_leads_somewhere() -> None:
    lost = []
    for path, text in texts(".md"):
        for link in LINK.findall(CODE.sub("", text)):
            target, _, anchor = link.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            there = path if not target else path.parent / target
            if not there.exists():
                lost.append(f"{path.relative_to(ROOT)}: {link}")
            elif anchor and anchor not in anchors(there.read_text("utf-8")):
                lost.append(f"{path.relative_to(ROOT)}: no heading #{anchor} in {target or 'it'}")
    assert lost == []


def test_no_document_names_a_folder_by_a_digest_that_the_next_change_moves() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert [path for path in pages if DIGEST.search(COG.sub("", path.read_text("utf-8")))] == []


def test_links_lead_from_the_readme_to_every_document() -> None:
    found, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        here = waiting.pop().resolve()
        if here not in found and here.suffix == ".md":
            found.add(here)
            targets = (link.partition("#")[0] for link in LINK.findall(here.read_text("utf-8")))
            waiting += [here.parent / one for one in targets if one and "://" not in one]
    assert {path for path in (ROOT / "docs").rglob("*.md") if path.resolve() not in found} == set()


# --------------------------------------------------------------------------- the commands


def test_the_documents_name_the_commands_that_the_program_has() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "cprsim", "--help"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    there = set(re.findall(r"^  ([a-z][a-z-]+) ", shown.partition("Commands:")[2], re.MULTILINE))
    assert "run" in there
    pages = [page("README.md"), *(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))]
    assert set().union(*(commands_of(text, "cprsim") for text in pages)) == there


def test_the_makefile_has_every_target_that_the_documents_name() -> None:
    targets = re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE)
    documents = page("README.md") + page("CONTRIBUTING.md")
    named = commands_of(documents, "make")
    assert {"demo", "test", "check"} <= named
    assert named <= set(targets)


# --------------------------------------------------------------------------- the set-up


def test_every_dependency_is_pinned_at_a_version_that_it_allows() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    wanted = map(
        Requirement,
        project["dependencies"] + extras["dev"] + extras["notebooks"] + extras["site"],
    )
    lines = [line.split("==") for line in page("constraints.txt").splitlines() if "==" in line]
    pins = {canonicalize_name(name): version for name, version in lines}
    assert "torch" not in pins
    pinned_at = {one: pins.get(canonicalize_name(one.name)) for one in wanted}
    assert [one for one, pin in pinned_at.items() if not pin or pin not in one.specifier] == []


def test_files_and_tests_that_the_documents_name_are_there() -> None:
    text = page("docs/architecture.md") + page("docs/trust.md")
    named = set(re.findall(r"\b(?:[\w-]+/)+[\w-]+\.(?:py|md|yaml)\b", text))
    assert len(named) > 60
    known = {path.relative_to(ROOT).as_posix() for path in tracked()}
    assert [one for one in named if not {one, f"cprsim/{one}", f"docs/{one}"} & known] == []
    for name, test in re.findall(r"(tests/[\w/]+\.py) -k (\w+)", text):
        assert test in page(name), f"{name} has no {test}"


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load(page("CITATION.cff"))
    assert citation["version"] == cprsim.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == "Apache-2.0"


def test_github_runs_the_stages_of_ci_with_the_oldest_and_the_newest_python() -> None:
    jobs = yaml.safe_load(page(".github/workflows/ci.yml"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    script = page(".ci/run")
    stages = re.findall(r"^(?:make|\.ci/stage) (.*)$", script, re.MULTILINE)
    assert stages
    run = "\n".join(step.get("run", "") for step in steps).splitlines()
    assert {f"make {stage}" for stage in stages} <= {*run}
    metadata = tomllib.loads(page("pyproject.toml"))["project"]
    named = [line.rpartition(" ")[2] for line in metadata["classifiers"] if " 3." in line]
    for job in ("wheel", "start"):
        tried = jobs[job]["strategy"]["matrix"]["python"]
        assert [tried[0], tried[-1]] == [named[0], named[-1]]
