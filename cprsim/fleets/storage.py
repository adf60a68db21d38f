"""The storage that all jobs share: its bandwidth is divided max-min fairly; by SimPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any

import simpy
from simpy.events import EventPriority

from cprsim.simulate.events.alarms import STAGES, Alarm
from cprsim.simulate.events.sharing import Part
from cprsim.simulate.numbers import Numbers
from cprsim.simulate.transitions import rate_of_each

NEAR = 1e-12  # of a rate: rounding


@dataclass(slots=True, eq=False)
class Flows:
    """Equal flows of one save or load, none of them faster than `cap_bytes_per_h`.

    A flow that has its cap ends by an alarm of its own. One that has less has the storage's level,
    as all such have; it ends when the storage's odometer has come to `ends_at_bytes`.
    """

    storage: SharedStorage
    n: int
    left_bytes: float  # of each, at `since_h`; of flows at their cap
    cap_bytes_per_h: float
    order: EventPriority
    call: Callable[[], None]  # when all bytes have moved
    has_cap: bool = False
    booked_cap: bool | None = None  # `has_cap` as the alarms have it; None: neither
    ends_at_bytes: float = 0.0
    since_h: float = 0.0
    alarm: Alarm | None = field(default=None)
    version: int = 0  # entries of the heaps with another one are over

    @property
    def at_h(self) -> float:
        """When they end, if nobody else begins or ends before."""
        return self.storage.ends_h(self)

    def cancel(self) -> None:
        """Stop them."""
        self.storage.stop(self)


class _Heap:
    """Flows by a number, the smallest first; those that have changed since are left out."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, int, Flows]] = []
        self._numbers = count()
        self._most = 64  # entries, before those that are over are dropped

    def push(self, key: float, flows: Flows) -> None:
        if len(self._entries) >= self._most:
            self._entries = [one for one in self._entries if one[2] == one[3].version]
            heapify(self._entries)
            self._most = max(64, 2 * len(self._entries))
        heappush(self._entries, (key, next(self._numbers), flows.version, flows))

    def first(self) -> Flows | None:
        entries = self._entries
        while entries and entries[0][2] != entries[0][3].version:
            heappop(entries)
        return entries[0][3] if entries else None


class SharedStorage:
    """Flows over one bandwidth, each group with a cap of its own, max-min fairly.

    No flow exceeds the level, and those that have less than their cap have the level. An odometer
    counts what each of these has moved, so that a change of the level touches none of them.
    """

    def __init__(self, env: simpy.Environment, bandwidth_bytes_per_h: float) -> None:
        self._env, self._bandwidth = env, bandwidth_bytes_per_h
        self._n_slowed = 0  # flows that have less than their cap
        self._capped_bytes_per_h = 0.0  # of all others together
        self._level = inf
        self._odometer_bytes = self._read_at_h = 0.0
        self._by_cap, self._by_least_cap, self._by_end = _Heap(), _Heap(), _Heap()
        self._alarm: Alarm | None = None  # of the first that ends at the level
        self._under_way: dict[Flows, None] = {}

    def start(
        self, n: int, each_bytes: float, cap: float, order: EventPriority, call: Callable[[], None]
    ) -> Flows:
        """Have equal flows begin."""
        flows = Flows(self, n, each_bytes, cap, order, call, since_h=float(self._env.now))
        self._advance()
        self._under_way[flows] = None
        self._enter([flows])
        return flows

    def stop(self, flows: Flows) -> None:
        """Have flows end, if they are under way; nobody is told."""
        if flows not in self._under_way:
            return
        self._advance()
        del self._under_way[flows]
        self._leave(flows)
        self._enter([])

    def change(self, some: list[Flows], n: list[int], cap: float) -> None:
        """Have other numbers of flows under another cap."""
        self._advance()
        for flows, n_now in zip(some, n, strict=True):
            if n_now != flows.n or cap != flows.cap_bytes_per_h:
                self._leave(flows)
                flows.n, flows.cap_bytes_per_h = n_now, cap
        self._enter([flows for flows in some if flows.booked_cap is None])

    def ends_h(self, flows: Flows) -> float:
        """When flows end, if nobody else begins or ends before."""
        if flows.booked_cap is None:
            return inf
        if flows.alarm is not None:
            return flows.alarm.at_h
        return self._read_at_h + (flows.ends_at_bytes - self._odometer_bytes) / self._level

    def _advance(self) -> None:
        now_h = float(self._env.now)
        if self._n_slowed:
            self._odometer_bytes += (now_h - self._read_at_h) * self._level
        self._read_at_h = now_h

    def _leave(self, flows: Flows) -> None:
        """Take flows out, with what is left of them."""
        self._unbook(flows)
        flows.version += 1
        if flows.has_cap:
            self._capped_bytes_per_h -= flows.n * flows.cap_bytes_per_h
        else:
            self._n_slowed -= flows.n
        if not self._under_way:
            self._capped_bytes_per_h = 0.0  # without rounding

    def _unbook(self, flows: Flows) -> None:
        """Set down what is left of flows, and how they end no more."""
        if flows.booked_cap:
            moved = (self._read_at_h - flows.since_h) * flows.cap_bytes_per_h
            flows.left_bytes = max(0.0, flows.left_bytes - moved)
        elif flows.booked_cap is not None:
            flows.left_bytes = max(0.0, flows.ends_at_bytes - self._odometer_bytes)
        flows.since_h, flows.booked_cap = self._read_at_h, None
        if flows.alarm is not None:
            flows.alarm.cancel()
            flows.alarm = None

    def _enter(self, some: list[Flows]) -> None:
        """Put flows in, find the level, and let each end when it does."""
        more = sum([flows.n * flows.cap_bytes_per_h for flows in some])
        if not self._n_slowed and self._capped_bytes_per_h + more <= self._bandwidth:
            self._enter_at_cap(some)
            return
        for flows in some:
            flows.has_cap = False
            self._n_slowed += flows.n
            self._by_least_cap.push(flows.cap_bytes_per_h, flows)
        moved = self._find_level()
        for flows in dict.fromkeys([*some, *moved]) if moved else some:
            if flows.booked_cap is not flows.has_cap:
                self._book(flows)
            elif not flows.has_cap:  # moved there and back
                self._by_end.push(flows.ends_at_bytes, flows)
        self._set_alarm()

    def _enter_at_cap(self, some: list[Flows]) -> None:
        """Put flows in where all get their cap."""
        for flows in some:
            flows.has_cap = True
            self._capped_bytes_per_h += flows.n * flows.cap_bytes_per_h
            self._by_cap.push(-flows.cap_bytes_per_h, flows)
            self._book(flows)
        self._level = inf
        if self._alarm is not None:
            self._set_alarm()

    def _find_level(self) -> list[Flows]:
        """Have flows get their cap that may, and others no more; the level rises with each."""
        moved = []
        while self._n_slowed:
            left = self._bandwidth - self._capped_bytes_per_h
            level = left / self._n_slowed
            low, high = self._by_least_cap.first(), self._by_cap.first()
            if low is not None and low.cap_bytes_per_h <= level * (1.0 + NEAR):
                moved.append(self._move(low, to_cap=True))
            elif high is not None and high.cap_bytes_per_h > level and self._has_too_much(high):
                moved.append(self._move(high, to_cap=False))
            else:
                self._level = level
                return moved
        self._level = inf
        return moved

    def _has_too_much(self, high: Flows) -> bool:
        """Whether the level with flows that have their cap now stays below it."""
        left = self._bandwidth - self._capped_bytes_per_h + high.n * high.cap_bytes_per_h
        level = left / (self._n_slowed + high.n)
        return high.cap_bytes_per_h > level * (1.0 + 2.0 * NEAR)

    def _move(self, flows: Flows, *, to_cap: bool) -> Flows:
        sign = 1 if to_cap else -1
        flows.version += 1
        flows.has_cap = to_cap
        self._n_slowed -= sign * flows.n
        self._capped_bytes_per_h += sign * flows.n * flows.cap_bytes_per_h
        if to_cap:
            self._by_cap.push(-flows.cap_bytes_per_h, flows)
        else:
            self._by_least_cap.push(flows.cap_bytes_per_h, flows)
        return flows

    def _book(self, flows: Flows) -> None:
        """Let flows end by an alarm of their own, or by the odometer."""
        self._unbook(flows)
        flows.booked_cap = flows.has_cap
        if flows.has_cap:
            delay_h = flows.left_bytes / flows.cap_bytes_per_h
            flows.alarm = Alarm(self._env, delay_h, flows.order, lambda: self._over(flows))
        else:
            flows.ends_at_bytes = self._odometer_bytes + flows.left_bytes
            self._by_end.push(flows.ends_at_bytes, flows)

    def _set_alarm(self) -> None:
        """Ring when the first of those at the level ends."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        first = self._by_end.first()
        if first is None:
            self._odometer_bytes = 0.0
            return
        left_bytes = max(0.0, first.ends_at_bytes - self._odometer_bytes)
        self._alarm = Alarm(
            self._env, left_bytes / self._level, first.order, lambda: self._over(first)
        )

    def _over(self, flows: Flows) -> None:
        self.stop(flows)
        flows.call()


class LinkOfJob:
    """The loads of one job over the shared storage (`simulate.events.Link`).

    They share the job's own bandwidth, too, as they do where it is alone.
    """

    def __init__(
        self, storage: SharedStorage, env: simpy.Environment, num: Numbers,
        on_end: Callable[[Any], None],
    ) -> None:  # fmt: skip
        self._storage, self._env, self._num, self._on_end = storage, env, num, on_end
        self._loads: dict[Part, Flows] = {}

    @property
    def next_at_h(self) -> float:
        """Before which no load ends: now, where one is under way, as others decide when."""
        return float(self._env.now) if self._loads else inf

    def start(self, load: Any, n_by_bytes: Mapping[float, int]) -> None:
        """Have the shards of a load move; `on_end` is called with it when they have."""
        n_all = sum(n_by_bytes.values()) + sum(flows.n for flows in self._loads.values())
        cap = rate_of_each(self._num, n_all)
        self._slow_down(cap)
        for size_bytes, n_shards in n_by_bytes.items():
            part = load, size_bytes
            over = partial(self._over, part)
            self._loads[part] = self._storage.start(n_shards, size_bytes, cap, STAGES, over)

    def drop(self, load: Any, n_by_bytes: Mapping[float, int]) -> None:
        """Shards of a load stop, if they still move; it ends at once where none is left."""
        dropped = {(load, one): n for one, n in n_by_bytes.items() if (load, one) in self._loads}
        if not dropped:
            return
        for part in [one for one, n in dropped.items() if self._loads[one].n == n]:
            self._storage.stop(self._loads.pop(part))
        n = [flows.n - dropped.get(part, 0) for part, flows in self._loads.items()]
        if n:
            self._storage.change(list(self._loads.values()), n, rate_of_each(self._num, sum(n)))
        if not self._parts_of(load):
            self._on_end(load)

    def stop(self, load: Any) -> None:
        """Stop a load, if it is under way."""
        if parts := self._parts_of(load):
            for part in parts:
                self._storage.stop(self._loads.pop(part))
            self._speed_up()

    def _parts_of(self, load: Any) -> list[Part]:
        return [part for part in self._loads if part[0] is load]

    def _over(self, part: Part) -> None:
        del self._loads[part]
        self._speed_up()
        if not self._parts_of(part[0]):
            self._on_end(part[0])

    def _slow_down(self, cap: float) -> None:
        flows = list(self._loads.values())
        if flows:
            self._storage.change(flows, [one.n for one in flows], cap)

    def _speed_up(self) -> None:
        n_all = sum(flows.n for flows in self._loads.values())
        if n_all:
            self._slow_down(rate_of_each(self._num, n_all))
