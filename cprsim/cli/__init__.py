"""The command line: parse, call, print. No modelling; the only room with typer.

Commands import what they need when they run, so that ``cprsim --help`` answers at once.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from cprsim.cli.saying import (
    REFUSED,
    UNFORESEEN,
    calm,
    exit_codes,
    heed_interrupts,
    refused,
    unforeseen,
)

# Net allocations between searches for circles of garbage. What is imported, compiled and drawn
# makes many objects and few circles: at Python's own 700 a fifth of a command is such searches.
SEARCH_AFTER = (50_000, 20, 50)


def main() -> NoReturn:
    """Entry point of the program; ends the process with its exit code.

    0: done. 1: the system refused, e.g. because the disk is full. 2: the input is wrong, or
    asks for too much memory. 3: a rehearsal found the machine too busy. 70: an error that nobody
    foresaw: a defect. 130: interrupted. 141: nobody reads any more. 143: ended by SIGTERM.
    Whatever is not 0 is said on stderr, but for 141 and 143.
    """
    code: str | int | None = 0
    gc.set_threshold(*SEARCH_AFTER)
    try:
        with exit_codes():
            _open_what_is_closed()
            heed_interrupts()
            from cprsim.cli.app import app

            _survive_any_encoding()
            app(prog_name="cprsim")
    except SystemExit as end:
        code = end.code
    except Exception:
        unforeseen()
        code = UNFORESEEN
    calm()
    code = _flushed(code)
    gc.freeze()  # the end of a process would search all that was imported, for 0.2 s
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Streams that the caller closed (``>&-``) lead to nowhere, as with ``>/dev/null``.

    Otherwise the next file that is opened would become the program's output.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_RDWR)
                if nowhere != number:
                    os.dup2(nowhere, number)
                    os.close(nowhere)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - lives on


def _survive_any_encoding() -> None:
    """A terminal that lacks a sign such as ± gets a question mark instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _flushed(code: str | int | None) -> str | int | None:
    """The exit code, after a last flush; a reader that has gone by now is no news."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more at exit and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return code or 128 + signal.SIGPIPE
        if not code:
            refused(error)
        return code or REFUSED
    return code
