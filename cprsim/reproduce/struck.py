"""Jobs under one policy and failures of one's own: Poisson on any clock, or at given instants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from cprsim.records import Clock, CostBreakdown, Floats
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Policy, Scope
from cprsim.recovery.system import JobFacts
from cprsim.reproduce.systems_claims import NORMAL_95
from cprsim.simulate.blocks import BlockDraws, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures, ScopedStrikes
from cprsim.streams import stream

SEED = 17
FloatsOf = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Poisson:
    """Poisson failures up to an instant of the clock, beyond which there are none."""

    n_replications: int
    drawn: ScopedStrikes

    def strikes(self, n_chunks: int) -> ScopedStrikes:
        """All of them, whatever a job asks for."""
        return self.drawn

    def of(self, replication: int) -> Iterator[ScopedFailure]:
        """Those of one replication, in their order."""
        drawn = self.drawn
        for n in range(*drawn.first[0, replication : replication + 2]):
            slots = slice(*drawn.first_slot[n : n + 2])
            yield ScopedFailure(
                float(drawn.at_h[n]),
                tuple(drawn.slot[slots].tolist()),
                int(drawn.scope[n]),
                tuple(drawn.repair_h[slots].tolist()),
            )


def poisson(
    job: SimulatedJob,
    rates_per_h: Sequence[float],
    n_replications: int,
    until_h: float,
    name: str,
    together: int = 1,
) -> Poisson:
    """Failures of each scope at its rate, of so many slots drawn at random each time."""
    rng = stream(SEED, 0, name)
    counts = rng.poisson(sum(rates_per_h) * until_h, n_replications)
    n = int(counts.sum())
    row = np.repeat(np.arange(n_replications), counts)
    at_h = rng.uniform(0.0, until_h, n)
    at_h = at_h[np.lexsort((at_h, row))]
    scope = rng.choice(len(rates_per_h), n, p=np.array(rates_per_h) / sum(rates_per_h))
    many = range(job.cluster.n_nodes)
    if together == 1:
        slot = rng.integers(0, len(many), n)
    else:
        slot = np.argsort(rng.random((n, len(many))), axis=1)[:, :together].reshape(-1)
    return Poisson(
        n_replications,
        ScopedStrikes(
            inf, np.concatenate([[0], np.cumsum(counts)])[None, :], at_h, scope.astype(np.int64),
            together * np.arange(n + 1), slot.astype(np.int64), np.zeros(together * n),
        ),
    )  # fmt: skip


def job_of(
    facts: JobFacts, policy: Policy, clock: Clock, scopes: tuple[Scope, ...] | None = None,
    horizon_h: float | None = None,
) -> SimulatedJob:  # fmt: skip
    """A job; its scopes are those of the facts unless others are given."""
    scopes = facts.scopes if scopes is None else scopes
    require_legal(policy, facts.cluster, scopes)
    return SimulatedJob(facts.useful_h, facts.cluster, clock, scopes, policy, horizon_h)


def ran(job: SimulatedJob, failures: Poisson | GivenFailures) -> CostBreakdown:
    """Where the hours of all replications went."""
    n = failures.n_replications
    return run_block(job, failures, BlockDraws(job, SEED, 0, n, range(n)), range(n)).costs


def mean_of(values: Floats) -> list[float]:
    """Mean and the ends of its 95 % interval."""
    mean = float(values.mean())
    half = NORMAL_95 * float(values.std(ddof=1)) / sqrt(len(values))
    return [mean, mean - half, mean + half]


def ratio_of(above: FloatsOf, below: FloatsOf) -> list[float]:
    """Ratio of two means over replications, and the ends of its 95 % interval."""
    ratio = float(above.mean() / below.mean())
    half = NORMAL_95 * float((above - ratio * below).std(ddof=1)) / sqrt(len(above))
    half /= float(below.mean())
    return [ratio, ratio - half, ratio + half]


def scaled(found: Sequence[float], by: float) -> list[float]:
    """A value and its ends, each over a number."""
    return [one / by for one in found]
