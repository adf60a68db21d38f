"""What the commands show of the work on stderr: bars, the pulse, complaints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from cprsim.cli.pulse import pulse
from cprsim.cli.saying import complain
from cprsim.cli.terminal import counting, progress
from cprsim.making.watch import Watch


class TerminalWatch(Watch):
    """Shows all of it."""

    def doing(self, what: str) -> None:
        pulse.doing(what)

    def warn(self, message: str) -> None:
        complain(f"cprsim: {message}")

    def progress(self, doing: str) -> AbstractContextManager[Callable[[int, int], None]]:
        return progress(doing)

    def counting(self, what: str) -> AbstractContextManager[Callable[[], None]]:
        return counting(what)


ON_STDERR = TerminalWatch()
