"""The jobs of a fleet on one clock, event by event, by SimPy.

Each job is a replication of `simulate.events` that lives in surroundings which it shares: it gets
its nodes from the fleet's pool, and its saves and loads go over the fleet's storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import simpy

from cprsim.fleets.nodes import NodePool, NodesOfJob
from cprsim.fleets.storage import LinkOfJob, SharedStorage
from cprsim.scenario.fleet import Fleet
from cprsim.simulate.events.alarms import JOB, SAVES, Alarm
from cprsim.simulate.events.replication import Replication, Save
from cprsim.simulate.job import ReplicationDraws, ReplicationOutcome, ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import Numbers


@dataclass(frozen=True, slots=True)
class JobToRun:
    """A job, its failures, and which of its saves go over the shared storage.

    Such a save takes `n_flows` flows; one of so many hours for a job alone has moved hours x
    `cap_bytes_per_h` bytes in each.
    """

    job: SimulatedJob
    num: Numbers  # of the job
    n_nodes: int
    remote: frozenset[int]  # captures
    n_flows: int
    cap_bytes_per_h: float
    failures: Iterator[ScopedFailure]
    draws: ReplicationDraws


def run_jobs(
    section: Fleet, arrive_h: Sequence[float], to_run: Callable[[int], JobToRun]
) -> list[tuple[float, ReplicationOutcome]]:
    """When each job begins, and what becomes of it; `to_run` makes it as it arrives, by number."""
    fleet = _Shared(section)
    ran: dict[int, tuple[float, ReplicationOutcome]] = {}

    def arrives(number: int) -> None:
        job = to_run(number)
        fleet.nodes.arrive(job.n_nodes, lambda: _JobInFleet(fleet, job, partial(ends, number)))

    def ends(number: int, began_h: float, outcome: ReplicationOutcome) -> None:
        ran[number] = began_h, outcome

    for number, at_h in enumerate(arrive_h):
        Alarm(fleet.env, at_h, JOB, partial(arrives, number))
    fleet.env.run()
    return [ran[number] for number in range(len(arrive_h))]


class _Shared:
    """What the jobs of a fleet share."""

    def __init__(self, section: Fleet) -> None:
        self.env = simpy.Environment()
        self.nodes = NodePool(self.env, section.nodes, section.spares)
        self.storage = SharedStorage(self.env, section.storage_bytes_per_h or inf)


class _JobInFleet(Replication):
    """One job among others."""

    def __init__(
        self, fleet: _Shared, to_run: JobToRun, on_end: Callable[[float, ReplicationOutcome], None]
    ) -> None:
        self._fleet, self._to_run, self._on_over = fleet, to_run, on_end
        super().__init__(to_run.job, to_run.failures, to_run.draws, False, not to_run.remote, self)

    # what `simulate.events.Surroundings` asks for

    @property
    def env(self) -> simpy.Environment:
        return self._fleet.env

    @property
    def num(self) -> Numbers:
        return self._to_run.num

    def nodes_for(self, on_node: Callable[[], None]) -> NodesOfJob:
        self._nodes = NodesOfJob(self._fleet.nodes, on_node)
        return self._nodes

    def link_for(self, num: Numbers, on_end: Callable[[Any], None]) -> LinkOfJob:
        return LinkOfJob(self._fleet.storage, self._fleet.env, num, on_end)

    # what is otherwise than in a job alone

    def _set_alarm(self, save: Save, delay_h: float, call: Callable[[Save], None]) -> None:
        if save.capture not in self._to_run.remote:
            super()._set_alarm(save, delay_h, call)
            return
        cap = self._to_run.cap_bytes_per_h
        save.alarm = self._fleet.storage.start(
            self._to_run.n_flows, delay_h * cap, cap, SAVES, partial(call, save)
        )

    def _end(self, finished: bool) -> None:
        super()._end(finished)
        for alarm in (self._step, self._last, self._failure_alarm):
            if alarm is not None:
                alarm.cancel()
        saves = [one for some in self._in_flight for one in some]
        for save in [*saves, *([] if self._stalling is None else [self._stalling])]:
            save.alarm.cancel()
        for recovery in list(self._recoveries):
            self._stop_recovery(recovery)
        assert self._outcome is not None
        self._on_over(self._began_at_h, self._outcome)
        self._fleet.nodes.leave(self._to_run.n_nodes, self._nodes)
        vars(self).clear()  # no circle of references: what the job took of memory is free at once
