"""Whether the distribution of failures matters: one job and one MTBF, five kinds of failures.

The log of a real cluster is replayed, and beside it stand sources fitted to that log, all brought
to its mean time between failures. What remains different is the form alone: how failures bunch
in time, which nodes they strike, and how many at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from cprsim.assemble import Experiment, assemble
from cprsim.errors import ParameterError
from cprsim.failures.replay import Replay
from cprsim.failures.sources import Start
from cprsim.fitting.circle import fit_correlated
from cprsim.pipeline import simulate
from cprsim.records import Floats
from cprsim.reproduce.logs import TITLES, logs, missing
from cprsim.reproduce.one_mtbf import EXPONENTIAL, GROUPS, REPLAYED, five_forms
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing, Summary
from cprsim.results.metrics import interval_of_mean, measure
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
Z_95 = 1.96


@dataclass(frozen=True, slots=True)
class Overheads:
    """What one strategy cost, in shares of the useful time."""

    mean: float
    half_width: float  # of the mean's 95 % interval
    p90: float
    p90_low: float
    p90_high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.2f} ± {100 * self.half_width:.2f}"

    def p90_shown(self, digits: int) -> str:
        """In percent, with its interval."""
        p90, low, high = (
            f"{100 * value:.{digits}f}" for value in (self.p90, self.p90_low, self.p90_high)
        )
        return f"{p90} ({low} to {high})"


@dataclass(frozen=True, slots=True)
class Line:
    """One kind of failures."""

    failures: str
    n_failures: float  # per job
    full: Overheads
    partial: Overheads


def make(work: Work) -> Summary:
    """Simulate the job under the failures of both logs.

    Raises
    ------
    ParameterError
        where there are no logs.
    """
    if why := missing():
        raise ParameterError(f"'distribution' needs data: {why}")
    rows: list[tuple[str, ...]] = []
    notes = list(NOTES)
    for name, title in TITLES.items():
        found = work.once(name, partial(_of_log, work, name, title), [f"{name}.yaml", name])
        rows += [tuple(row) for row in found["rows"]]
        notes.append(found["note"])
    return Summary(
        "Whether the distribution of failures matters",
        f"The same job and MTBF under failures of five forms: 200 h on all nodes of the cluster, "
        f"{N_EMB_PS} of them embedding servers; save 5.62 min every 2 h, load 3.39 min, "
        "rescheduling 2 min, wall clock; 2,000 replications.",
        (),
        (Listing("Overheads:", HEADINGS, tuple(rows)),),
        tuple(notes),
    )


def _of_log(work: Work, name: str, title: str) -> dict[str, Any]:
    experiment = _experiment(work, name)
    replay = experiment.failures
    assert isinstance(replay, Replay), "these scenarios replay a log"
    lines = [
        line_of(failures, replace(experiment, failures=source))
        for failures, source in five_forms(replay, experiment.cluster, experiment.useful_h)
    ]
    rows = [_row(title if not i else "", line) for i, line in enumerate(lines)]
    note = (
        f"{title}, {experiment.cluster.n_nodes} nodes: {verdict(lines)}"
        f" {as_fitted(replay, experiment)}"
    )
    return {"rows": rows, "note": note}


def _experiment(work: Work, name: str) -> Experiment:
    section = work.scenario(f"{name}.yaml").scenario.failures
    assert isinstance(section, TraceFailures), "these scenarios replay a log"
    assert section.nodes is not None, "these scenarios say how many nodes were watched"
    cluster = f"cluster={{trainers: {section.nodes - N_EMB_PS}, emb_ps: {N_EMB_PS}}}"
    return assemble(work.scenario(f"{name}.yaml", [*JOB, cluster]))


# ----------------------------------------------------------------------------- what they cost


def line_of(failures: str, experiment: Experiment) -> Line:
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
    of = {name: mine for name, mine in measured.groupby("strategy", observed=True)}
    full, partial = (
        overheads(of[name]["overhead_fraction"].to_numpy(np.float64))
        for name in ("full", "partial")
    )
    return Line(failures, float(of["partial"]["failures"].mean()), full, partial)


def overheads(values: Floats) -> Overheads:
    """Mean and 90th percentile of independent jobs, each with its 95 % interval.

    Notes
    -----
    The percentile's interval is free of any distribution: how many jobs lie below it is binomial,
    and its normal approximation gives the ranks of the ends (Conover 1999).
    """
    n = len(values)
    mean, low, high = interval_of_mean(values)
    around = Z_95 * sqrt(0.9 * 0.1 * n)
    ranks = np.clip(np.ceil([0.9 * n - around, 0.9 * n + around]), 1, n).astype(np.int64) - 1
    p90_low, p90_high = np.sort(values)[ranks]
    p90 = float(np.quantile(values, 0.9))
    return Overheads(mean, (high - low) / 2, p90, float(p90_low), float(p90_high))


def verdict(lines: Sequence[Line]) -> str:
    """By how much the forms differ."""
    by_name = {line.failures: line for line in lines}
    exponential = by_name[EXPONENTIAL]
    full = _apart([line.full.mean for line in lines])
    partial = _apart([line.partial.mean for line in lines])
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
    return f"{100 * (ours.p90 / others.p90 - 1):+.1f} %"


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


def _row(title: str, line: Line) -> tuple[str, ...]:
    return (
        title,
        line.failures,
        f"{line.n_failures:.1f}",
        str(line.full),
        line.full.p90_shown(1),
        str(line.partial),
        line.partial.p90_shown(2),
    )


STUDY = Study(
    "distribution",
    "whether the form of the failure distribution matters, on two public logs",
    make,
    ("gpu-cluster.yaml", "lanl.yaml"),
    missing=missing,
    more_inputs=logs,
)
