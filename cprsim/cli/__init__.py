"""The command line: parse, call, print. No modelling; the only room with typer.

Commands import what they need when they run, so that ``cprsim --help`` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from cprsim.cli.interrupts import calm, heed_interrupts


def main() -> NoReturn:
    """Entry point of the program; ends the process with its exit code.

    0: done. 2: the input is wrong, said on stderr. 130: interrupted. 141: nobody reads any more.
    """
    code: str | int | None = 0
    try:
        heed_interrupts()
        from cprsim.cli.app import app

        _survive_any_encoding()
        app(prog_name="cprsim")
    except SystemExit as end:
        code = end.code
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    calm()
    sys.exit(_flushed(code))


def _survive_any_encoding() -> None:
    """A terminal that lacks a sign such as ± gets a question mark instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _flushed(code: str | int | None) -> str | int | None:
    """The exit code, after a last flush; a reader that has gone by now is no news."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or 128 + signal.SIGPIPE
    return code
