"""What nobody's input is to blame for: Ctrl-C, what the system refuses, errors not foreseen."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

from cprsim.cli.saying import complain
from cprsim.errors import one_line

INSIST_AFTER_S = 0.5  # of an interrupt that has not come through
REFUSED = 1  # the exit code where the system refuses
UNFORESEEN = 70  # the exit code: EX_SOFTWARE of sysexits.h
TRACEBACK = "CPRSIM_TRACEBACK"  # the environment variable that shows where it happened
MOST_OF_A_MESSAGE = 200  # characters
_PACKAGE = Path(__file__).parents[1]
_NO_ROOM = b"cprsim: out of memory: ask for less\n"
_REPORT = "please report it, with the command and this line"
_SHOW = f"`cprsim --traceback ...`, or {TRACEBACK}=1 in the environment, shows the traceback"


def show_tracebacks(wanted: bool) -> None:
    """What ``--traceback`` does; in the environment, so that worker processes know it too."""
    if wanted:
        os.environ[TRACEBACK] = "1"


def refused(error: OSError) -> None:
    """Say on stderr what the system refused, such as to write to a full disk."""
    where = f"{error.filename}: " if error.filename else ""
    with suppress(OSError):
        complain(f"cprsim: {where}{error.strerror or error}")


def tell(error: Exception) -> None:
    """Say on stderr what happened, in one line; after the traceback where that was asked for."""
    try:
        if os.environ.get(TRACEBACK):
            complain("".join(traceback.format_exception(error)).rstrip())
        complain(sentence(error))
    except Exception:  # no memory for words
        with suppress(OSError):
            os.write(2, _NO_ROOM)


def sentence(error: Exception) -> str:
    """The one line about it."""
    where = _where(error.__traceback__)
    message = one_line(str(error), MOST_OF_A_MESSAGE)
    what = type(error).__name__ + (f": {message}" if message else "")
    if isinstance(error, MemoryError):
        return (
            f"cprsim: out of memory ({what}{where}): ask for less, for example for fewer "
            f"replications. If it should have fitted, {_REPORT}. {_SHOW}"
        )
    return f"cprsim: an error that it did not foresee ({what}{where}): {_REPORT}. {_SHOW}"


def _where(trace: TracebackType | None) -> str:
    """File and line of the package's own innermost step, nothing where it took none."""
    found = ""
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            found = f", {path.relative_to(_PACKAGE.parent)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def heed_interrupts() -> None:
    """Raise KeyboardInterrupt at Ctrl-C, and again until it has come through to `calm`.

    An exception raised inside some callbacks of C libraries is printed and forgotten; the run
    would go on. Where the caller has the program ignore interrupts, it does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGALRM, _interrupt)
        sys.unraisablehook = _swallowed


def calm() -> None:
    """The program is ending: no further exceptions."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, INSIST_AFTER_S)
    raise KeyboardInterrupt


def _swallowed(unraisable: Any) -> None:
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
