"""The storage: its bandwidth is shared evenly by all who save or load at once."""

from __future__ import annotations

from bisect import insort
from collections.abc import Generator

import simpy

from cprsim.records import Storage


class Flows(simpy.Event):
    """Some servers moving a shard each; done when the last byte of all is moved."""

    def __init__(self, env: simpy.Environment, n_servers: int, ends_at_bytes: float) -> None:
        super().__init__(env)
        self.n_servers = n_servers
        self.ends_at_bytes = ends_at_bytes  # on the odometer below


class SharedStorage:
    """Equal flows through one bandwidth (processor sharing).

    All flows move at the same rate, so one odometer, the bytes that a flow would have moved since
    the start of the job, tells when each ends.
    """

    def __init__(self, env: simpy.Environment, storage: Storage) -> None:
        self._env = env
        self._storage = storage
        self._active: list[Flows] = []  # the first to end comes first
        self._odometer_bytes = 0.0
        self._read_at_h = 0.0
        self._alarm: simpy.Timeout | None = None

    def wait_for(self, flows: Flows) -> Generator[simpy.Event, None, None]:
        """Wait for a transfer to end; an interrupt stops the transfer and is passed on."""
        try:
            yield flows
        except simpy.Interrupt:
            self.drop(flows, flows.n_servers)
            raise

    def start(self, n_servers: int, fraction: float = 1.0) -> Flows:
        """Have `n_servers` move their shard, or a fraction of it, each."""
        self._advance()
        ends_at_bytes = self._odometer_bytes + fraction * self._storage.shard_bytes
        flows = Flows(self._env, n_servers, ends_at_bytes)
        insort(self._active, flows, key=lambda flows: flows.ends_at_bytes)
        self._set_alarm()
        return flows

    def drop(self, flows: Flows, n_servers: int) -> None:
        """Some servers of a transfer stop; it ends at once where none is left."""
        if flows not in self._active:  # it ended at this very instant
            return
        self._advance()
        flows.n_servers -= n_servers
        if flows.n_servers == 0:
            self._active.remove(flows)
            flows.succeed()
        self._set_alarm()

    def _rate_bytes_per_h(self) -> float:
        return self._storage.rate_bytes_per_h(sum(flows.n_servers for flows in self._active))

    def _advance(self) -> None:
        if self._active:
            elapsed_h = self._env.now - self._read_at_h
            self._odometer_bytes += elapsed_h * self._rate_bytes_per_h()
        self._read_at_h = self._env.now

    def _set_alarm(self) -> None:
        self._alarm = None
        if self._active:
            left_bytes = max(0.0, self._active[0].ends_at_bytes - self._odometer_bytes)
            self._alarm = self._env.timeout(left_bytes / self._rate_bytes_per_h())
            self._alarm.callbacks.append(self._ring)

    def _ring(self, alarm: simpy.Event) -> None:
        if alarm is not self._alarm:
            return
        self._advance()
        first_end_bytes = self._active[0].ends_at_bytes
        while self._active and self._active[0].ends_at_bytes <= first_end_bytes:
            self._active.pop(0).succeed()
        self._odometer_bytes = first_end_bytes
        self._set_alarm()
