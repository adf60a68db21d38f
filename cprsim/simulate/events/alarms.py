"""Instants at which something happens, by SimPy, and what comes first of those at one instant."""

from __future__ import annotations

from collections.abc import Callable

import simpy
from simpy.events import EventPriority

# Of what comes at one instant: commits first, a failure last
SAVES, NODES, STAGES, NOTICES, JOB, END, FAILURES = (EventPriority(n) for n in range(1, 8))


class Alarm(simpy.Event):
    """Calls a function in so many hours, unless it is cancelled.

    What comes up to `near_h` later comes at one instant with it, in the order of what comes then.
    """

    def __init__(
        self, env: simpy.Environment, delay_h: float, order: EventPriority,
        call: Callable[[], None], near_h: float = 0.0,
    ) -> None:  # fmt: skip
        self.env = env  # as simpy.Event has it; a fleet has millions of alarms
        self.at_h, self._order, self._near_h = env.now + delay_h, order, near_h
        self._ok, self._value = True, None
        self._call: Callable[[], None] = call
        self.callbacks = [self._ring]
        env.schedule(self, order, delay_h)

    def _ring(self, _: simpy.Event) -> None:
        wait_h = self.env.peek() - self.env.now if self._near_h else 0.0
        if 0.0 < wait_h < self._near_h:
            self.callbacks = [self._ring]
            self.env.schedule(self, self._order, wait_h)
        else:
            self._call()

    def cancel(self) -> None:
        self._call = _nothing  # who waits in the queue till its hour holds nobody
        if self.callbacks is not None:
            self.callbacks.clear()


def _nothing() -> None:
    """What a cancelled alarm calls."""
