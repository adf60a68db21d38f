"""The observation of a log, its origin, and effects that no single distribution describes."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
from numpy.typing import ArrayLike

from cprsim.failures.outages import ROUNDING_H, Outages
from cprsim.job.distributions import p_strikes
from cprsim.job.records import WEEK_H, Bools, Floats, Ints
from cprsim.logs.fit.lifetimes import Age

AGES = {  # without dates of the nodes, and with
    "new": (
        "nodes count as new when the log begins",
        "nodes count as new when they were installed",
    ),
    "unknown": (
        "unknown when the log begins: first up-times are left out",
        "unknown when they entered: first up-times are left out",
    ),
}


def observation(outages: Outages, age: Age | None) -> dict[str, dict[str, int | str]]:
    """How many nodes were watched, from when to when, and their ages as it began.

    Each with its value, its source (given, read or inferred), and which option or reasoning says
    it; `age` is that of the nodes, if given.
    """
    origins = outages.facts if age is None else {**outages.facts, "ages": ("given", "--age")}
    values: dict[str, int | str] = {
        "n_nodes": outages.n_nodes,
        "begins": outages.origin,
        "ends": instant(outages, outages.window_h),
        "ages": AGES[age or "new"][outages.lives is not None],
    }
    facts = dict[str, dict[str, int | str]]()
    for name, value in values.items():
        source, how = origins.get(name, ("inferred", "the log does not know them, see --age"))
        facts[name] = {"value": value, "source": source, "how": how}
    return facts


def instant(outages: Outages, at_h: float) -> str:
    """An instant of the log [h], written as its begin is."""
    try:
        begins = datetime.fromisoformat(outages.origin)
    except ValueError:  # hours of its own zero
        return f"{float(outages.origin.removesuffix(' h')) + at_h:g} h"
    return (begins + timedelta(hours=at_h)).replace(microsecond=0).isoformat()


# ------------------------------------------------- failures that come together, nodes that differ

WORST_FRACTION = 0.1  # of the nodes, whose share of the failures measures concentration


def failure_groups(outages: Outages) -> Ints:
    """How many (chosen) outages begin at each instant of the window, (n_groups,)."""
    return group_sizes(begins_instant(outages.failed_at_h))


def share_of_job(groups: Ints, n_job: int, n_nodes: int) -> float:
    """Share of a cluster's failures that strike a job on `n_job` random ones of its nodes."""
    if n_job == n_nodes:
        return 1.0
    sizes, counts = np.unique(groups, return_counts=True)
    struck = [p_strikes(min(int(size), n_nodes), n_job, n_nodes) for size in sizes]
    return float(sum(p * n for p, n in zip(struck, counts, strict=True)) / counts.sum())


def job_rate_per_h(outages: Outages, n_job: int) -> float:
    """Rate of events of the chosen cause that strike a job [1/h]; simultaneous failures are one.

    A failure from which on the log is taken to watch does not count.
    """
    groups, watched_h = failure_groups(outages), outages.node_hours / outages.n_nodes
    begins_log = not outages.window_given[0] and outages.failed_at_h[0] <= ROUNDING_H
    n = len(groups) - (begins_log and len(groups) > 1)
    return n * share_of_job(groups, n_job, outages.n_nodes) / watched_h


def begins_instant(at_h: Floats) -> Bools:
    """Which of some instants in order differ from the one before, by more than rounding, (n,)."""
    return np.append(np.ones(min(len(at_h), 1), dtype=bool), np.diff(at_h) > ROUNDING_H)


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


def concentration(node: ArrayLike, n_nodes: int, fraction: float = WORST_FRACTION) -> float:
    """Share of the failures that the worst nodes hold; NaN where there are none."""
    counts = np.sort(np.bincount(np.asarray(node, dtype=np.int64), minlength=n_nodes))[::-1]
    if not counts.any():
        return float("nan")
    return float(counts[: int(np.ceil(fraction * n_nodes))].sum() / counts.sum())
