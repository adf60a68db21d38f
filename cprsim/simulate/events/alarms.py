"""Instants at which something happens, by SimPy, and what comes first of those at one instant."""

from __future__ import annotations

from collections.abc import Callable

import simpy
from simpy.events import EventPriority

# Of what comes at one instant: commits first, a failure last
SAVES, NODES, STAGES, JOB, END, FAILURES = (EventPriority(n) for n in range(1, 7))


class Alarm(simpy.Event):
    """Calls a function in so many hours, unless it is cancelled."""

    def __init__(
        self, env: simpy.Environment, delay_h: float, order: EventPriority, call: Callable[[], None]
    ) -> None:
        self.env = env  # as simpy.Event has it; a fleet has millions of alarms
        self.at_h = env.now + delay_h
        self._ok, self._value = True, None
        self._call: Callable[[], None] = call
        self.callbacks = [self._ring]
        env.schedule(self, order, delay_h)

    def _ring(self, _: simpy.Event) -> None:
        self._call()

    def cancel(self) -> None:
        self._call = _nothing  # who waits in the queue till its hour holds nobody
        if self.callbacks is not None:
            self.callbacks.clear()


def _nothing() -> None:
    """What a cancelled alarm calls."""
