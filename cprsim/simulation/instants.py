"""Instants of SimPy's clock, and the order of the events of one instant."""

from __future__ import annotations

import simpy
from simpy.events import EventPriority, ProcessGenerator

Process = ProcessGenerator

RETURNS = EventPriority(0)  # a node comes back from repair
TRANSFERS = EventPriority(2)  # after what these trigger (SimPy's 1): a transfer ends
JOBS = EventPriority(3)  # then jobs, by their number, which is added
ARRIVALS = EventPriority(1 << 40)  # then jobs that arrive, or wait for their nodes
TICKS = 2.0**34  # per hour: what is nearer than .2 us is one instant


class TickClock(simpy.Environment):
    """SimPy's clock, in ticks; `at_h` is the `Instant` that came last, not rounded to them."""

    at_h = 0.0


class Instant(simpy.Event):
    """A timeout until an instant, with a rank among the events of that instant.

    On a grid that floats add exactly (up to 2**18 h), so that rounding does not decide the order.
    """

    def __init__(self, env: TickClock, at_h: float, rank: EventPriority) -> None:
        def come(_: simpy.Event) -> None:
            env.at_h = at_h

        self.env, self.callbacks, self._ok, self._value = env, [come], True, None
        env.schedule(self, rank, max(0.0, round(at_h * TICKS) / TICKS - env.now))


def come_now(event: simpy.Event, rank: EventPriority) -> None:
    """Trigger an event now, with a rank among the events of this instant."""
    event._ok, event._value = True, None
    event.env.schedule(event, rank)
