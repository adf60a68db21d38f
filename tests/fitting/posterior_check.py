"""The circle: whether logs simulated from a fit look like the log (nodes that differ, shocks)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import isfinite, nan

import numpy as np

from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import ALIKE
from cprsim.failures.outages import Outages
from cprsim.fitting.correlated_fit import CorrelatedFit
from cprsim.fitting.correlation import concentration, dispersion, weekly_counts
from cprsim.records import Cluster, Estimate, Floats, Holds, Ints, Role

N_SIMULATED = 400
NEVER_H = 1e12  # mean of clocks that never strike


@dataclass(frozen=True, slots=True)
class Portrait:
    """The statistics that a simulation of a trace has to meet."""

    mean_gap_h: float
    share_of_zero_gaps: float
    weekly_dispersion: float  # variance over mean of the failures per week
    concentration: float  # share of the failures on the worst tenth of the nodes


def portrait(
    at_h: Floats, node: Ints, n_nodes: int, window_h: float, *, whole: bool = False
) -> Portrait:
    """The statistics of failures within a window."""
    gaps_h = np.diff(np.sort(at_h))
    return Portrait(
        window_h / len(at_h) if whole else float(gaps_h.mean()),
        float((gaps_h == 0).mean()),
        dispersion(weekly_counts(at_h, window_h)),
        concentration(node, n_nodes),
    )


def portrait_of(log: Outages) -> Portrait:
    """The statistics of a log's (chosen) failures."""
    node = log.node[log.in_window & log.chosen]
    whole = all(log.window_given)
    return portrait(log.failed_at_h, node, log.n_nodes, log.window_h, whole=whole)


@dataclass(frozen=True, slots=True)
class Compared:
    """One statistic of the trace beside the same of simulated traces."""

    name: str
    trace: float  # NaN where the log is too short to have it, as is then the other
    simulated: Estimate  # 95 % of the simulated traces lie between its ends

    @property
    def inside(self) -> bool | None:
        """Whether the trace's lies within the interval; None where there is none to compare."""
        if not (isfinite(self.trace) and self.simulated.has_interval):
            return None
        return self.simulated.low <= self.trace <= self.simulated.high


def check_by_simulation(
    outages: Outages, fitted: CorrelatedFit, *, n: int = N_SIMULATED, seed: int = 0
) -> tuple[Compared, ...]:
    """Simulate the whole cluster from its fit, and hold the trace's statistics beside it."""
    real, whole = portrait_of(outages), all(outages.window_given)
    replication, at_h, node = _drawn(fitted, n, seed)
    borders = np.searchsorted(replication, np.arange(n + 1))
    simulated = [
        portrait(at_h[a:b], node[a:b], fitted.n_nodes, fitted.watched_h, whole=whole)
        for a, b in pairwise(borders.tolist())
        if b - a >= 2
    ]
    found = []
    for name in (field.name for field in fields(Portrait)):
        values = np.array([getattr(one, name) for one in simulated])
        known = values[np.isfinite(values)]
        drawn = Estimate.of_draws(known) if len(known) else Estimate(nan)
        found.append(Compared(name, getattr(real, name), drawn))
    return tuple(found)


Drawn = tuple[Ints, Floats, Ints]
"""Replication, instant [h] and node of the failures of all simulated traces, in order."""


def _drawn(fitted: CorrelatedFit, n: int, seed: int) -> Drawn:
    """Simulated traces; where nodes join and leave, their clocks begin where each was new."""
    source = fitted.source(watched=False)
    if fitted.lives is None:
        return _failures(source, fitted.n_nodes, fitted.watched_h, n, seed)
    born_h, enters_h, leaves_h = fitted.lives
    oldest_h = float((leaves_h - born_h).max())
    alone = replace(source, shocks=None)
    replication, age_h, node = _failures(alone, fitted.n_nodes, oldest_h, n, seed)
    at_h = age_h + born_h[node]
    if fitted.shocks is not None:
        shocks = replace(source, lifetime=Weibull(1.0, NEVER_H), frailty=ALIKE)
        struck = _failures(shocks, fitted.n_nodes, fitted.watched_h, n, seed + 1)
        replication = np.append(replication, struck[0])
        at_h, node = np.append(at_h, struck[1]), np.append(node, struck[2])
    there = np.flatnonzero((at_h >= enters_h[node]) & (at_h < leaves_h[node]))
    there = there[np.lexsort((at_h[there], replication[there]))]
    return replication[there], at_h[there], node[there]


def _failures(source: CorrelatedNodes, n_nodes: int, until_h: float, n: int, seed: int) -> Drawn:
    cluster = Cluster((Role("node", n_nodes, Holds.NOTHING),))
    trace = next(source.draw(cluster, seed, 0, n, [until_h]))
    sizes = np.diff(trace.first_slot)
    return np.repeat(trace.replication, sizes), np.repeat(trace.at_h, sizes), trace.slot
