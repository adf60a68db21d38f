"""The link that loads share, by SimPy: its bandwidth is divided evenly among the shards."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import simpy

from cprsim.simulate.events.alarms import STAGES, Alarm
from cprsim.simulate.numbers import Numbers
from cprsim.simulate.transitions import rate_of_each


class SharedLink:
    """Loads over one bandwidth (processor sharing).

    All shards move at the same rate, so one odometer, the bytes that a shard would have moved since
    the start of the job, tells when each load ends.
    """

    def __init__(self, env: simpy.Environment, num: Numbers, on_end: Callable[[Any], None]) -> None:
        self._env, self._num, self._on_end = env, num, on_end
        self._n_shards: dict[Any, int] = {}  # by load
        self._ends_at_bytes: dict[Any, float] = {}  # on the odometer, by load
        self._odometer_bytes = self._read_at_h = 0.0
        self._alarm: Alarm | None = None

    @property
    def next_at_h(self) -> float:
        """When the next load ends; infinite where none is under way."""
        return inf if self._alarm is None else self._alarm.at_h

    def start(self, load: Any, n_shards: int) -> None:
        """Have the shards of a load move; `on_end` is called with it when they have."""
        self._advance()
        self._n_shards[load] = n_shards
        self._ends_at_bytes[load] = self._odometer_bytes + self._num.shard_bytes
        self._set_alarm()

    def drop(self, load: Any, n_shards: int) -> None:
        """Some shards of a load stop; it ends at once where none is left."""
        if load not in self._n_shards:
            return
        if self._n_shards[load] == n_shards:
            self.stop(load)
            self._on_end(load)
            return
        self._advance()
        self._n_shards[load] -= n_shards
        self._set_alarm()

    def stop(self, load: Any) -> None:
        """Stop a load, if it is under way."""
        if load in self._n_shards:
            self._advance()
            del self._n_shards[load], self._ends_at_bytes[load]
            self._set_alarm()

    def _per_h(self) -> float:
        return rate_of_each(self._num, sum(self._n_shards.values()))

    def _advance(self) -> None:
        if self._n_shards:
            self._odometer_bytes += (self._env.now - self._read_at_h) * self._per_h()
        self._read_at_h = self._env.now

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._n_shards:
            left = max(0.0, min(self._ends_at_bytes.values()) - self._odometer_bytes)
            self._alarm = Alarm(self._env, left / self._per_h(), STAGES, self._ring)

    def _ring(self) -> None:
        self._advance()
        first = min(self._ends_at_bytes.values())
        self._odometer_bytes = first
        ended = [load for load, ends in self._ends_at_bytes.items() if ends <= first]
        for load in ended:
            del self._n_shards[load], self._ends_at_bytes[load]
        self._alarm = None
        self._set_alarm()
        for load in ended:
            self._on_end(load)
