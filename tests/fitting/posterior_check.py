"""The circle: whether logs simulated from a fit look like the log (nodes that differ, shocks)."""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.outages import Outages
from cprsim.failures.sources import Start
from cprsim.job.records import Cluster, Estimate, Floats, Holds, Ints, Role
from cprsim.logs.fit.correlated_fit import CorrelatedFit
from cprsim.logs.fit.observation import concentration, dispersion, weekly_counts

N_SIMULATED = 400


class Portrait(NamedTuple):
    """The statistics that a simulation of a trace has to meet."""

    mean_gap_h: float
    share_of_zero_gaps: float
    weekly_dispersion: float  # variance over mean of the failures per week
    concentration: float  # share of the failures on the worst tenth of the nodes


def portrait(at_h: Floats, node: Ints, log: Outages) -> Portrait:
    """The statistics of failures within the window of a log."""
    gaps_h = np.diff(np.sort(at_h))
    return Portrait(
        log.window_h / len(at_h) if all(log.window_given) else float(gaps_h.mean()),
        float((gaps_h == 0).mean()),
        dispersion(weekly_counts(at_h, log.window_h)),
        concentration(node, log.n_nodes),
    )


def portrait_of(log: Outages) -> Portrait:
    """The statistics of a log's (chosen) failures."""
    return portrait(log.failed_at_h, log.node[log.in_window & log.chosen], log)


def source_of(fitted: CorrelatedFit) -> CorrelatedNodes:
    """The source that a fit describes."""
    best = fitted.forms[0]
    return CorrelatedNodes(
        best.distribution, best.frailty, fitted.shocks, start=Start.FRESH, watched_h=fitted.ages_h
    )


def check_by_simulation(
    log: Outages, fitted: CorrelatedFit, *, n: int = N_SIMULATED, seed: int = 0
) -> dict[str, bool | None]:
    """Whether each statistic of the log lies where 95 % of the whole cluster's simulations have it.

    None for one that the log is too short to have, or all simulations.
    """
    source = replace(source_of(fitted), watched_h=0.0)
    cluster = Cluster((Role("node", log.n_nodes, Holds.NOTHING),))
    trace = next(source.draw(cluster, seed, 0, n, [log.window_h]))
    at_h = np.repeat(trace.at_h, np.diff(trace.first_slot))
    borders = trace.first_slot[trace.first]
    drawn = np.array(
        [
            portrait(at_h[a:b], trace.slot[a:b], log)
            for a, b in pairwise(borders.tolist())
            if b - a >= 2
        ]
    )
    found: dict[str, bool | None] = {}
    for name, real, values in zip(Portrait._fields, portrait_of(log), drawn.T, strict=True):
        known = values[np.isfinite(values)]
        if not np.isfinite(real) or len(known) < 2:
            found[name] = None
            continue
        simulated = Estimate.of_draws(known)
        found[name] = simulated.low <= real <= simulated.high
    return found
