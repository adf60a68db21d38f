"""One replication by the compiled engine, from the same failures and draws as by the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cprsim.simulate.fast import replications
from cprsim.simulate.fast.state import JOB, Drawn, slots_of
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import LOSS, OF_JOB, WANTS_COSTS, WANTS_SAVES, numbers_of
from cprsim.simulate.strikes import ScopedStrikes
from tests.recovery.random_policies import RandomDraws

N_DRAWN = 64  # at first


def run(
    job: SimulatedJob,
    failures: Sequence[ScopedFailure],
    draws: RandomDraws,
    loop: Callable[..., int] = replications.run,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Status, wall, useful and stale hours; hours by part; failures and saves."""
    numbers, tables = numbers_of(job)
    strikes = ScopedStrikes(
        np.inf,
        np.array([[0, len(failures)]]),
        np.array([f.at_h for f in failures], dtype=float),
        np.array([f.scope for f in failures], dtype=np.int64),
        np.cumsum([0, *(len(f.slots) for f in failures)]),
        np.array([slot for f in failures for slot in f.slots], dtype=np.int64),
        np.array([h for f in failures for h in f.repair_h], dtype=float),
    )
    keys = np.array([[draws.key(c.tier)] for c in job.policy.captures], dtype=np.int64)
    n_drawn = N_DRAWN
    while True:
        drawn = Drawn(
            _drawn([name for name, _ in tables.of_saves], n_drawn, draws),
            _drawn([name for name, _ in tables.of_failures], n_drawn, draws),
            keys.reshape(-1, 1),
        )
        hours = np.zeros((OF_JOB + len(job.policy.parts), 1))
        counts = np.zeros((3, 1), dtype=np.int64)
        losses = np.zeros(0, LOSS)
        loop(
            numbers, drawn, strikes, np.arange(1), np.zeros(1, JOB), slots_of(job),
            hours, counts, losses, False,
        )  # fmt: skip
        if counts[0, 0] != WANTS_COSTS and counts[0, 0] != WANTS_SAVES:
            return int(counts[0, 0]), hours[:3, 0], hours[OF_JOB:, 0], counts[1:, 0]
        n_drawn *= 4


def _drawn(names: list[str], n: int, draws: RandomDraws) -> np.ndarray:
    return np.array([[[draws.hours(name, k)] for k in range(n)] for name in names]).reshape(
        len(names), n, 1
    )
