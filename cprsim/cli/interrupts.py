"""Ctrl-C ends the program, also where a library swallows the first exception."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any, NoReturn

INSIST_AFTER_S = 0.5


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
