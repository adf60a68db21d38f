"""A bandwidth that saves and loads share max-min fairly, by SimPy."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf

import simpy
from simpy.events import EventPriority

from cprsim.simulate.alarms import Alarm, SetAlarm

ROUNDING = 1e-12  # of a rate


@dataclass(slots=True, eq=False)
class Flows:
    """Equal flows of one save or load: at their cap, with an alarm, or at the bandwidth's level."""

    bandwidth: Bandwidth
    number: int  # in the order in which they began
    set_alarm: SetAlarm  # of their job
    n: int
    cap_bytes_per_h: float
    order: EventPriority
    call: Callable[[], object]  # when all bytes have moved
    left_bytes: float  # of each, at `since_h`
    since_h: float = 0.0
    alarm: Alarm | None = None
    ends_at_bytes: float = inf  # on the odometer of those at the level

    @property
    def key(self) -> tuple[float, int, Flows]:
        return self.cap_bytes_per_h, self.number, self

    @property
    def at_h(self) -> float:
        """When they end, if no other flows begin or end before."""
        return self.bandwidth.at_h(self.ends_at_bytes) if self.alarm is None else self.alarm.at_h

    def cancel(self) -> None:
        """Stop them."""
        self.bandwidth.change({self: 0}, self.cap_bytes_per_h)


class Bandwidth:
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
        self._level = inf
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
        changed = {one: n for one, n in n_now.items() if (n, cap) != (one.n, one.cap_bytes_per_h)}
        if not changed:
            return
        now_h = float(self._env.now)
        if self._slowed:
            self._odometer_bytes += (now_h - self._read_at_h) * self._level
        self._read_at_h = now_h
        for flows, n in changed.items():
            if flows.n:
                self._pause(flows)
                self._remove(flows)
            flows.n, flows.cap_bytes_per_h = n, cap
            if n:
                self._add(flows, slowed=True)
        self._balance(dict.fromkeys(flows for flows, n in changed.items() if n))

    def at_h(self, odometer_bytes: float) -> float:
        """When the odometer comes to this, if the level stays."""
        return self._read_at_h + (odometer_bytes - self._odometer_bytes) / self._level

    def _add(self, flows: Flows, *, slowed: bool) -> None:
        insort(self._slowed if slowed else self._capped, flows.key)
        if slowed:
            self._n_slowed += flows.n
        else:
            self._capped_bytes_per_h += flows.n * flows.cap_bytes_per_h

    def _remove(self, flows: Flows) -> None:
        place = bisect_left(self._slowed, flows.key)
        if place < len(self._slowed) and self._slowed[place][2] is flows:
            del self._slowed[place]
            self._n_slowed -= flows.n
        else:
            del self._capped[bisect_left(self._capped, flows.key)]
            self._capped_bytes_per_h -= flows.n * flows.cap_bytes_per_h
            if not self._capped:
                self._capped_bytes_per_h = 0.0  # without rounding

    def _balance(self, moved: dict[Flows, None]) -> None:
        """Find the level; flows that changed, or cross it, get another end."""
        while self._capped and self._has_too_much(high := self._capped[-1][2]):
            self._remove(high)
            self._add(high, slowed=True)
            moved[high] = None
        while self._slowed:
            self._level = (self._bytes_per_h - self._capped_bytes_per_h) / self._n_slowed
            low = self._slowed[0][2]
            if low.cap_bytes_per_h > self._level * (1.0 + ROUNDING):
                break
            self._remove(low)
            self._add(low, slowed=False)
            moved[low] = None
        n_capped = len(self._capped)
        for flows in moved:
            place = bisect_left(self._capped, flows.key)
            self._resume(flows, is_capped=place < n_capped and self._capped[place][2] is flows)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._by_end:
            ends_at_bytes, _, first = self._by_end[0]
            left_h = max(0.0, ends_at_bytes - self._odometer_bytes) / self._level
            over = partial(self._over, first)
            self._alarm = Alarm(self._env, left_h, first.order, over, self._alarms)
        else:
            self._odometer_bytes = 0.0

    def _has_too_much(self, high: Flows) -> bool:
        """Whether flows with their cap would have less at the level."""
        left = self._bytes_per_h - self._capped_bytes_per_h + high.n * high.cap_bytes_per_h
        return high.cap_bytes_per_h > left / (self._n_slowed + high.n) * (1.0 + 2.0 * ROUNDING)

    def _resume(self, flows: Flows, *, is_capped: bool) -> None:
        """Let flows end by an alarm of their own, or by the odometer."""
        if is_capped and flows.alarm is None:
            self._pause(flows)
            hours = flows.left_bytes / flows.cap_bytes_per_h
            flows.alarm = flows.set_alarm(hours, flows.order, partial(self._over, flows))
        elif not is_capped and flows.ends_at_bytes == inf:
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
        flows.call()
