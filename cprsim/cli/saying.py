"""All that the commands say: nothing from a file is obeyed by a terminal.

Tables and progress go through `cprsim.cli.terminal`. A test sees to it that no command prints
otherwise.
"""

from __future__ import annotations

import typer

from cprsim.cli.pulse import pulse
from cprsim.errors import json_printable, printable

WIDTH = 80  # of a terminal as narrow as most


def say(what: object) -> None:
    """A line on stdout."""
    pulse.clear()
    typer.echo(printable(str(what)))


def say_json_text(text: str) -> None:
    """A JSON object on stdout."""
    pulse.clear()
    typer.echo(json_printable(text))


def complain(what: object) -> None:
    """A line on stderr: what is wrong, or what the user should know."""
    pulse.clear()
    typer.echo(printable(str(what)), err=True)
