"""One replication by the compiled loop, from the same failures and draws as by the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cprsim.simulate import loop
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.loop_state import JOB, RECOVERY, Drawn, slots_of
from cprsim.simulate.numbers import (
    LOSS,
    OF_JOB,
    WANTS_COSTS,
    WANTS_ROOM,
    WANTS_SAVES,
    numbers_of,
)
from cprsim.simulate.strikes import GivenFailures
from tests.recovery.random_policies import RandomDraws

N_DRAWN, N_RECOVERIES = 64, 4  # at first


def run(
    job: SimulatedJob,
    failures: Sequence[ScopedFailure],
    draws: RandomDraws,
    by: Callable[..., int] = loop.run,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Status, wall, useful and stale hours; hours by part; failures and saves."""
    numbers, tables = numbers_of(job)
    strikes = GivenFailures((tuple(failures),)).strikes(1)
    keys = np.array([[draws.key(c.tier)] for c in job.policy.captures], dtype=np.int64)
    n_drawn, n_recoveries = N_DRAWN, N_RECOVERIES
    while True:
        drawn = Drawn(
            _drawn([name for name, _ in tables.of_saves], n_drawn, draws),
            _drawn([name for name, _ in tables.of_failures], n_drawn, draws),
            keys.reshape(-1, 1),
        )
        hours = np.zeros((OF_JOB + len(job.policy.parts), 1))
        counts = np.zeros((3, 1), dtype=np.int64)
        by(
            numbers, drawn, strikes, np.arange(1), np.zeros(1, JOB), slots_of(job),
            np.zeros(n_recoveries, RECOVERY), hours, counts, np.zeros(0, LOSS), False,
        )  # fmt: skip
        status = int(counts[0, 0])
        if status not in (WANTS_COSTS, WANTS_SAVES, WANTS_ROOM):
            return status, hours[:3, 0], hours[OF_JOB:, 0], counts[1:, 0]
        n_drawn *= 1 + (status in (WANTS_COSTS, WANTS_SAVES))
        n_recoveries *= 1 + (status == WANTS_ROOM)


def _drawn(names: list[str], n: int, draws: RandomDraws) -> np.ndarray:
    return np.array([[[draws.hours(name, k)] for k in range(n)] for name in names]).reshape(
        len(names), n, 1
    )
