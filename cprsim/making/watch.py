"""What older modules are handed; goes with them: `cprsim.watch` is asked instead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from cprsim import watch


class Watch(watch.Watch):
    """Is told what is being done besides, of things whose number nobody knows."""

    def counting(self, what: str) -> AbstractContextManager[Callable[[], None]]:
        """Things of which nobody knows how many there will be; each is told."""
        return nullcontext(lambda: None)
