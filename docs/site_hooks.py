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
KEPT = ROOT / "results" / "reproduction"
COLUMNS = ["quantity", "paper", "provenance", "ours", "verdict"]
AFTER = {
    "after_process": "a process dies",
    "after_node": "a node is lost",
    "after_two_nodes": "two are",
}
SCHEMA = ROOT / "scenarios" / "scenario.schema.json"
OUTSIDE = "repository/"  # where they stand in the site
MOVED = {
    "README.md": "README.md",
    "docs/README.md": "documentation.md",
}  # the home page is the first
READ_AS = {place: path for path, place in MOVED.items()}
DPI, REM_PX = 150, 20  # of figures; a unit of the site on most screens, in pixels of 1 in / 96
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
NOT_SHOWN = re.compile(
    r"^# .*?\n|^\*\*Commands.*?(?=^## )", re.DOTALL | re.MULTILINE
)  # of commands
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
    for path, place in MOVED.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    linking = {*MOVED.values(), "reference/studies.md"}  # of what is made here
    pages = files.documentation_pages()
    seen = [one for one in pages if not one.generated_by or one.src_uri in linking]
    waiting = [(_path(one.src_uri), one.content_string) for one in seen]
    while waiting:
        waiting += _add_linked(*waiting.pop(), files, config)
    return files


def _add_linked(page: str, text: str, files: Files, config: Any) -> list[tuple[str, str]]:
    """Add the files that a page links to; what of them has links too."""
    added = []
    for _, link, _ in LINK.findall(text):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        place = _place(path)
        is_new = place.startswith(OUTSIDE) and not files.get_file_from_path(place)
        if is_new and (ROOT / path).is_file():  # of another one MkDocs says that it is lost
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
            if path.endswith(".md"):
                added.append((path, (ROOT / path).read_text("utf-8")))
    return added


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
    found = found[["system", "what it does", "needs", *AFTER]].rename(columns=AFTER)
    table = raw_table(list(found), found.itertuples(index=False))
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
            parts += [one.title, raw_table(one.headings, one.rows)]
        parts += summary.notes
    return "\n\n".join(parts)


def keys_of_scenario() -> str:
    """A table of keys for each section of the JSON Schema."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    parts = [
        "# Keys of a scenario",
        "From `cprsim validate --schema`. Quantities are texts with a unit: `28 h`.",
        _table(schema),
    ]
    for name, section in sorted(schema["$defs"].items()):
        parts += [f"## {name}", _plain(section.get("description", "")), _table(section)]
    return "\n\n".join(parts)


def _table(section: dict[str, Any]) -> str:
    rows = ["| key | form | default | meaning |", "|---|---|---|---|"]
    for key, of in section.get("properties", {}).items():
        given = "needed" if key in section.get("required", ()) else of.get("default")
        default = "" if given in (None, "", [], {}) else f"`{given}`"
        words = _plain(of.get("description", ""))
        rows.append(f"| `{key}` | {' or '.join(dict.fromkeys(_forms(of)))} | {default} | {words} |")
    return "\n".join(rows) if len(rows) > 2 else ""


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


def _plain(text: str) -> str:
    """Words of the code as one paragraph of Markdown: only what stands in backticks is code."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    escaped = (re.sub(r"([\\*_\[\]<>|])", r"\\\1", one) for one in pieces)
    return "".join(
        was if was.startswith("`") else one for was, one in zip(pieces, escaped, strict=True)
    )
