"""Running replications: a SimPy environment each, and the event log that comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import simpy
from simpy.core import StopSimulation

from cprsim.budget import memory_bytes
from cprsim.cluster.job import Job
from cprsim.cluster.log import event_log
from cprsim.draws import CostDraws
from cprsim.failures.block import BlockFailures
from cprsim.records import STOPPED_BEYOND, EventLog, Failure, RecoveryPolicy
from cprsim.setting import JobSetting, SavePlan

EVENTS_SHARE = 0.08  # of the budget: folding takes several times as much


@dataclass(frozen=True, slots=True)
class Block:
    """A block of replications: its failures and cost draws, the same for all policies."""

    setting: JobSetting
    number: int
    failures: BlockFailures
    costs: CostDraws

    def simulate(self, policy: RecoveryPolicy, replications: Iterable[int]) -> EventLog:
        """Run some replications, numbered within the block, and log what happens."""
        saves = SavePlan.of(policy, self.setting.useful_h)
        return event_log(
            self._replicate(policy, saves, replication) for replication in replications
        )

    def simulate_in_parts(
        self, policy: RecoveryPolicy, replications: Iterable[int]
    ) -> Iterator[EventLog]:
        """As `simulate`, a log of as many replications at a time as there is room for."""
        saves = SavePlan.of(policy, self.setting.useful_h)
        most_bytes, n_bytes = EVENTS_SHARE * memory_bytes(), 0
        rows: list[bytearray] = []
        for replication in replications:
            rows.append(self._replicate(policy, saves, replication))
            n_bytes += len(rows[-1])
            if n_bytes > most_bytes:
                yield event_log(rows)
                rows, n_bytes = [], 0
        if rows:
            yield event_log(rows)

    def _replicate(self, policy: RecoveryPolicy, saves: SavePlan, replication: int) -> bytearray:
        first = self.failures.replications.start
        return replicate(
            self.setting,
            policy,
            saves,
            self.costs,
            self.failures.of(replication),
            replication,
            first + replication,
        )


def replicate(
    setting: JobSetting,
    policy: RecoveryPolicy,
    saves: SavePlan,
    costs: CostDraws,
    failures: Iterator[Failure],
    replication: int = 0,
    row_number: int = 0,
) -> bytearray:
    """Run one replication to its end, or until it is given up; the events that it wrote.

    Parameters
    ----------
    replication : number within the block, which addresses the draws of costs
    row_number : number that the rows carry
    """
    env = simpy.Environment()
    job = Job(env, setting, policy, saves, costs, failures, replication, row_number)
    deadline = env.timeout(STOPPED_BEYOND * setting.useful_h)
    deadline.callbacks.append(StopSimulation.callback)
    env.run(until=job.process)
    if job.process.is_alive:
        job.stop()
    return job.rows
