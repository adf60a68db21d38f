"""From a trace to a source that behaves like it, and the check that it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.correlated import CorrelatedNodes, Shocks
from cprsim.failures.outages import Outages
from cprsim.failures.sources import Start
from cprsim.fitting.correlation import Portrait, portrait, portrait_of
from cprsim.fitting.frailty_fit import FrailtyFit, fit_frailty
from cprsim.fitting.lifetimes import FirstUptime, uptimes
from cprsim.records import Cluster, Duration, Holds, Role

N_SIMULATED = 400


@dataclass(frozen=True, slots=True)
class CorrelatedFit:
    """Nodes that differ and shocks, fitted to a trace."""

    forms: tuple[FrailtyFit, ...]  # of the single failures' up-times, the best by AIC first
    shocks: Shocks | None
    watched_h: float  # length of the log
    n_nodes: int

    def source(self, *, watched: bool = True, repair: Duration | None = None) -> CorrelatedNodes:
        """The source that this fit describes.

        Parameters
        ----------
        watched : the job starts at a random instant of the log; otherwise with its first
        repair : see `CorrelatedNodes`
        """
        best = self.forms[0]
        return CorrelatedNodes(
            lifetime=best.lifetime,
            frailty=best.frailty,
            shocks=self.shocks,
            start=Start.FRESH,
            watched_h=self.watched_h if watched else 0.0,
            repair=repair,
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """One statistic of the trace beside the same of simulated traces."""

    name: str
    trace: float
    mean: float
    low: float  # 95 % of the simulated traces lie between
    high: float

    @property
    def inside(self) -> bool:
        return self.low <= self.trace <= self.high


def fit_correlated(outages: Outages) -> CorrelatedFit:
    """Fit shocks to the groups of a trace, and nodes that differ to its single failures.

    Every node counts as new when the log begins: that describes the time that was watched, and
    lets `CorrelatedFit.source` place a job into it. Repairs are part of no clock.

    Raises
    ------
    ParameterError
        where hardly any node failed alone.
    """
    merged = outages.merged()
    merged = merged.where(merged.in_window)
    _, group, sizes = np.unique(merged.start_h, return_inverse=True, return_counts=True)
    singles = uptimes(merged.where(sizes[group] == 1), FirstUptime.NEW)
    if singles.n_observed < 3:
        raise ParameterError(
            f"only {singles.n_observed} nodes failed alone; three are needed to fit their clocks"
        )
    return CorrelatedFit(
        fit_frailty(singles), _shocks(sizes, outages), outages.window_h, outages.n_nodes
    )


def _shocks(sizes: np.ndarray, outages: Outages) -> Shocks | None:
    larger, counts = np.unique(sizes[sizes > 1], return_counts=True)
    if len(larger) == 0:
        return None
    shares = counts / counts.sum()
    rate_per_h = float(counts.sum() / outages.window_h)
    return Shocks(rate_per_h, tuple(larger.tolist()), tuple(shares.tolist()), outages.n_nodes)


def close_circle(
    outages: Outages, fitted: CorrelatedFit, *, n: int = N_SIMULATED, seed: int = 0
) -> tuple[Compared, ...]:
    """Simulate the whole cluster from its fit, and hold the trace's statistics beside it.

    Parameters
    ----------
    outages : the trace
    fitted : what was fitted to it
    n : simulated traces, each of the trace's nodes and length
    seed : of the simulation
    """
    simulated = list(portraits(fitted, n, seed, whole=all(outages.window_given)))
    real = portrait_of(outages)
    return tuple(_compared(field.name, real, simulated) for field in fields(Portrait))


def portraits(
    fitted: CorrelatedFit, n: int, seed: int, *, whole: bool = False
) -> Iterator[Portrait]:
    """Statistics of simulated traces, each watched from its beginning on; see `portrait`."""
    cluster = Cluster((Role("node", fitted.n_nodes, Holds.NOTHING),))
    source = fitted.source(watched=False)
    trace = next(source.draw(cluster, seed, 0, n, [fitted.watched_h]))
    sizes = np.diff(trace.first_slot)
    replication, at_h = np.repeat(trace.replication, sizes), np.repeat(trace.at_h, sizes)
    borders = np.searchsorted(replication, np.arange(n + 1))
    for first, last in pairwise(borders.tolist()):
        if last - first >= 2:
            mine = slice(first, last)
            nodes = trace.slot[mine]
            yield portrait(at_h[mine], nodes, fitted.n_nodes, fitted.watched_h, whole=whole)


def _compared(name: str, real: Portrait, simulated: list[Portrait]) -> Compared:
    values = np.array([getattr(one, name) for one in simulated])
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Compared(name, getattr(real, name), float(np.nanmean(values)), float(low), float(high))
