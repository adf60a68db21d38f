"""The link that loads share, by SimPy: its bandwidth is divided evenly among the shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import simpy

from cprsim.simulate.events.alarms import STAGES, Alarm
from cprsim.simulate.numbers import Numbers
from cprsim.simulate.transitions import rate_of_each

Part = tuple[Any, float]  # a load, and the bytes of those of its shards that are of one size


class SharedLink:
    """Loads over one bandwidth (processor sharing).

    All shards move at the same rate, so one odometer, the bytes that a shard would have moved since
    the start of the job, tells when those of each size of a load have moved.
    """

    def __init__(self, env: simpy.Environment, num: Numbers, on_end: Callable[[Any], None]) -> None:
        self._env, self._num, self._on_end = env, num, on_end
        self._n_shards: dict[Part, int] = {}  # that still move
        self._ends_at_bytes: dict[Part, float] = {}  # on the odometer
        self._odometer_bytes = self._read_at_h = 0.0
        self._alarm: Alarm | None = None

    @property
    def next_at_h(self) -> float:
        """When the next load ends; infinite where none is under way."""
        return inf if self._alarm is None else self._alarm.at_h

    def start(self, load: Any, n_by_bytes: Mapping[float, int]) -> None:
        """Have the shards of a load move; `on_end` is called with it when they have."""
        self._advance()
        for size_bytes, n_shards in n_by_bytes.items():
            self._n_shards[load, size_bytes] = n_shards
            self._ends_at_bytes[load, size_bytes] = self._odometer_bytes + size_bytes
        self._set_alarm()

    def drop(self, load: Any, n_by_bytes: Mapping[float, int]) -> None:
        """Shards of a load stop, if they still move; it ends at once where none is left."""
        dropped = {(load, one): n for one, n in n_by_bytes.items() if (load, one) in self._n_shards}
        if not dropped:
            return
        self._advance()
        for part, n_shards in dropped.items():
            self._n_shards[part] -= n_shards
            if not self._n_shards[part]:
                self._forget(part)
        self._set_alarm()
        if not self._parts_of(load):
            self._on_end(load)

    def stop(self, load: Any) -> None:
        """Stop a load, if it is under way."""
        if parts := self._parts_of(load):
            self._advance()
            for part in parts:
                self._forget(part)
            self._set_alarm()

    def _parts_of(self, load: Any) -> list[Part]:
        return [part for part in self._n_shards if part[0] is load]

    def _forget(self, part: Part) -> None:
        del self._n_shards[part], self._ends_at_bytes[part]

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
        ended = [part for part, ends in self._ends_at_bytes.items() if ends <= first]
        for part in ended:
            self._forget(part)
        self._alarm = None
        self._set_alarm()
        for load, _ in ended:
            if not self._parts_of(load):
                self._on_end(load)
