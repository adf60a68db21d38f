"""Concurrent exchanges with the sync servers over shared bandwidth."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import simpy

from cprsim.job.intervals import ROUNDING
from cprsim.job.sync_setting import SyncSetting


def fair_rates(n_flows: Sequence[int], in_all: float, of_each: float) -> list[float]:
    """Rate of one flow of each group: max-min fair shares of `in_all`, no group above `of_each`."""
    rates = [0.0] * len(n_flows)
    left, n_left = in_all, sum(n_flows)
    for group in sorted(range(len(n_flows)), key=lambda group: -n_flows[group]):
        rates[group] = min(of_each / n_flows[group], left / n_left)
        left -= rates[group] * n_flows[group]
        n_left -= n_flows[group]
    return rates


class Network:
    """The sync servers' bandwidth, shared by all exchanges; none is faster than its trainer's link.

    All exchanges are equally long and those of one trainer equally fast, so the first to start is
    the first to end, and one odometer per trainer tells when: the bytes that each of its exchanges
    would have moved since the start.
    """

    def __init__(self, env: simpy.Environment, setting: SyncSetting) -> None:
        self._env = env
        self._bytes = setting.exchange_bytes
        self._in_all = setting.server_bandwidth_bytes_per_h
        self._of_each = setting.trainer_bandwidth_bytes_per_h
        self._waiting: list[deque[tuple[float, simpy.Event]]] = [
            deque() for _ in range(setting.n_trainers)
        ]
        self._moved = [0.0] * setting.n_trainers  # bytes, as of `_read_at_h`
        self._rates: dict[int, float] = {}  # of the trainers that exchange
        self._read_at_h = 0.0
        self._alarm: simpy.Timeout | None = None
        self._n_down = 0  # sync servers: each holds a part of the weights, so all wait for it

    def exchange(self, trainer: int) -> simpy.Event:
        """Begin an exchange of a trainer; the event of its end."""
        self._advance()
        exchanged = self._env.event()
        self._waiting[trainer].append((self._moved[trainer] + self._bytes, exchanged))
        self._share()
        return exchanged

    def drop(self, trainer: int) -> None:
        """Discard the exchanges of a lost trainer."""
        self._advance()
        self._waiting[trainer].clear()
        self._share()

    def servers_down(self, n_more: int) -> None:
        """Change the number of sync servers that are down; exchanges stop while any of them is."""
        self._advance()
        self._n_down += n_more
        self._share()

    def _advance(self) -> None:
        elapsed_h = self._env.now - self._read_at_h
        for trainer, rate in self._rates.items():
            self._moved[trainer] += elapsed_h * rate
        self._read_at_h = self._env.now

    def _share(self) -> None:
        active = [trainer for trainer, waiting in enumerate(self._waiting) if waiting]
        if self._n_down or not active:
            self._rates, self._alarm = {}, None
            return
        n_flows = [len(self._waiting[trainer]) for trainer in active]
        self._rates = dict(
            zip(active, fair_rates(n_flows, self._in_all, self._of_each), strict=True)
        )
        left_h = min(
            (self._waiting[trainer][0][0] - self._moved[trainer]) / rate
            for trainer, rate in self._rates.items()
        )
        self._alarm = self._env.timeout(max(0.0, left_h))
        self._alarm.callbacks.append(self._ring)

    def _ring(self, alarm: simpy.Event) -> None:
        if alarm is not self._alarm:  # the shares have changed since it was set
            return
        self._advance()
        for trainer in self._rates:
            waiting = self._waiting[trainer]
            while waiting and waiting[0][0] - self._moved[trainer] <= ROUNDING * self._bytes:
                waiting.popleft()[1].succeed()
        self._share()
