"""What MkDocs is told beside mkdocs.yml: commands, the keys of a scenario, and files outside docs/.

Documents link to files of the repository, as readers of the repository need it. In the site such
files stand below ``repository/``, Markdown as a page and everything else as it is.
"""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import cprsim
from cprsim.commands.reproduce.study import read_reproduced
from cprsim.pages.markdown import raw_table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
KEPT = ROOT / "results" / "reproduction"
COLUMNS = ["quantity", "paper", "provenance", "ours", "verdict"]
AFTER = ["after_process", "after_node", "after_two_nodes"]  # what a system survives
SCHEMA = ROOT / "scenarios" / "scenario.schema.json"
OUTSIDE = "repository/"  # where they stand in the site
MOVED = {
    "README.md": "README.md",
    "docs/README.md": "documentation.md",
}  # the home page is the first
READ_AS = {place: path for path, place in MOVED.items()}
DPI, REM_PX = 150, 20  # of figures; a unit of the site on most screens, in pixels of 1 in / 96
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
NOT_SHOWN = re.compile(r"(?ms)^# .*?\n|^\*\*Commands.*?(?=^## )")  # of commands
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the reference, and what documents link to outside of docs/."""
    typer = [sys.executable, "-m", "typer", "cprsim.cli.app", "utils", "docs", "--name", "cprsim"]
    commands = subprocess.run(typer, capture_output=True, text=True, check=True).stdout
    made = {
        "cli": f"# Commands\n\n{NOT_SHOWN.sub('', commands)}",
        "scenario": keys_of_scenario(),
        "systems": table_of_systems(),
        "studies": kept_studies(),
    }
    for name, text in made.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    files.remove(files.src_uris["README.md"])
    outside = set(MOVED)
    for page in [*MOVED, *(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))]:
        _add_linked(page, (ROOT / page).read_text("utf-8"), outside)
    _add_linked("docs/reference/studies.md", made["studies"], outside)
    for path in sorted(outside):
        files.append(File.generated(config, _place(path), abs_src_path=str(ROOT / path)))
    return files


def _add_linked(page: str, text: str, outside: set[str]) -> None:
    """Add the files outside of docs/ to which a page links, and those to which they link."""
    for _, link, _ in LINK.findall(text):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        is_new = path not in outside and not path.startswith("docs/")
        if is_new and (ROOT / path).is_file():  # of another one MkDocs says that it is lost
            outside.add(path)
            if path.endswith(".md"):
                _add_linked(path, (ROOT / path).read_text("utf-8"), outside)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as the site needs them, figures with their width, and nothing of cog."""
    here = page.file.src_uri
    if here.startswith(("adr/", OUTSIDE)):  # for developers: a search shows the guides first
        page.meta["search"] = {"boost": 0.2}
    folder = posixpath.dirname(_path(here))

    def moved(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[2]))
        target = posixpath.relpath(_place(path), posixpath.dirname(here))
        return f"{link[1]}{target}{link[3]}{_width(ROOT / path)}"

    return LINK.sub(moved, COMMENT.sub("", markdown))


def _place(path: str) -> str:
    """Where a file of the repository stands in the site."""
    inside = path.removeprefix("docs/") if path.startswith("docs/") else f"{OUTSIDE}{path}"
    return MOVED.get(path, inside)


def _path(place: str) -> str:
    """The file of the repository that stands there in the site."""
    inside = place.removeprefix(OUTSIDE) if place.startswith(OUTSIDE) else f"docs/{place}"
    return READ_AS.get(place, inside)


def _width(path: Path) -> str:
    """The width of a figure as the style sheet takes it, so that all have letters of one size."""
    if path.suffix != ".png" or not path.is_file():
        return ""
    pixels = int.from_bytes(path.read_bytes()[16:20])
    return f'{{ style="--width: {pixels / DPI * 96 / REM_PX:.1f}rem" }}'


def table_of_systems() -> str:
    """A row per recovery system: what it does, what it needs, and what it survives."""
    found = cprsim.systems().frames["systems"]
    cited = (" (" + found["source"] + ")").where(found["source"] != "", "")
    found["what it does"] = found["summary"] + cited
    found = found[["system", "what it does", "needs", *AFTER]]
    headings = [str(name).replace("_", " ") for name in found]
    table = raw_table(headings, found.itertuples(index=False))
    return f"# All recovery systems\n\nFrom `cprsim systems`, for its made-up job.\n\n{table}\n"


def kept_studies() -> str:
    """All comparisons, figures, tables and remarks of the kept full run of `cprsim reproduce`."""
    parts = ["# All results of papers", "From `cprsim reproduce --keep`."]
    for name in cprsim.reproduce(listed=True).frames["studies"]["name"]:
        summary = read_reproduced(KEPT / name)
        claims = cprsim.read(KEPT / name).frames["claims"][COLUMNS]
        parts += [f"## {summary.title}", f"`cprsim reproduce {name}`. {summary.question}"]
        parts += [raw_table(COLUMNS, claims.itertuples(index=False))]
        for figure in sorted(summary.path.glob("figure*.png")):
            parts += [f"![{summary.title}](../../{figure.relative_to(ROOT).as_posix()})"]
        for one in summary.listings:
            parts += [one["title"], raw_table(one["headings"], one["rows"])]
        parts += summary.notes
    return "\n\n".join(parts)


def keys_of_scenario() -> str:
    """A table of keys for each section of the JSON Schema."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    about = "From `cprsim validate --schema`. Quantities are texts with a unit: `28 h`."
    parts = ["# Keys of a scenario", about, _table(schema)]
    for name, section in sorted(schema["$defs"].items()):
        parts += [f"## {name}", section.get("description", ""), _table(section)]
    return "\n\n".join(parts)


def _table(section: dict[str, Any]) -> str:
    rows = []
    for key, of in section.get("properties", {}).items():
        given = "needed" if key in section.get("required", ()) else of.get("default")
        default = "" if given in (None, "", [], {}) else f"`{given}`"
        words = " ".join(of.get("description", "").split())
        rows.append([f"`{key}`", " or ".join(dict.fromkeys(_forms(of))), default, words])
    return raw_table(["key", "form", "default", "meaning"], rows) if rows else ""


def _forms(node: dict[str, Any]) -> list[str]:
    """Links to sections, words, types."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return [f"[{name}](#{name.lower()})"]
    if words := node.get("enum", [node["const"]] if "const" in node else []):
        return [", ".join(f"`{one}`" for one in words)]
    if "items" in node:
        return [f"list of {' or '.join(_forms(node['items']))}"]
    types = node.get("type", [])
    found = [one for one in ([types] if isinstance(types, str) else types) if one != "null"]
    return found + [
        form for key in ("anyOf", "oneOf") for of in node.get(key, ()) for form in _forms(of)
    ]
