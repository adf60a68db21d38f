"""What one distribution can't say: failures that come together, and nodes that differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.failures.sources import p_strikes
from cprsim.records import Bools, Floats, Ints

WEEK_H = 168.0
WORST_FRACTION = 0.1  # of the nodes, whose share of the failures measures concentration


@dataclass(frozen=True, slots=True)
class Togetherness:
    """Failures of several nodes at the same instant."""

    sizes: Ints  # (n_groups,) nodes of each group, ones included, in order of time

    @property
    def share_of_zero_gaps(self) -> float:
        """Of the gaps between successive node failures."""
        n_failures = int(self.sizes.sum())
        return (n_failures - len(self.sizes)) / max(n_failures - 1, 1)

    @property
    def larger(self) -> Ints:
        """Sizes of those groups that have more than one node."""
        return self.sizes[self.sizes > 1]

    def share_of_job(self, n_job: int, n_nodes: int) -> float:
        """Share of a cluster's failures that strike a job on `n_job` random ones of its nodes."""
        if n_job == n_nodes:
            return 1.0
        sizes, counts = np.unique(self.sizes, return_counts=True)
        struck = [p_strikes(min(int(size), n_nodes), n_job, n_nodes) for size in sizes]
        return float(sum(p * n for p, n in zip(struck, counts, strict=True)) / counts.sum())


@dataclass(frozen=True, slots=True)
class Portrait:
    """The statistics that a simulation of a trace has to meet."""

    mean_gap_h: float
    share_of_zero_gaps: float
    weekly_dispersion: float  # variance over mean of the failures per week
    concentration: float  # share of the failures on the worst tenth of the nodes


def togetherness(outages: Outages) -> Togetherness:
    """Group sizes: how many (chosen) outages begin at each instant of the window."""
    at_h = outages.failed_at_h
    return Togetherness(group_sizes(begins_instant(at_h)))


def begins_instant(at_h: Floats) -> Bools:
    """Which of some instants in order differ from the one before, (n,)."""
    return np.append(np.ones(min(len(at_h), 1), dtype=bool), at_h[1:] > at_h[:-1])


def group_sizes(begins: Bools) -> Ints:
    """How many belong together, (n_groups,), of (n,) that say where each group begins."""
    return np.diff(np.flatnonzero(begins), append=len(begins))


def weekly_counts(at_h: Floats, window_h: float) -> Ints:
    """Failures in each whole week of the window, (n_weeks,)."""
    n_weeks = int(window_h // WEEK_H)
    week = (at_h // WEEK_H).astype(np.int64)
    return np.bincount(week[week < n_weeks], minlength=n_weeks)


def dispersion(counts: Ints) -> float:
    """Variance over mean: 1 for Poisson, larger where failures come in bursts."""
    if len(counts) < 2 or counts.sum() == 0:
        return float("nan")
    return float(counts.var(ddof=1) / counts.mean())


def concentration(node: Ints, n_nodes: int, fraction: float = WORST_FRACTION) -> float:
    """Share of the failures that the worst nodes hold."""
    counts = np.sort(np.bincount(node, minlength=n_nodes))[::-1]
    n_worst = int(np.ceil(fraction * n_nodes))
    return float(counts[:n_worst].sum() / counts.sum())


def portrait(
    at_h: Floats, node: Ints, n_nodes: int, window_h: float, *, whole: bool = False
) -> Portrait:
    """The statistics of failures within a window.

    Raises ParameterError for fewer than two failures.
    """
    if len(at_h) < 2:
        raise ParameterError("two failures at least are needed to speak of gaps")
    gaps_h = np.diff(np.sort(at_h))
    return Portrait(
        mean_gap_h=window_h / len(at_h) if whole else float(gaps_h.mean()),
        share_of_zero_gaps=float((gaps_h == 0).mean()),
        weekly_dispersion=dispersion(weekly_counts(at_h, window_h)),
        concentration=concentration(node, n_nodes),
    )


def portrait_of(outages: Outages) -> Portrait:
    """The statistics of a log's (chosen) failures."""
    failures = outages.where(outages.in_window & outages.chosen)
    return portrait(
        failures.start_h,
        failures.node,
        failures.n_nodes,
        failures.window_h,
        whole=all(outages.window_given),
    )
