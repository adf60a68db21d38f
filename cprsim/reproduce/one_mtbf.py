"""Failures of five forms with one MTBF: a replayed log, and what is fitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cprsim.errors import ParameterError
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.distributions import Exponential, Gamma, Weibull
from cprsim.failures.job_clock import JobClock
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.failures.sources import FailureSource, Start
from cprsim.fitting.circle import fit_correlated
from cprsim.fitting.families import FAMILIES, Fit, fit
from cprsim.fitting.lifetimes import gaps
from cprsim.records import Cluster

EXPONENTIAL, GROUPS, REPLAYED = "exponential", "groups and lemons", "the log, replayed"
MATCHED = 1e-9  # by how much an MTBF may miss the log's, as a share


def five_forms(
    replay: Replay, cluster: Cluster, useful_h: float
) -> Iterator[tuple[str, FailureSource]]:
    """Failures of five forms, all with the MTBF of a replayed log.

    Parameters
    ----------
    replay : of the log that the others are fitted to
    cluster, useful_h : of the job; nodes that differ are brought to the MTBF over its hours [h]
    """
    mtbf_h = replay.expected(cluster, useful_h).mtbf_h
    weibull, gamma = (_gaps_shape(replay.outages, family) for family in ("weibull", "gamma"))
    of_the_job = {
        EXPONENTIAL: Exponential.from_mean(mtbf_h),
        f"Weibull, shape {weibull:.3f}": Weibull.from_mean(mtbf_h, weibull),
        f"gamma, shape {gamma:.3f}": Gamma.from_mean(mtbf_h, gamma),
    }
    for name, lifetime in of_the_job.items():
        # stationary: else the first gap would give more failures than the MTBF says
        yield name, JobClock(lifetime, range(cluster.n_nodes), start=Start.STATIONARY)
    fitted = fit_correlated(replay.outages).source()
    yield GROUPS, with_mtbf(fitted, cluster, useful_h, mtbf_h)
    yield REPLAYED, replay


def _gaps_shape(outages: Outages, family: str) -> float:
    fitted: Fit = fit(FAMILIES[family], gaps(outages))
    (shape,) = (one.mean for one in fitted.parameters if one.name == "shape")
    return shape


def with_mtbf(
    fitted: CorrelatedNodes, cluster: Cluster, useful_h: float, mtbf_h: float
) -> CorrelatedNodes:
    """The same nodes and shocks in stretched time, such that a job has this MTBF.

    Raises
    ------
    ParameterError
        where no stretch was found.
    """
    stretch = 1.0
    for _ in range(100):
        source = stretched(fitted, stretch)
        miss = mtbf_h / source.expected(cluster, useful_h).mtbf_h
        if abs(miss - 1) < MATCHED:
            return source
        stretch *= miss
    raise ParameterError(f"no stretch of time gives these nodes an MTBF of {mtbf_h:g} h")


def stretched(source: CorrelatedNodes, by: float) -> CorrelatedNodes:
    """The same failures, everything taking `by` times as long."""
    shocks = source.shocks
    return replace(
        source,
        lifetime=Weibull.from_mean(by * source.lifetime.mean_h, source.lifetime.shape),
        shocks=None if shocks is None else replace(shocks, rate_per_h=shocks.rate_per_h / by),
        watched_h=by * source.watched_h,
    )
