"""What a command prints or a kept result says, as a block of a document; called by cog."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections import Counter
from contextlib import redirect_stdout, suppress
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


def shown(command: str, until: str = "\0", folder: Path | None = None, since: str = "") -> str:
    """The command and what it prints from `since` to before `until`, as a fenced block.

    Raises CalledProcessError where the command fails, so that no error message is ever shown as
    its output.
    """
    printed = _printed(command, folder)
    if since:
        printed = f"...{printed[printed.index(since) :]}"
    return _block("text", [*_typed(command), *_lines(printed.split(until)[0])])


def shown_with_figure(
    command: str, until: str, keep: str, alternative: str, folder: Path = Path(), figure: str = ""
) -> str:
    """The same (nothing of it where `until` is empty) and a figure, kept in ``docs/figures``.

    It is the first of the results folder whose name ends in `figure`. The digest in the comment
    makes a check of the document fail where the figure has changed.
    """
    printed = _printed(command, folder)
    results = next(line.split()[1] for line in printed.splitlines() if line[:8] == "results ")
    figures = sorted((folder / results).glob("*.png"))
    png = next(path for path in figures if path.name.endswith(figure)).read_bytes()
    (FIGURES / keep).write_bytes(png)
    digest = hashlib.sha256(png).hexdigest()[:12]
    text = _block("text", [*_typed(command), *_lines(printed.split(until)[0])]) if until else ""
    return f"{text}\n![{alternative}](figures/{keep}) <!-- {digest} -->\n"


def ran(code: str) -> str:
    """Python code and what it prints, as two fenced blocks; names stay for the next one."""
    code, printed = dedent(code).strip(), StringIO()
    with redirect_stdout(printed):
        exec(code, _NAMES)
    return _block("python", [code]) + _block("text", _lines(printed.getvalue()))


def workplace(**files: str) -> Path:
    """An empty folder for the commands of a page, with copies of files under names of theirs."""
    folder = TemporaryDirectory(prefix="cprsim-docs-")
    _WORKPLACES.append(folder)
    for name, source in files.items():
        copy(source, Path(folder.name, f"{name}{Path(source).suffix}"))
    return Path(folder.name)


def verdicts() -> str:
    """What the kept comparisons with papers came to, in words."""
    found = Counter(_claims()["finding"])
    missed = found["not consistent"] + found["not reproduced"]
    return (
        f"\nOf the comparisons with papers' numbers {found['reproduced']} are reproduced, "
        f"{found['consistent']} consistent, {missed} not, and {found['open']} open "
        "([what that means](docs/reproduction.md)).\n"
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


def _printed(command: str, folder: Path | None) -> str:
    """What a command prints on a terminal."""
    ours, theirs = os.openpty()
    run = subprocess.Popen(
        ["sh", "-c", command], stdout=theirs, stderr=subprocess.DEVNULL, cwd=folder,
        env=os.environ | {"COLUMNS": str(WIDTH), "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # how Linux says that nothing follows
        while part := os.read(ours, 2**16):
            printed += part
    os.close(ours)
    if run.wait():
        raise subprocess.CalledProcessError(run.returncode, command)
    return printed.decode().replace("\r\n", "\n")


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
