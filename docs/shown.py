"""What a command prints, as a block of a document; called by the documents themselves (cog)."""

from __future__ import annotations

import shlex
import subprocess
from textwrap import fill

WIDTH = 116  # characters: no table is wider, sentences are wrapped as on a terminal


def shown(command: str, until: str = "\0") -> str:
    """The command and what it prints before `until`, as a fenced block.

    Raises CalledProcessError where the command fails, so that no error message is ever shown as
    its output.
    """
    printed = subprocess.run(
        shlex.split(command), capture_output=True, text=True, check=True
    ).stdout
    lines = [line.rstrip() for line in printed.split(until)[0].rstrip().splitlines()]
    wrapped = [fill(line, WIDTH) if len(line) > WIDTH else line for line in lines]
    return "\n".join(["", "```text", f"$ {command}", *wrapped, "```", ""])
