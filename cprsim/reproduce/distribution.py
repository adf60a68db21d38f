"""Whether the distribution of failures matters: one job and one MTBF, five kinds of failures.

The log of a real cluster is replayed, and beside it stand sources fitted to that log, all brought
to its mean time between failures. What remains different is the form alone: how failures bunch
in time, which nodes they strike, and how many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from cprsim.errors import ParameterError
from cprsim.estimate import ROUNDED_Z_95
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import simulate
from cprsim.failures.clocks import JobClock
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.distributions import Exponential, Gamma, Weibull
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.failures.sources import FailureSource, Start
from cprsim.fitting.correlated_fit import fit_correlated
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.lifetimes import gaps
from cprsim.records import Cluster, Floats
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.logs import TITLES, logs, missing
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing
from cprsim.results.metrics import measure
from cprsim.results.rows import replication_rows
from cprsim.scenario.traces import TraceFailures

N_EMB_PS = 18
SHORT_H = 50.0  # a job beside which the one of 200 h is long
JOB = (
    "job={useful: 200 h}",
    "storage={bandwidth: 25 Gbit/s}",
    "costs={save: 5.62 min, load: 3.39 min, reschedule: 2 min}",
    "recovery=[{strategy: full, interval: 2 h}, {strategy: partial, interval: 2 h}]",
    "simulation={seed: 1, replications: 2000}",
)
HEADINGS = ("log", "failures", "per job", "full: mean", "P90", "partial: mean", "P90")
NOTES = (
    "All in % of useful time: mean ± half of its 95 % interval, and 90th percentile over jobs with "
    "its 95 % interval. per job: failures that partial recovery's jobs met, which says that all "
    "forms have the same MTBF.",
    "Logs: InfiniteHBD's fault trace, and system 2 of LANL's records from 2000 to 2005. Shapes are "
    "fitted to the gaps between failures of the cluster. Groups and lemons: shocks and nodes that "
    "differ as fitted, their time stretched until the job has the log's MTBF. The intervals are "
    "those of the simulation: that each log is only one of many it might have been is not in them.",
)
EXPONENTIAL, GROUPS, REPLAYED = "exponential", "groups and lemons", "the log, replayed"
MATCHED = 1e-9  # by how much an MTBF may miss the log's, as a share


@dataclass(frozen=True, slots=True)
class Overheads:
    """What one strategy cost over independent jobs, in % of useful time."""

    mean: StudyEstimate
    p90: StudyEstimate

    @classmethod
    def of(cls, values: Floats) -> Overheads:
        """Mean and 90th percentile of shares of useful time.

        Notes
        -----
        The percentile's interval is free of any distribution: how many jobs lie below it is
        binomial, and its normal approximation gives the ranks of the ends (Conover 1999).
        """
        n = len(values)
        around = ROUNDED_Z_95 * sqrt(0.9 * 0.1 * n)
        ranks = np.clip(np.ceil([0.9 * n - around, 0.9 * n + around]), 1, n).astype(np.int64) - 1
        low, high = np.sort(values)[ranks]
        p90 = StudyEstimate(float(np.quantile(values, 0.9)), float(low), float(high))
        return cls(StudyEstimate.of_mean(values), p90)

    @property
    def mean_shown(self) -> str:
        """In percent, with half of its interval."""
        half = (self.mean.high - self.mean.low) / 2
        return f"{100 * self.mean.mean:.2f} ± {100 * half:.2f}"

    def p90_shown(self, digits: int) -> str:
        """In percent, with its interval."""
        ends = (self.p90.mean, self.p90.low, self.p90.high)
        p90, low, high = (f"{100 * value:.{digits}f}" for value in ends)
        return f"{p90} ({low} to {high})"


@dataclass(frozen=True, slots=True)
class FormCosts:
    """One kind of failures."""

    failures: str
    n_failures: float  # per job
    full: Overheads
    partial: Overheads


@dataclass(frozen=True, slots=True)
class OneLog:
    """The table of a log, and what is said below it."""

    rows: Sequence[Sequence[str]]
    note: str


def numbers(work: Work) -> dict[str, OneLog]:
    """Simulate the job under the failures of both logs.

    Raises
    ------
    ParameterError
        where there are no logs.
    """
    if why := missing():
        raise ParameterError(f"'distribution' needs data: {why}")
    return {
        name: OneLog(**work.once(name, partial(_of_log, work, name, title), [f"{name}.yaml", name]))
        for name, title in TITLES.items()
    }


def _note_of(name: str) -> Callable[[Mapping[str, OneLog]], str]:
    return lambda runs: runs[name].note


def _of_log(work: Work, name: str, title: str) -> dict[str, Any]:
    experiment = _experiment(work, name)
    replay = experiment.failures
    assert isinstance(replay, Replay), "these scenarios replay a log"
    lines = [
        line_of(failures, replace(experiment, failures=source))
        for failures, source in five_forms(replay, experiment.cluster, experiment.useful_h)
    ]
    rows = [_row("" if number else title, line) for number, line in enumerate(lines)]
    note = f"{title}, {experiment.cluster.n_nodes} nodes: {verdict(lines)}"
    return {"rows": rows, "note": f"{note} {as_fitted(replay, experiment)}"}


def _row(title: str, line: FormCosts) -> tuple[str, ...]:
    return (
        title,
        line.failures,
        f"{line.n_failures:.1f}",
        line.full.mean_shown,
        line.full.p90_shown(1),
        line.partial.mean_shown,
        line.partial.p90_shown(2),
    )


def _experiment(work: Work, name: str) -> Experiment:
    section = work.scenario(f"{name}.yaml").scenario.failures
    assert isinstance(section, TraceFailures), "these scenarios replay a log"
    assert section.nodes is not None, "these scenarios say how many nodes were watched"
    cluster = f"cluster={{trainers: {section.nodes - N_EMB_PS}, emb_ps: {N_EMB_PS}}}"
    return assemble(work.scenario(f"{name}.yaml", [*JOB, cluster]))


def line_of(failures: str, experiment: Experiment) -> FormCosts:
    """Simulate a job under one kind of failures.

    Raises
    ------
    ParameterError
        where a replication does not finish: its hours would say nothing.
    """
    outcome = simulate(experiment)
    measured = measure(replication_rows(outcome), experiment.cluster.n_nodes)
    if not measured["finished"].all():
        raise ParameterError(f"{failures}: a job did not finish, so that its hours say nothing")
    of = {name: rows for name, rows in measured.groupby("strategy", observed=True)}
    full, partial = (
        Overheads.of(of[name]["overhead_fraction"].to_numpy(np.float64))
        for name in ("full", "partial")
    )
    return FormCosts(failures, float(of["partial"]["failures"].mean()), full, partial)


def verdict(lines: Sequence[FormCosts]) -> str:
    """By how much the forms differ."""
    by_name = {line.failures: line for line in lines}
    exponential = by_name[EXPONENTIAL]
    full = _apart([line.full.mean.mean for line in lines])
    partial = _apart([line.partial.mean.mean for line in lines])
    beyond = [
        f"{name} {_more(by_name[name].full, exponential.full)} under full recovery, "
        f"{_more(by_name[name].partial, exponential.partial)} under partial recovery"
        for name in (REPLAYED, GROUPS)
    ]
    return (
        f"the means of full recovery lie up to {full:.1f} % apart, those of partial recovery up to "
        f"{partial:.1f} %. P90 against that of exponential failures: {'; '.join(beyond)}."
    )


def _more(ours: Overheads, others: Overheads) -> str:
    return f"{100 * (ours.p90.mean / others.p90.mean - 1):+.1f} %"


def as_fitted(replay: Replay, experiment: Experiment) -> str:
    """The MTBF of the log, and of groups and lemons before their time is stretched."""
    cluster, useful_h = experiment.cluster, experiment.useful_h
    fitted = fit_correlated(replay.outages).source()
    log_h = replay.expected(cluster, useful_h).mtbf_h
    over = ", ".join(
        f"{fitted.expected(cluster, hours).mtbf_h:.2f} h over {hours:g} h"
        for hours in (SHORT_H, useful_h)
    )
    old = replace(fitted, start=Start.STATIONARY, watched_h=0.0)
    old_h = old.expected(cluster, useful_h).mtbf_h
    return (
        f"MTBF of the log {log_h:.2f} h; of groups and lemons before stretching {over}, and "
        f"{old_h:.2f} h were the nodes stationary."
    )


def _apart(means: list[float]) -> float:
    return 100 * (max(means) / min(means) - 1)


# ----------------------------------------------------------------------------- one MTBF


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
    return fit(FAMILIES[family], gaps(outages)).parameter("shape").mean


def with_mtbf(
    fitted: CorrelatedNodes, cluster: Cluster, useful_h: float, mtbf_h: float
) -> CorrelatedNodes:
    """The same nodes and shocks in stretched time, such that a job has this MTBF.

    Raises
    ------
    ParameterError
        where no stretch was runs.
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


STUDY = Study(
    name="distribution",
    shows="whether the form of the failure distribution matters, on two public logs",
    module=__name__,
    title="Whether the distribution of failures matters",
    question="The same job and MTBF under failures of five forms: 200 h on all nodes of the "
    f"cluster, {N_EMB_PS} of them embedding servers; save 5.62 min every 2 h, load 3.39 min, "
    "rescheduling 2 min, wall clock; 2,000 replications.",
    numbers=numbers,
    listings=lambda runs: [
        Listing(
            "Overheads:", HEADINGS, tuple(tuple(row) for one in runs.values() for row in one.rows)
        )
    ],
    notes=(*NOTES, *map(_note_of, TITLES)),
    inputs=("gpu-cluster.yaml", "lanl.yaml"),
    missing=missing,
    more_inputs=logs,
)
