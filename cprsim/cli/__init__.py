"""The command line: parse, call, print. No modelling; the only folder that imports typer.

Each command imports its dependencies when it runs, so that ``cprsim --help`` starts quickly.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from cprsim.cli import console

# Net allocations between searches for cyclic garbage. Imports, compilation and drawing make many
# objects and few cycles: at Python's own 700, a fifth of a command's time is such searches.
SEARCH_AFTER = (50_000, 20, 50)


def main() -> NoReturn:
    """Entry point of the program; ends the process with an exit code of `cprsim --help`.

    Each code but 0, 130, 141 and 143 comes with a message on stderr.
    """
    code: str | int | None = 0
    gc.set_threshold(*SEARCH_AFTER)
    try:
        with console.exit_codes():
            _open_what_is_closed()
            console.heed_interrupts()
            from cprsim.cli.app import app

            for stream in (sys.stdout, sys.stderr):  # signs that the encoding lacks, such as ±
                with suppress(AttributeError):
                    stream.reconfigure(errors="replace")  # type: ignore[union-attr]
            app(prog_name="cprsim")
    except SystemExit as end:
        code = end.code
    except Exception:
        console.unforeseen()
        code = console.UNFORESEEN
    console.calm()
    code = _flushed(code)
    gc.freeze()  # else the exit would search all imported objects, for 0.2 s
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Open streams that the caller closed (``>&-``) on ``/dev/null``.

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


def _flushed(code: str | int | None) -> str | int | None:
    """Flush stdout; returns the exit code, also where the reader has closed the pipe."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more at exit and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return code or 128 + signal.SIGPIPE
        if not code:
            console.refused(error)
        return code or console.REFUSED
    return code
