"""The storage that all jobs share: its bandwidth is divided max-min fairly; by SimPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import simpy
from simpy.events import EventPriority

from cprsim.simulate.events.alarms import STAGES, Alarm
from cprsim.simulate.numbers import Numbers
from cprsim.simulate.transitions import rate_of_each


@dataclass(slots=True, eq=False)
class Flows:
    """Equal flows of one save or load, none of them faster than `cap_bytes_per_h`."""

    storage: SharedStorage
    n: int
    left_bytes: float  # of each
    cap_bytes_per_h: float
    order: EventPriority
    call: Callable[[], None]  # when all bytes have moved
    rate_bytes_per_h: float = 0.0
    since_h: float = 0.0
    alarm: Alarm | None = field(default=None)

    @property
    def at_h(self) -> float:
        """When they end, if nobody else begins or ends before."""
        return inf if self.alarm is None else self.alarm.at_h

    def cancel(self) -> None:
        """Stop them."""
        self.storage.stop(self)


def level_of(flows: list[Flows], bandwidth_bytes_per_h: float) -> float:
    """The rate that no flow exceeds, so that all share the bandwidth max-min fairly.

    Infinite where everybody can have its cap. Each flow has the smaller of cap and level.
    """
    left, n_left = bandwidth_bytes_per_h, sum(one.n for one in flows)
    for one in sorted(flows, key=lambda one: one.cap_bytes_per_h):
        if one.cap_bytes_per_h * n_left > left:
            return left / n_left
        left -= one.n * one.cap_bytes_per_h
        n_left -= one.n
    return inf


class SharedStorage:
    """Flows over one bandwidth, each group with a cap of its own."""

    def __init__(self, env: simpy.Environment, bandwidth_bytes_per_h: float) -> None:
        self._env, self._bandwidth = env, bandwidth_bytes_per_h
        self._flows: dict[Flows, None] = {}
        self._demand = 0.0
        self._level = inf

    def start(
        self, n: int, each_bytes: float, cap: float, order: EventPriority, call: Callable[[], None]
    ) -> Flows:
        """Have equal flows begin."""
        flows = Flows(self, n, each_bytes, cap, order, call, since_h=float(self._env.now))
        self._flows[flows] = None
        self._demand += n * cap
        self._share([flows])
        return flows

    def stop(self, flows: Flows) -> None:
        """Have flows end, if they are under way; nobody is told."""
        if flows not in self._flows:
            return
        del self._flows[flows]
        self._silence(flows)
        self._demand -= flows.n * flows.cap_bytes_per_h
        if not self._flows:
            self._demand = 0.0  # without rounding
        self._share([])

    def change(self, some: list[Flows], n: list[int], cap: float) -> None:
        """Have other numbers of flows under another cap."""
        for flows, n_now in zip(some, n, strict=True):
            self._demand += n_now * cap - flows.n * flows.cap_bytes_per_h
            flows.n, flows.cap_bytes_per_h = n_now, cap
        self._share(some)

    def _share(self, touched: list[Flows]) -> None:
        """Give each its rate anew, where that has changed."""
        is_free = self._demand <= self._bandwidth * (1.0 - 1e-12)
        level = inf if is_free else level_of(list(self._flows), self._bandwidth)
        same = level == self._level == inf
        self._level = level
        for flows in touched if same else list(self._flows):
            self._set_rate(flows, min(flows.cap_bytes_per_h, level))

    def _set_rate(self, flows: Flows, rate: float) -> None:
        if rate == flows.rate_bytes_per_h and flows.alarm is not None:
            return
        now_h = float(self._env.now)
        flows.left_bytes -= (now_h - flows.since_h) * flows.rate_bytes_per_h
        flows.since_h, flows.rate_bytes_per_h = now_h, rate
        self._silence(flows)
        delay_h = max(0.0, flows.left_bytes) / rate
        flows.alarm = Alarm(self._env, delay_h, flows.order, lambda: self._over(flows))

    def _silence(self, flows: Flows) -> None:
        if flows.alarm is not None:
            flows.alarm.cancel()
            flows.alarm = None

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
        self._loads: dict[Any, Flows] = {}

    @property
    def next_at_h(self) -> float:
        """Before which no load ends: now, where one is under way, as others decide when."""
        return float(self._env.now) if self._loads else inf

    def start(self, load: Any, n_shards: int) -> None:
        """Have the shards of a load move; `on_end` is called with it when they have."""
        n_all = n_shards + sum(flows.n for flows in self._loads.values())
        cap = rate_of_each(self._num, n_all)
        self._slow_down(cap)
        self._loads[load] = self._storage.start(
            n_shards, self._num.shard_bytes, cap, STAGES, lambda: self._over(load)
        )

    def drop(self, load: Any, n_shards: int) -> None:
        """Some shards of a load stop; it ends at once where none is left."""
        if load not in self._loads:
            return
        flows = self._loads[load]
        if flows.n == n_shards:
            self.stop(load)
            self._on_end(load)
            return
        n = [one.n - (n_shards if one is flows else 0) for one in self._loads.values()]
        self._storage.change(list(self._loads.values()), n, rate_of_each(self._num, sum(n)))

    def stop(self, load: Any) -> None:
        """Stop a load, if it is under way."""
        if load in self._loads:
            self._storage.stop(self._loads.pop(load))
            self._speed_up()

    def _over(self, load: Any) -> None:
        del self._loads[load]
        self._speed_up()
        self._on_end(load)

    def _slow_down(self, cap: float) -> None:
        flows = list(self._loads.values())
        if flows:
            self._storage.change(flows, [one.n for one in flows], cap)

    def _speed_up(self) -> None:
        n_all = sum(flows.n for flows in self._loads.values())
        if n_all:
            self._slow_down(rate_of_each(self._num, n_all))
