"""Ledgers of several jobs together, along the calendar, and incidents by what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from cprsim.estimate import Estimate
from cprsim.history.ledger import LEDGER_PARTS, Charged, JobLedger

N_WORST = 10
N_PERIODS = 12
NS_PER_H = 3600e9


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


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """A stretch of the calendar."""

    from_ns: int
    wall_h: float  # of all jobs in it
    useful_h: float
    steps_per_h: float  # of the steps that were kept; NaN where a job has no pace
    n_failures: int

    @property
    def ettr(self) -> float:
        """Useful hours over wall hours."""
        return self.useful_h / self.wall_h if self.wall_h > 0 else nan


def over_time(jobs: Sequence[JobLedger], n_periods: int = N_PERIODS) -> list[CalendarPeriod]:
    """Equal stretches of the calendar from the first job's start to the last one's end."""
    begins = min(job.begins_ns for job in jobs)
    ends_h = [(job.begins_ns - begins) / NS_PER_H + job.wall_h for job in jobs]
    if max(ends_h) <= 0:
        return []
    edges_h = np.linspace(0.0, max(ends_h), n_periods + 1)
    wall_h, useful_h, steps = np.zeros(n_periods), np.zeros(n_periods), np.zeros(n_periods)
    failures = np.zeros(n_periods, dtype=np.int64)
    for job in jobs:
        from_h = (job.begins_ns - begins) / NS_PER_H
        wall_h += _spread([(0.0, job.wall_h)], edges_h - from_h)
        mine_h = _spread(
            [(a, b) for a, b, part in job.pieces if part == "useful"], edges_h - from_h
        )
        useful_h += mine_h
        steps += mine_h * 3600.0 / job.step_s
        at_h = np.array([one.at_h for one in job.incidents]) + from_h
        failures += np.histogram(at_h, edges_h)[0]
    return [
        CalendarPeriod(
            begins + round(float(edge) * NS_PER_H), float(wall), float(useful),
            float(made / wall) if wall > 0 else nan, int(n),
        )
        for edge, wall, useful, made, n in zip(
            edges_h[:-1], wall_h, useful_h, steps, failures, strict=True
        )
    ]  # fmt: skip


def _spread(pieces: Sequence[tuple[float, float]], edges_h: np.ndarray) -> np.ndarray:
    """Hours of stretches of time within each of some periods."""
    if not pieces:
        return np.zeros(len(edges_h) - 1)
    begins, ends = np.array(pieces, dtype=np.float64).T
    passed = [np.clip(edge - begins, 0.0, ends - begins).sum() for edge in edges_h]
    return np.diff(np.array(passed))
