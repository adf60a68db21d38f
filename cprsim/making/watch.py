"""Who is told how far the work has come."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext


class Watch:
    """Is told what is being done, how far that is, and what was found damaged; says nothing.

    The command line has one that shows it on a terminal.
    """

    def doing(self, what: str) -> None:
        """What begins, in a word or two."""

    def warn(self, message: str) -> None:
        """What the user should know, and what is done about it."""

    def progress(self, doing: str) -> AbstractContextManager[Callable[[int, int], None]]:
        """A thing of which the block tells what is done, and how much there is."""
        return nullcontext(lambda done, total: None)

    def counting(self, what: str) -> AbstractContextManager[Callable[[], None]]:
        """Things of which nobody knows how many there will be; each is told."""
        return nullcontext(lambda: None)


SILENT = Watch()
