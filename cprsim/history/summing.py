"""Ledgers of several jobs together, and incidents by what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cprsim.history.ledger import LEDGER_PARTS, Charged, JobLedger
from cprsim.records import Estimate

N_WORST = 10


@dataclass(frozen=True, slots=True)
class Total:
    """All jobs together."""

    wall_h: float
    n_failures: int
    n_saves: int
    hours: dict[str, Estimate]  # useful and the parts


def of_all(jobs: Sequence[JobLedger]) -> Total:
    """Sums over jobs; what one log leaves open does not depend on another."""
    names = ("useful", *LEDGER_PARTS)
    draws = {name: np.sum([job.draws[name] for job in jobs], axis=0) for name in names}
    return Total(
        sum(job.wall_h for job in jobs),
        sum(job.n_failures for job in jobs),
        sum(job.n_saves for job in jobs),
        {name: Estimate.of_draws(one) for name, one in draws.items()},
    )


def worst(jobs: Sequence[JobLedger], n: int = N_WORST) -> list[Charged]:
    """The incidents that cost most, the work done again after them included."""
    found = [incident for job in jobs for incident in job.incidents]
    return sorted(found, key=lambda one: -one.hours.mean)[:n]
