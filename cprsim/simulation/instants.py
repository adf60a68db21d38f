"""Instants of SimPy's clock, and the order of the events of one instant."""

from __future__ import annotations

import simpy
from simpy.events import EventPriority, ProcessGenerator

Process = ProcessGenerator

RETURNS = EventPriority(0)  # a node comes back from repair
TRANSFERS = EventPriority(2)  # a transfer ends; after grants of returned nodes (SimPy's 1)
JOBS = EventPriority(3)  # jobs act, in order of their numbers, which are added to this
ARRIVALS = EventPriority(1 << 40)  # jobs arrive, or get their nodes
TICKS = 2.0**34  # per hour; times less than 0.2 us apart are one instant


class TickClock(simpy.Environment):
    """SimPy's clock, in ticks; `at_h` is the time of the last `Instant`, not rounded to ticks."""

    at_h = 0.0


class Instant(simpy.Event):
    """A timeout until an instant, with a rank among the events of that instant.

    Times are multiples of a tick, which floats add exactly (up to 2**18 h): rounding never decides
    the order.
    """

    def __init__(self, env: TickClock, at_h: float, rank: EventPriority) -> None:
        def come(_: simpy.Event) -> None:
            env.at_h = at_h

        self.env, self.callbacks, self._ok, self._value = env, [come], True, None
        env.schedule(self, rank, max(0.0, round(at_h * TICKS) / TICKS - env.now))


def trigger(event: simpy.Event, rank: EventPriority) -> None:
    """Trigger an event now, with a rank among the events of this instant."""
    event._ok, event._value = True, None
    event.env.schedule(event, rank)
