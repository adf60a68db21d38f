"""The storage that all jobs share: its bandwidth is divided max-min fairly; by SimPy."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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
    """Equal flows of one save or load.

    A flow at its cap ends by an alarm of its own; the others have the storage's level, and end when
    its odometer has come to `ends_at_bytes`.
    """

    storage: SharedStorage
    number: int  # in the order in which they began
    n: int
    cap_bytes_per_h: float
    left_bytes: float  # of each, at `since_h`
    since_h: float
    order: EventPriority
    call: Callable[[], None]  # when all bytes have moved
    is_capped: bool = False
    alarm: Alarm | None = None
    ends_at_bytes: float | None = None
    is_over: bool = False

    @property
    def at_h(self) -> float:
        """When they end, if nobody else begins or ends before."""
        if self.alarm is not None:
            return self.alarm.at_h
        return inf if self.ends_at_bytes is None else self.storage.at_h(self.ends_at_bytes)

    def cancel(self) -> None:
        """Stop them."""
        self.storage.stop(self)


class SharedStorage:
    """Flows over one bandwidth, each group with a cap of its own, max-min fairly.

    Sorted by cap, the first flows have their cap, and the others all have the level. An odometer
    counts what each of the others has moved, so that a change of the level touches none of them.
    """

    def __init__(self, env: simpy.Environment, bandwidth_bytes_per_h: float) -> None:
        self._env, self._bandwidth, self._numbers = env, bandwidth_bytes_per_h, count()
        self._by_cap: list[tuple[float, int, Flows]] = []
        self._n_capped = 0  # of these, the first
        self._capped_bytes_per_h = 0.0  # of all flows that have their cap
        self._n_slowed = 0  # flows that have the level
        self._by_end: list[tuple[float, int, Flows]] = []  # those
        self._level = inf
        self._odometer_bytes = self._read_at_h = 0.0
        self._alarm: Alarm | None = None  # of the first that ends at the level

    def start(
        self, n: int, each_bytes: float, cap: float, order: EventPriority, call: Callable[[], None]
    ) -> Flows:
        """Have equal flows begin."""
        self._advance()
        flows = Flows(self, next(self._numbers), n, cap, each_bytes, self._read_at_h, order, call)
        self._enter(flows)
        self._balance([flows])
        return flows

    def stop(self, flows: Flows) -> None:
        """Have flows end, if they are under way; nobody is told."""
        if not flows.is_over:
            flows.is_over = True
            self._advance()
            self._leave(flows)
            self._balance([])

    def change(self, n_now: Mapping[Flows, int], cap: float) -> None:
        """Have other numbers of flows under another cap."""
        self._advance()
        changed = [
            flows for flows, n in n_now.items() if (n, cap) != (flows.n, flows.cap_bytes_per_h)
        ]
        for flows in changed:
            self._leave(flows)
            flows.n, flows.cap_bytes_per_h = n_now[flows], cap
            self._enter(flows)
        if changed:
            self._balance(changed)

    def at_h(self, odometer_bytes: float) -> float:
        """When the odometer comes to this, if the level stays."""
        return self._read_at_h + (odometer_bytes - self._odometer_bytes) / self._level

    def _advance(self) -> None:
        """Read the odometer."""
        now_h = float(self._env.now)
        if self._n_slowed:
            self._odometer_bytes += (now_h - self._read_at_h) * self._level
        self._read_at_h = now_h

    def _enter(self, flows: Flows) -> None:
        """Put flows in, as it stands, with their cap or at the level; `_balance` has to follow."""
        place = bisect_left(self._by_cap, (flows.cap_bytes_per_h, flows.number))
        may = not self._n_slowed or place < self._n_capped
        self._by_cap.insert(place, (flows.cap_bytes_per_h, flows.number, flows))
        self._count(flows, 1, may)

    def _leave(self, flows: Flows) -> None:
        """Take flows out, with what is left of them; `_balance` has to follow."""
        self._unbook(flows)
        del self._by_cap[bisect_left(self._by_cap, (flows.cap_bytes_per_h, flows.number))]
        self._count(flows, -1, flows.is_capped)
        if not self._by_cap:
            self._capped_bytes_per_h = 0.0  # without rounding

    def _count(self, flows: Flows, sign: int, is_capped: bool) -> None:
        flows.is_capped = is_capped
        if is_capped:
            self._n_capped += sign
            self._capped_bytes_per_h += sign * flows.n * flows.cap_bytes_per_h
        else:
            self._n_slowed += sign * flows.n

    def _balance(self, new: list[Flows]) -> None:
        """Find the level, and let those end anew that are new, or have another rate."""
        moved = dict.fromkeys(new)
        while self._n_capped and self._has_too_much(high := self._by_cap[self._n_capped - 1][2]):
            self._count(high, -1, True)
            self._count(high, 1, False)
            moved[high] = None
        while self._n_slowed:
            self._level = (self._bandwidth - self._capped_bytes_per_h) / self._n_slowed
            low = self._by_cap[self._n_capped][2]
            if low.cap_bytes_per_h > self._level * (1.0 + NEAR):
                break
            self._count(low, -1, False)
            self._count(low, 1, True)
            moved[low] = None
        for flows in moved:
            self._book(flows)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._by_end:
            first = self._by_end[0][2]
            left_h = max(0.0, self._by_end[0][0] - self._odometer_bytes) / self._level
            self._alarm = Alarm(self._env, left_h, first.order, partial(self._over, first))
        else:
            self._odometer_bytes = 0.0

    def _has_too_much(self, high: Flows) -> bool:
        """Whether flows with their cap would have less if they had the level."""
        left = self._bandwidth - self._capped_bytes_per_h + high.n * high.cap_bytes_per_h
        return high.cap_bytes_per_h > left / (self._n_slowed + high.n) * (1.0 + 2.0 * NEAR)

    def _book(self, flows: Flows) -> None:
        """Let flows end by an alarm of their own, or by the odometer."""
        if (flows.alarm is not None) if flows.is_capped else (flows.ends_at_bytes is not None):
            return
        self._unbook(flows)
        if flows.is_capped:
            hours = flows.left_bytes / flows.cap_bytes_per_h
            flows.alarm = Alarm(self._env, hours, flows.order, partial(self._over, flows))
        else:
            flows.ends_at_bytes = self._odometer_bytes + flows.left_bytes
            insort(self._by_end, (flows.ends_at_bytes, flows.number, flows))

    def _unbook(self, flows: Flows) -> None:
        """Set down what is left of flows, and how they end no more."""
        if flows.alarm is not None:
            moved = (self._read_at_h - flows.since_h) * flows.cap_bytes_per_h
            flows.left_bytes = max(0.0, flows.left_bytes - moved)
            flows.alarm.cancel()
            flows.alarm = None
        elif flows.ends_at_bytes is not None:
            flows.left_bytes = max(0.0, flows.ends_at_bytes - self._odometer_bytes)
            del self._by_end[bisect_left(self._by_end, (flows.ends_at_bytes, flows.number))]
            flows.ends_at_bytes = None
        flows.since_h = self._read_at_h

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
        cap = self._divide(sum(n_by_bytes.values()), {})
        for size_bytes, n_shards in n_by_bytes.items():
            part = load, size_bytes
            over = partial(self._over, part)
            self._loads[part] = self._storage.start(n_shards, size_bytes, cap, STAGES, over)

    def drop(self, load: Any, n_by_bytes: Mapping[float, int]) -> None:
        """Shards of a load stop, if they still move; it ends at once where none is left."""
        dropped = {(load, one): n for one, n in n_by_bytes.items() if (load, one) in self._loads}
        if dropped:
            self._divide(0, dropped)
            self._end_if_over(load)

    def stop(self, load: Any) -> None:
        """Stop a load, if it is under way."""
        if parts := {part: one.n for part, one in self._loads.items() if part[0] is load}:
            self._divide(0, parts)

    def _over(self, part: Part) -> None:
        self._divide(0, {part: self._loads[part].n})
        self._end_if_over(part[0])

    def _end_if_over(self, load: Any) -> None:
        if all(part[0] is not load for part in self._loads):
            self._on_end(load)

    def _divide(self, n_more: int, dropped: Mapping[Part, int]) -> float:
        """Have a job's loads, some shards more and the dropped no more, divide its bandwidth."""
        for part in [one for one, n in dropped.items() if n == self._loads[one].n]:
            self._storage.stop(self._loads.pop(part))
        n_now = {flows: flows.n - dropped.get(part, 0) for part, flows in self._loads.items()}
        cap = rate_of_each(self._num, max(1, n_more + sum(n_now.values())))
        if n_now:
            self._storage.change(n_now, cap)
        return cap
