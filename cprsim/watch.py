"""How far the work has come, and what the user should know meanwhile.

Python hears warnings alone; the command line shows all of it (`cprsim.cli.watching`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

Progress = Callable[[int, int], None]  # takes what is done, and how much there is


class Watch:
    """What hears of the work; this one passes on warnings alone."""

    command: Sequence[str] = ()  # that was given on the command line

    def doing(self, what: str) -> None:
        """A step begins, in a word or two."""

    def warn(self, message: str) -> None:
        """The user should know this."""
        warnings.warn(message, stacklevel=3)

    def progress(self, doing: str) -> AbstractContextManager[Progress]:
        """A step whose progress is counted."""
        return nullcontext(lambda done, total: None)

    def keeps(self, say: Callable[[], str]) -> None:
        """From now on an interruption keeps what is finished; `say` tells how much, in a clause."""


_watch = Watch()


def use(watch: Watch) -> None:
    """Tell this one from now on."""
    global _watch
    _watch = watch


def command() -> list[str]:
    """What was given on the command line; empty in Python."""
    return list(_watch.command)


def doing(what: str) -> None:
    """Say which step begins."""
    _watch.doing(what)


def warn(message: str) -> None:
    """Say what the user should know, and what is done about it."""
    _watch.warn(message)


def progress(doing: str) -> AbstractContextManager[Progress]:
    """Show the progress of a step while the block lasts."""
    return _watch.progress(doing)


def keeps(say: Callable[[], str]) -> None:
    """Say what an interruption keeps."""
    _watch.keeps(say)
