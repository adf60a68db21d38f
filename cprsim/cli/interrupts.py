"""Ctrl-C ends the program, also where a library swallows the first exception."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from cprsim.cli.saying import complain

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


class Kept:
    """What an interrupted command leaves behind, as far as it has come.

    `say` tells it, in a clause; a command replaces it as soon as there is something to keep.
    """

    def __init__(self) -> None:
        self.say: Callable[[], str] = lambda: "nothing was computed yet"

    def hold(self, say: Callable[[], str]) -> None:
        """There is something to keep now."""
        self.say = say


@contextmanager
def telling_what_is_kept() -> Iterator[Kept]:
    """Where Ctrl-C ends the block, say on stderr what is kept, and how to go on."""
    kept = Kept()
    try:
        yield kept
    except KeyboardInterrupt:
        calm()
        again = shlex.join(["cprsim", *sys.argv[1:]])
        complain(f"cprsim: interrupted; {kept.say()}. The same command goes on from there: {again}")
        raise


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, INSIST_AFTER_S)
    raise KeyboardInterrupt


def _swallowed(unraisable: Any) -> None:
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
