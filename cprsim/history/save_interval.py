"""How often a job saved whose log tells no saves: by where it went back to, and from where."""

from __future__ import annotations

from itertools import pairwise
from math import inf, isfinite, nan, sqrt

import numpy as np

from cprsim.history.course import JobCourse
from cprsim.records import Z_95, Estimate, Floats

MOST_OPEN = 3.0  # times the shortest interval that fits: the longest, else it can't be told
LATE_SHARE = 0.1  # of the failures may lose more than an interval: they struck a save


def save_interval_of(course: JobCourse, every_steps: float) -> Estimate:
    """Steps between saves: the rule that the log's own follow (`every_steps`), or what fits it.

    Infinite where the job never saved, NaN where that can't be told. The ends are what else fits
    where the steps at which the job went on are all that shows it, else NaN.

    Assumed of those: saves every so many steps, and failures that know nothing of them. Then the
    steps that a failure loses are even from 0 to an interval, and the saved steps are multiples of
    it: of all divisors of their greatest common one that are no shorter than what was lost, the
    nearest to twice the mean loss is taken. Where no divisor fits (saves by the clock, or at odd
    steps), the interval is twice the mean loss, which n failures leave open by 1 / sqrt(3 n).
    """
    if isfinite(every_steps):
        return Estimate(every_steps)
    saved_at = [[save.step for save in run.saves if isfinite(save.step)] for run in course.runs]
    apart = np.concatenate([np.empty(0), *(np.diff(np.unique(steps)) for steps in saved_at)])
    if len(apart):
        return Estimate(float(np.median(apart)))
    saved, lost = _went_back(course)
    if not saved.any():
        return Estimate(inf)
    mean = 2 * float(lost.mean())
    fits = _divisors(saved, lost)
    steps = min(fits, key=lambda steps: abs(steps - mean), default=mean)
    if not fits:
        open_by = Z_95 / sqrt(3 * len(lost))
        fits = [mean * (1 - open_by), mean * (1 + open_by)]
    if not 0 < max(fits) <= MOST_OPEN * min(fits):
        return Estimate(nan)
    return Estimate(steps, min(fits), max(fits))


def _went_back(course: JobCourse) -> tuple[Floats, Floats]:
    """Steps at which the job went on after each failure, and how many more it had had."""
    losses = []
    for before, after in pairwise(course.runs):
        saved, last = after.said_step, before.final_step
        if after.n_failures and saved <= last < inf:
            losses.append((saved, last - saved))
    columns = np.array(losses, dtype=np.float64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _divisors(saved: Floats, lost: Floats) -> list[float]:
    """Intervals that all saved steps are multiples of, and that are no shorter than a loss."""
    largest = int(np.gcd.reduce(np.rint(saved).astype(np.int64)))
    shortest = float(np.quantile(lost, 1 - LATE_SHARE))
    most = min(int(largest / max(shortest, 1.0)), int(MOST_OPEN) + 1)
    return [largest / number for number in range(1, most + 1)]
