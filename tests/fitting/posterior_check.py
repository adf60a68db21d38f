"""The circle: whether logs simulated from a fit look like the log (nodes that differ, shocks)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import isfinite, nan

import numpy as np

from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import ALIKE
from cprsim.failures.outages import Outages
from cprsim.fitting.correlated_fit import CorrelatedFit
from cprsim.fitting.correlation import Portrait, portrait, portrait_of
from cprsim.records import Cluster, Estimate, Floats, Holds, Ints, Role

N_SIMULATED = 400
NEVER_H = 1e12  # mean of clocks that never strike


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
    real = portrait_of(outages)
    drawn = _drawn(fitted, n, seed)
    simulated = list(_portraits(drawn, fitted, n, whole=all(outages.window_given)))
    return tuple(
        _compared(name, getattr(real, name), [getattr(one, name) for one in simulated])
        for name in (field.name for field in fields(Portrait))
    )


Drawn = tuple[Ints, Floats, Ints]
"""Replication, instant [h] and node of the failures of all simulated traces, in order."""


def _portraits(drawn: Drawn, fitted: CorrelatedFit, n: int, *, whole: bool) -> Iterator[Portrait]:
    """Statistics of simulated traces, each watched from its beginning on; see `portrait`."""
    replication, at_h, node = drawn
    borders = np.searchsorted(replication, np.arange(n + 1))
    for first, last in pairwise(borders.tolist()):
        if last - first >= 2:
            rows = slice(first, last)
            yield portrait(at_h[rows], node[rows], fitted.n_nodes, fitted.watched_h, whole=whole)


def _drawn(fitted: CorrelatedFit, n: int, seed: int) -> Drawn:
    """Simulated traces; where nodes join and leave, their clocks begin where each was new."""
    source = fitted.source(watched=False)
    if fitted.lives is None:
        return _failures(source, fitted.n_nodes, fitted.watched_h, n, seed)
    born_h, enters_h, leaves_h = fitted.lives
    alone = replace(source, shocks=None)
    replication, age_h, node = _failures(alone, fitted.n_nodes, _oldest_h(fitted.lives), n, seed)
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


def _oldest_h(lives: tuple[Floats, Floats, Floats]) -> float:
    """The highest age of a node while it was watched [h]."""
    return float((lives[2] - lives[0]).max())


def _compared(name: str, real: float, simulated: list[float]) -> Compared:
    values = np.array(simulated)
    known = values[np.isfinite(values)]
    return Compared(name, real, Estimate.of_draws(known) if len(known) else Estimate(nan))
