"""What the commands show of the work on stderr: bars, the pulse, complaints."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from cprsim.cli.pulse import pulse
from cprsim.cli.saying import complain
from cprsim.watch import Progress, Watch


class TerminalWatch(Watch):
    """Shows all of it."""

    def __init__(self) -> None:
        self.command = ["cprsim", *sys.argv[1:]]
        self._kept: Callable[[], str] | None = None

    def doing(self, what: str) -> None:
        pulse.doing(what)

    def warn(self, message: str) -> None:
        complain(f"cprsim: {message}")

    def progress(self, doing: str) -> AbstractContextManager[Progress]:
        from cprsim.cli.terminal import progress

        return progress(doing)

    def keeps(self, say: Callable[[], str]) -> None:
        self._kept = say

    def interrupted(self) -> None:
        """Say what is kept, and how to go on."""
        if self._kept is not None:
            again = shlex.join(self.command)
            complain(
                f"cprsim: interrupted; {self._kept()}. The same command goes on from there: {again}"
            )


ON_STDERR = TerminalWatch()
