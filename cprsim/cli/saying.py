"""All that the commands say: nothing from a file is obeyed by a terminal.

Tables and progress go through `cprsim.cli.terminal`. A test sees to it that no command prints
otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from textwrap import fill
from typing import Any

import typer

from cprsim.cli.pulse import pulse
from cprsim.errors import json_printable, printable

WIDTH = 80  # of a terminal as narrow as most


def say(what: object) -> None:
    """A line on stdout."""
    pulse.clear()
    typer.echo(printable(str(what)))


def say_list(entries: Mapping[str, str]) -> None:
    """Names and what they stand for, in two columns that fit a terminal of 80 columns."""
    width = max(map(len, entries), default=0)
    below = " " * (width + 2)
    for name, about in entries.items():
        line = f"{name:{width}}  {about}"
        say(fill(line, WIDTH, subsequent_indent=below, break_on_hyphens=False))


def say_json_text(text: str) -> None:
    """A JSON object on stdout."""
    pulse.clear()
    typer.echo(json_printable(text))


def say_json(plain: Any, indent: int = 2) -> None:
    """One JSON object on stdout; raises ValueError for NaN and infinity, which JSON lacks."""
    text = json.dumps(plain, allow_nan=False, ensure_ascii=False, indent=indent)
    pulse.clear()
    typer.echo(json_printable(text))


def complain(what: object) -> None:
    """A line on stderr: what is wrong, or what the user should know."""
    pulse.clear()
    typer.echo(printable(str(what)), err=True)
