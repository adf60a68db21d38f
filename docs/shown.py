"""What a command prints or a kept result lists, as a block of a document; called by cog."""

from __future__ import annotations

import json
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from textwrap import dedent, fill

from cprsim.present.markdown import raw_table

WIDTH = 116  # characters: no table is wider, sentences are wrapped as on a terminal


def shown(command: str, until: str = "\0", folder: Path | None = None) -> str:
    """The command and what it prints before `until`, as a fenced block.

    Raises CalledProcessError where the command fails, so that no error message is ever shown as
    its output.
    """
    printed = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=True, cwd=folder
    ).stdout
    return block(command, printed.split(until)[0])


def workplace(**files: str) -> Path:
    """An empty folder for the commands of a page, with copies of files under names of theirs."""
    folder = TemporaryDirectory(prefix="cprsim-docs-")
    _WORKPLACES.append(folder)
    for name, source in files.items():
        copy(source, Path(folder.name, f"{name}{Path(source).suffix}"))
    return Path(folder.name)


_WORKPLACES: list[TemporaryDirectory[str]] = []  # there until the page is done


def ran(code: str) -> str:
    """Python code and what it prints, as two fenced blocks; names stay for the next one."""
    code, printed = dedent(code).strip(), StringIO()
    with redirect_stdout(printed):
        exec(code, _NAMES)
    said = ["", "```text", *_lines(printed.getvalue()), "```", ""]
    return "\n".join(["", "```python", code, "```", *said])


_NAMES: dict[str, object] = {}  # of the code that a page has run so far


def block(command: str, printed: str) -> str:
    """A command and what it printed as a fenced block, no wider than a page."""
    return "\n".join(["", "```text", f"$ {command}", *_lines(printed), "```", ""])


def _lines(printed: str) -> list[str]:
    """What was printed, wrapped where it is wider than a page."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    return [fill(line, WIDTH) if len(line) > WIDTH else line for line in lines]


def kept_listing(result: str, title: str) -> str:
    """A table of the last full run of `cprsim reproduce`, as Markdown with its title above.

    Raises StopIteration where no table's title begins so.
    """
    summary = Path("results/reproduction", result, "summary.json")
    listings = json.loads(summary.read_text("utf-8"))["listings"]
    found = next(one for one in listings if one["title"].startswith(title))
    return f"\n{found['title']}\n\n{raw_table(found['headings'], found['rows'])}\n"
