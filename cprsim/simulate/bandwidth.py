"""The bandwidth that saves and loads share max-min fairly, by SimPy."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf
from typing import Any

import simpy
from simpy.events import EventPriority

from cprsim.simulate.numbers import link_of
from cprsim.simulate.running import Alarm, Recovery, Running, SetAlarm
from cprsim.simulate.transitions import rate_of_each

ROUNDING = 1e-12  # of a rate


@dataclass(slots=True, eq=False)
class Flows:
    """Equal flows of one save or load: at their cap, with an alarm, or at the bandwidth's level."""

    bandwidth: SharedStorage
    number: int  # in the order in which they began
    set_alarm: SetAlarm  # of their job
    n: int
    cap_bytes_per_h: float
    order: EventPriority
    call: Any  # when all bytes have moved
    left_bytes: float  # of each, at `since_h`
    since_h: float = 0.0
    is_capped: bool = False
    alarm: Alarm | None = None
    ends_at_bytes: float = inf  # on the odometer of those at the level

    @property
    def key(self) -> tuple[float, int, Flows]:
        return self.cap_bytes_per_h, self.number, self

    def cancel(self) -> None:
        """Stop them."""
        self.bandwidth.change({self: 0}, self.cap_bytes_per_h)


class SharedStorage:
    """Flows that share one bandwidth max-min fairly, each group with a cap of its own.

    Those with the lowest caps have their cap, all others have one level. An odometer counts the
    bytes that each of the others has moved, so that a change of the level touches none of them.
    """

    def __init__(self, env: simpy.Environment, bytes_per_h: float = inf) -> None:
        self._env, self._bytes_per_h, self._numbers = env, bytes_per_h, count()
        self._capped: list[tuple[float, int, Flows]] = []  # by cap
        self._slowed: list[tuple[float, int, Flows]] = []  # by cap
        self._by_end: list[tuple[float, int, Flows]] = []  # the slowed
        self._capped_bytes_per_h = 0.0
        self._n_slowed = 0  # flows
        self.level_bytes_per_h = inf  # of each that has less than its cap
        self._odometer_bytes = self._read_at_h = 0.0
        self._alarms: dict[Alarm, None] = {}
        self._alarm: Alarm | None = None  # of the first of the slowed that ends

    def start(
        self, set_alarm: SetAlarm, n: int, each_bytes: float, cap: float, order: EventPriority,
        call: Callable[[], object],
    ) -> Flows:  # fmt: skip
        """Equal flows begin."""
        number = next(self._numbers)
        flows = Flows(self, number, set_alarm, 0, cap, order, call, each_bytes)
        self.change({flows: n}, cap)
        return flows

    def change(self, n_now: Mapping[Flows, int], cap: float) -> None:
        """Flows are as many from now on, under this cap; none: they end without a call."""
        changed = [o for o, n in n_now.items() if n != o.n or cap != o.cap_bytes_per_h]
        if not changed:
            return
        now_h = float(self._env.now)
        if self._slowed:
            self._odometer_bytes += (now_h - self._read_at_h) * self.level_bytes_per_h
        self._read_at_h = now_h
        for flows in changed:
            if flows.n:
                self._pause(flows)
                self._take(flows)
            flows.n, flows.cap_bytes_per_h = n_now[flows], cap
            if flows.n:
                self._put(flows, capped=False)
        self._balance({flows: None for flows in changed if flows.n})

    def _put(self, flows: Flows, *, capped: bool) -> None:
        flows.is_capped = capped
        insort(self._capped if capped else self._slowed, flows.key)
        self._count(flows, 1)

    def _take(self, flows: Flows) -> None:
        some = self._capped if flows.is_capped else self._slowed
        del some[bisect_left(some, flows.key)]
        self._count(flows, -1)

    def _count(self, flows: Flows, sign: int) -> None:
        if not flows.is_capped:
            self._n_slowed += sign * flows.n
        elif self._capped:
            self._capped_bytes_per_h += sign * flows.n * flows.cap_bytes_per_h
        else:
            self._capped_bytes_per_h = 0.0  # without rounding

    def _balance(self, moved: dict[Flows, None]) -> None:
        """Find the level; flows that changed, or cross it, get another end."""
        while self._capped and self._has_too_much(high := self._capped[-1][2]):
            self._take(high)
            self._put(high, capped=False)
            moved[high] = None
        while self._slowed:
            self.level_bytes_per_h = (self._bytes_per_h - self._capped_bytes_per_h) / self._n_slowed
            low = self._slowed[0][2]
            if low.cap_bytes_per_h > self.level_bytes_per_h * (1.0 + ROUNDING):
                break
            self._take(low)
            self._put(low, capped=True)
            moved[low] = None
        for flows in moved:
            self._resume(flows)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._by_end:
            ends_at_bytes, _, first = self._by_end[0]
            left_h = max(0.0, ends_at_bytes - self._odometer_bytes) / self.level_bytes_per_h
            over = partial(self._over, first)
            self._alarm = Alarm(self._env, left_h, first.order, over, self._alarms)
        else:
            self._odometer_bytes = 0.0

    def _has_too_much(self, high: Flows) -> bool:
        """Whether flows with their cap would have less at the level."""
        left = self._bytes_per_h - self._capped_bytes_per_h + high.n * high.cap_bytes_per_h
        return high.cap_bytes_per_h > left / (self._n_slowed + high.n) * (1.0 + 2.0 * ROUNDING)

    def _resume(self, flows: Flows) -> None:
        """Let flows end by an alarm of their own, or by the odometer."""
        if flows.is_capped and flows.alarm is None:
            self._pause(flows)
            hours = flows.left_bytes / flows.cap_bytes_per_h
            flows.alarm = flows.set_alarm(hours, flows.order, partial(self._over, flows))
        elif not flows.is_capped and flows.ends_at_bytes == inf:
            self._pause(flows)
            flows.ends_at_bytes = self._odometer_bytes + flows.left_bytes
            insort(self._by_end, (flows.ends_at_bytes, flows.number, flows))

    def _pause(self, flows: Flows) -> None:
        """Note what is left of flows; they have no end until they are resumed."""
        if flows.alarm is not None:
            moved_bytes = (self._read_at_h - flows.since_h) * flows.cap_bytes_per_h
            flows.left_bytes = max(0.0, flows.left_bytes - moved_bytes)
            flows.alarm.cancel()
            flows.alarm = None
        elif flows.ends_at_bytes < inf:
            flows.left_bytes = max(0.0, flows.ends_at_bytes - self._odometer_bytes)
            del self._by_end[bisect_left(self._by_end, (flows.ends_at_bytes, flows.number))]
            flows.ends_at_bytes = inf
        flows.since_h = self._read_at_h

    def _over(self, flows: Flows) -> None:
        self.change({flows: 0}, flows.cap_bytes_per_h)
        call, flows.call = flows.call, None  # no cycle of references for the garbage collector
        call()


class Link:
    """The link of a job: its loads share it evenly, shard by shard, and so the cluster's storage.

    Shards may differ in size: those that still move share what the others leave.
    """

    def __init__(self, job: Running) -> None:
        self._job = job
        self._flows: dict[Recovery, dict[float, Flows]] = {}  # by bytes of a shard

    @property
    def is_used(self) -> bool:
        """Whether a load is under way."""
        return bool(self._flows)

    def start(self, load: Recovery, shards: Collection[int]) -> None:
        """Shards begin to move; their recovery goes on when all of them have moved."""
        n_by_bytes, bandwidth = self._n_by_bytes(shards), self._job.cluster.storage
        cap = self._divide({}, sum(n_by_bytes.values()))
        moved, order = partial(self._move_on, load, {}), load.order
        self._flows[load] = {
            size: bandwidth.start(self._job.at, n, size, cap, order, moved)
            for size, n in n_by_bytes.items()
        }

    def drop(self, load: Recovery, shards: Collection[int]) -> None:
        """Shards of a load stop, if it is under way; it ends if that were the last."""
        if flows := self._flows.get(load):
            fewer = self._n_by_bytes(shards)
            n_now = {group: group.n - fewer.get(size, 0) for size, group in flows.items()}
            self._move_on(load, n_now)

    def stop(self, load: Recovery) -> None:
        """A load stops, if it is under way."""
        if flows := self._flows.pop(load, None):
            self._divide(dict.fromkeys(flows.values(), 0))

    def _move_on(self, load: Recovery, n_now: Mapping[Flows, int]) -> None:
        """Shards have moved, or stop."""
        self._job.book()
        self._divide(n_now)
        self._flows[load] = {size: group for size, group in self._flows[load].items() if group.n}
        if not self._flows[load]:
            del self._flows[load]
            self._job.go_on(load)
        self._job.decide()

    def _divide(self, n_now: Mapping[Flows, int], n_more: int = 0) -> float:
        """The flows share the link: bytes per hour of each."""
        flows = {group: group.n for of in self._flows.values() for group in of.values()}
        flows |= n_now
        cap = rate_of_each(self._job.num, max(1, n_more + sum(flows.values())))
        self._job.cluster.storage.change(flows, cap)
        return cap

    def _n_by_bytes(self, shards: Collection[int]) -> dict[float, int]:
        job = self._job.job
        return link_of(job.policy).n_by_bytes(shards, job.cluster.shard_slots.start)
