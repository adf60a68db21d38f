"""What a command prints or a kept result says, as a block of a document; called by cog."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from itertools import chain
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from textwrap import dedent, fill

import pandas as pd

import cprsim
from cprsim.pages.markdown import raw_table

WIDTH = 116  # characters of the terminal that commands print on
# of a command: an option with its value, and quoted texts, are whole
WORD = re.compile(r"""(?:--[\w-]+ (?!-))?(?:'[^']*'|"[^"]*"|[^\s'"])+""")
ENTRY = re.compile(r' (?=\{)(?=[^"]*"$)')  # of a list in quotes, before which a line may break
FIGURES, KEPT = Path("docs/figures"), Path("results/reproduction")
MISSED = ("not reproduced", "not consistent", "open")
_WORKPLACES: list[TemporaryDirectory[str]] = []  # there until the page is done
_NAMES: dict[str, object] = {}  # of the code that a page has run so far


def shown(
    command: str, until: str = "\0", keep: str = "", alternative: str = "", folder: Path = Path()
) -> str:
    """The command and what it prints before `until`, as a fenced block; none where that is empty.

    With `keep` also a figure, stored by that name in ``docs/figures``: that of the results folder
    with whose name it ends, else the first. Its digest makes a check of the document fail where it
    has changed. Raises CalledProcessError where the command fails, so that no error is shown.
    """
    how = {"capture_output": True, "text": True, "env": os.environ | {"COLUMNS": str(WIDTH)}}
    printed = subprocess.run(["sh", "-c", command], check=True, cwd=folder, **how).stdout
    block = _block("text", [*_typed(command), *_lines(printed.split(until)[0])]) if until else ""
    if not keep:
        return block
    results = next(line.split()[1] for line in printed.splitlines() if line[:8] == "results ")
    figures = sorted((folder / results).glob("*.png"))
    png = next((one for one in figures if keep.endswith(one.name)), figures[0]).read_bytes()
    (FIGURES / keep).write_bytes(png)
    digest = hashlib.sha256(png).hexdigest()[:12]
    return f"{block}\n![{alternative}](figures/{keep}) <!-- {digest} -->\n"


def ran(code: str) -> str:
    """Python code and what it prints, as two fenced blocks; names stay for the next one."""
    code, printed = dedent(code).strip(), StringIO()
    with redirect_stdout(printed):
        exec(code, _NAMES)
    return _block("python", [code]) + _block("text", _lines(printed.getvalue()))


def workplace(**files: str) -> Path:
    """An empty folder for the commands of a page, with copies of files under names of theirs."""
    _WORKPLACES.append(TemporaryDirectory(prefix="cprsim-docs-"))
    folder = Path(_WORKPLACES[-1].name)
    for name, source in files.items():
        copy(source, folder / f"{name}{Path(source).suffix}")
    return folder


def verdicts() -> str:
    """The counts of verdicts of the stored comparisons with papers, in words."""
    found = Counter(_claims()["finding"])
    missed = found["not consistent"] + found["not reproduced"]
    return (
        f"\nComparisons with numbers from papers: {found['reproduced']} reproduced, "
        f"{found['consistent']} consistent, {missed} missed, {found['open']} open "
        "([definitions](docs/reproduction.md)).\n"
    )


def families() -> str:
    """The names of all recovery systems, by family."""
    found = cprsim.systems().frames["systems"].groupby("family", sort=False)["system"]
    rows = [(family, ", ".join(f"`{name}`" for name in names)) for family, names in found]
    return f"\n{raw_table(['family', 'systems'], rows)}\n"


def studies() -> str:
    """A row per study of the kept full run: its findings by number."""
    found = _claims().groupby("result")["finding"].value_counts()
    findings = ["reproduced", "consistent", *reversed(MISSED)]
    names = cprsim.reproduce(listed=True).frames["studies"]["name"]
    rows = [(f"`{name}`", *(str(found.get((name, one), "")) for one in findings)) for name in names]
    return f"\n{raw_table(['study', *findings], rows)}\n"


def misses() -> str:
    """The kept comparisons that missed the paper's number, or are open."""
    columns = ["result", "quantity", "paper", "provenance", "ours", "finding"]
    rows = _claims().query("finding in @MISSED")[columns].itertuples(index=False)
    return f"\n{raw_table(['study', *columns[1:]], rows)}\n"


def _claims() -> pd.DataFrame:
    """All comparisons of the kept full run."""
    names = cprsim.reproduce(listed=True).frames["studies"]["name"]
    return pd.concat([cprsim.read(KEPT / name).frames["claims"] for name in names])


def _typed(command: str) -> list[str]:
    """The command after a prompt, on several lines if it is long."""
    lines = ["$"]
    words = [ENTRY.split(one) if len(one) > WIDTH else [one] for one in WORD.findall(command)]
    for word in chain(*words):
        if len(lines[-1]) + len(word) > WIDTH - len("  \\"):
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return lines if len(lines) > 1 else [f"$ {command}"]


def _lines(printed: str) -> list[str]:
    """What was printed; wide sentences of a pipe or a file are wrapped, tables are not."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    return [line if "  " in line or "─" in line else fill(line, WIDTH) for line in lines]


def _block(language: str, lines: list[str]) -> str:
    return "\n".join(["", f"```{language}", *lines, "```", ""])
