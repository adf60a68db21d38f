"""Metrics of a replication, and means with intervals over replications.

The one place that defines the metrics; docs/concepts.md has the formula of each. A metric is a
column computed from the columns of the replication rows, so that it can be recomputed from any
finished results folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cprsim.job.intervals import ROUNDING
from cprsim.job.records import CONFIDENCE, Bools, Estimate, Floats, Ints
from cprsim.results.rows import (
    ALWAYS_NAMED,
    BEYOND,
    RESPONSE,
    further_losses,
    replication_rows,
)

if TYPE_CHECKING:
    from cprsim.results.pipeline import Outcome


Columns = Mapping[str, Any] | pd.DataFrame  # of replication rows
Error = tuple[float, float]  # of a mean loss that a curve prices, its degrees of freedom

FINISHED = "finished_fraction"  # the quantity that every summary has, whatever happened

PRICED = (*ALWAYS_NAMED.values(), BEYOND)  # metrics that a staleness curve alone tells
IN_TABLES = ("save", "load", "lost", "detect", "wait", "reschedule")
"""The parts of overhead that every table shows first, in this order."""

_NO_PARTS = ("wall", "useful")  # columns of hours that are no part of overhead
BESIDE_OVERHEAD = (
    "failures", "saves", "pls", "pls_net", *PRICED, "ettr", "ettr_paid", "overhead_h",
    "overhead_node_h", "wall_h",
)  # fmt: skip
"""Metrics other than the overhead and its parts, in the order of files and JSON objects."""

OVERHEAD = "overhead_fraction"
METRICS = (OVERHEAD, *IN_TABLES, *BESIDE_OVERHEAD)
"""Those of every result; recovery systems have further parts."""


def _measured(rows: Columns, n_nodes: int, parts: Iterable[str]) -> dict[str, Any]:
    """Every metric of replication rows, in the order of tables; parts that they lack are 0."""
    useful_h, wall_h = rows["useful_h"], rows["wall_h"]
    overhead_h = wall_h - useful_h
    extra, spares = rows.get("extra_nodes", 0.0), rows.get("spare_nodes", 0.0)
    metrics = {
        OVERHEAD: overhead_h / useful_h,
        **{part: rows.get(f"{part}_h", 0.0) / useful_h for part in parts},
        "failures": rows["n_failures"],
        "saves": rows["n_saves"],
        "pls": rows["pls"],
        "pls_net": rows["pls_net"],
        **{name: rows[name] for name in PRICED if name in rows},
        "ettr": useful_h / wall_h,
        "ettr_paid": useful_h / (wall_h * (1.0 + (extra + spares) / n_nodes)),
        "overhead_h": overhead_h,
        "overhead_node_h": overhead_h * n_nodes + wall_h * extra,
        "wall_h": wall_h,
    }
    return metrics | {name: rows[name] for name in map(str, rows) if f"{name}_se" in rows}


def parts_of(columns: Iterable[Any]) -> tuple[str, ...]:
    """The parts of overhead that columns of replication rows hold, in the order of tables."""
    names = [str(name).removesuffix("_h") for name in columns if str(name).endswith("_h")]
    return known_first((name for name in names if name not in _NO_PARTS), IN_TABLES)


def parts_among(quantities: Iterable[str]) -> tuple[str, ...]:
    """Those quantities of a summary that are parts of overhead, in the order of tables."""
    quantities = tuple(quantities)
    no_parts = {OVERHEAD, *BESIDE_OVERHEAD, FINISHED, *further_losses(quantities)}
    return known_first((name for name in quantities if name not in no_parts), IN_TABLES)


def known_first(names: Iterable[str], order: Iterable[str]) -> tuple[str, ...]:
    """Each name once: known ones in their `order`, then the others as they come."""
    unique, ranks = dict.fromkeys(names), {name: rank for rank, name in enumerate(order)}
    return tuple(sorted(unique, key=lambda name: ranks.get(name, len(ranks))))


@dataclass(frozen=True, slots=True)
class Sample:
    """Every metric of the replications of one strategy, or its difference between two."""

    metrics: tuple[str, ...]
    values: Floats  # (n_metrics, n_replications)
    replication: Ints
    finished: Bools
    # of each strategy that is in it: the response of a staleness curve that prices its losses, and
    # by loss the curve's standard errors, (n_replications,), with their degrees of freedom
    of_curve: tuple[tuple[str, Mapping[str, tuple[Floats, float]]], ...]

    def value(self, metric: str) -> Floats:
        """One metric of every replication."""
        row: Floats = self.values[self.metrics.index(metric)]
        return row

    def mean(self, metric: str) -> float:
        """Mean of a metric; NaN if a replication did not finish."""
        return float(self.value(metric).mean()) if self.finished.all() else np.nan

    def measured(self, loss: str) -> list[Error]:
        """The standard error of a mean loss by each curve, with its degrees of freedom."""
        errors = [of[loss] for _, of in self.of_curve if loss in of]
        return [(float(error.sum() / max(len(error), 1)), degrees) for error, degrees in errors]

    @property
    def responses(self) -> list[str]:
        """The responses of the strategies in this sample."""
        return [response for response, _ in self.of_curve]


def sample_of(columns: Columns, n_nodes: int, parts: Iterable[str] | None = None) -> Sample:
    """Metrics of the replication rows of one strategy; missing parts of overhead are 0."""
    metrics = _measured(columns, n_nodes, parts_of(columns) if parts is None else parts)
    values = np.empty((len(metrics), len(columns["finished"])))
    for row, metric in zip(values, metrics.values(), strict=True):
        row[:] = metric
    errors = {
        name: (
            np.broadcast_to(np.asarray(columns[f"{name}_se"], np.float64), values.shape[1:]),
            float(_first(columns[f"{name}_degrees"])),
        )
        for name in metrics
        if f"{name}_se" in columns
    }
    return Sample(
        tuple(metrics), values, np.asarray(columns["replication"]), np.asarray(columns["finished"]),
        ((str(_first(columns[RESPONSE])), errors),),
    )  # fmt: skip


def _first(column: Any) -> Any:
    """The common value of a column with equal values, or the scalar given instead of a column."""
    return np.atleast_1d(column)[0]


def samples_of(
    rows: pd.DataFrame, n_nodes: int, parts: Iterable[str] | None = None
) -> dict[str, Sample]:
    """The samples of replication rows, which may have been read back, by strategy."""
    by_strategy = rows.groupby("strategy", sort=False, observed=True)
    return {str(name): sample_of(mine, n_nodes, parts) for name, mine in by_strategy}


@np.errstate(invalid="ignore")  # replications that did not finish
def paired_difference(a: Sample, b: Sample) -> Sample:
    """B - a over the replications that both have; finished where all of both are."""
    common, at_a, at_b = np.intersect1d(
        a.replication, b.replication, assume_unique=True, return_indices=True
    )
    metrics = tuple(name for name in a.metrics if name in b.metrics)
    of_a, of_b = (
        sample.values[:, at][np.array([sample.metrics.index(name) for name in metrics])]
        for sample, at in ((a, at_a), (b, at_b))
    )
    values = of_b - of_a
    values[np.abs(values) <= ROUNDING * np.abs(of_a)] = 0.0
    of_curve = tuple(
        (response, {name: (error[at], degrees) for name, (error, degrees) in errors.items()})
        for sample, at in ((a, at_a), (b, at_b))
        for response, errors in sample.of_curve
    )
    finished = np.full(len(common), a.finished.all() and b.finished.all())
    return Sample(metrics, values, common, finished, of_curve)


# --------------------------------------------------------------------------- means with intervals


def summary_of(sample: Sample) -> dict[str, Estimate]:
    """Mean and 95 % interval of every metric, and how many replications finished."""
    share = Estimate.of_share(int(sample.finished.sum()), len(sample.finished))
    return {FINISHED: share} | estimates_of(sample)


def estimates_of(sample: Sample, *, one_curve: bool = False) -> dict[str, Estimate]:
    """Mean and 95 % interval of every metric; those of losses have the curve's variances too.

    All are NaN where there are replications that did not finish.
    """
    n = len(sample.finished)
    if not n or not sample.finished.all():
        return dict.fromkeys(sample.metrics, Estimate(np.nan, n=n))
    means = sample.values.sum(axis=1) / n
    squares = np.square(sample.values - means[:, None]).sum(axis=1)
    estimates = {}
    for name, mean, square in zip(sample.metrics, means.tolist(), squares.tolist(), strict=True):
        errors = sample.measured(name)
        if n > 1 and errors:
            measured = of_curves(sample.responses, errors, one_curve=one_curve)
            variances = [(square / (n - 1) / n, n - 1.0), *measured]
            estimates[name] = Estimate.of_variances(mean, variances, n)
        else:
            estimates[name] = Estimate.of_squares(mean, square, n)
    return estimates


def of_curves(
    responses: Sequence[str], errors: Sequence[Error], *, one_curve: bool
) -> list[tuple[float, float]]:
    """Variances, with degrees of freedom, of a loss or a difference of two, by their curves.

    Errors of one response of one curve are the same error; others count as independent.
    """
    if one_curve and len(errors) == 2 and len({*responses}) == 1:
        (error_a, degrees_a), (error_b, degrees_b) = errors
        return [((error_a - error_b) ** 2, min(degrees_a, degrees_b))]
    return [(error**2, degrees) for error, degrees in errors]


def difference_of(
    a: Sample, b: Sample, *, one_curve: bool, paired: bool = True
) -> dict[str, Estimate]:
    """Mean and interval of b - a: over the replications that both have, or of two samples.

    Of independent samples it is Student's t with Welch's degrees of freedom (Welch 1947).
    """
    if paired:
        return estimates_of(paired_difference(a, b), one_curve=one_curve)
    n, estimates = min(len(a.finished), len(b.finished)), {}
    for name in (name for name in a.metrics if name in b.metrics):
        estimates[name] = Estimate(b.mean(name) - a.mean(name), n=n)
        if n > 1 and not isnan(estimates[name].mean):
            errors, responses = a.measured(name) + b.measured(name), a.responses + b.responses
            variances = of_curves(responses, errors, one_curve=one_curve)
            for sample in (b, a):
                variance = float(np.var(sample.value(name), ddof=1)) / len(sample.finished)
                variances.insert(0, (variance, len(sample.finished) - 1.0))
            estimates[name] = Estimate.of_variances(estimates[name].mean, variances, n)
    return estimates


# --------------------------------------------------------------------------- tables of them


def summarise(outcome: Outcome) -> pd.DataFrame:
    """`summary_of` every strategy. Tidy frame: strategy, quantity, mean, low, high, n."""
    return summarise_rows(replication_rows(outcome), outcome.cluster.n_nodes)


def summarise_rows(rows: pd.DataFrame, n_nodes: int) -> pd.DataFrame:
    """`summarise`, from replication rows that may have been read back."""
    samples = samples_of(rows, n_nodes)
    return _frame({name: summary_of(sample) for name, sample in samples.items()})


def differences(rows: pd.DataFrame, n_nodes: int, baseline: str) -> pd.DataFrame:
    """Cost of each strategy minus that of `baseline`, paired by replication.

    All strategies of a result meet the same failures, so the differences of the replications vary
    less than the replications themselves. Tidy frame as that of `summarise`; NaN where one of the
    two has replications that did not finish.
    """
    samples = samples_of(rows, n_nodes)
    base = samples.pop(baseline)
    return _frame(
        {name: difference_of(base, mine, one_curve=True) for name, mine in samples.items()}
    )


def more_than(baseline: str, rows: pd.DataFrame, n_nodes: int) -> dict[str, Estimate]:
    """Overhead of others less that of one strategy, paired by replication, of those that finish."""
    compared = differences(rows, n_nodes, baseline)
    overheads = compared[(compared["quantity"] == "overhead_fraction") & compared["mean"].notna()]
    of_each = overheads.drop(columns="quantity").itertuples(index=False)
    return {name: Estimate(*of) for name, *of in of_each}


def _frame(estimates: Mapping[str, Mapping[str, Estimate]]) -> pd.DataFrame:
    records = [
        (strategy, quantity, *estimate.triple, estimate.n)
        for strategy, mine in estimates.items()
        for quantity, estimate in mine.items()
    ]
    return pd.DataFrame(records, columns=["strategy", "quantity", "mean", "low", "high", "n"])


def spreads(summary: pd.DataFrame) -> dict[str, dict[str, Estimate]]:
    """A summary by strategy and quantity."""
    estimates: dict[str, dict[str, Estimate]] = {}
    for strategy, quantity, *numbers in summary.itertuples(index=False):
        estimates.setdefault(str(strategy), {})[str(quantity)] = Estimate(*numbers)
    return estimates


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a small table as plain dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


# --------------------------------------------------------------------------- percentiles


PERCENT: Ints = np.arange(1, 100)


def percentiles(values: Floats) -> pd.DataFrame:
    """Percentiles 1 to 99 of independent values: columns value, low, high, by percent.

    `low` or `high` is NaN where the sample is too small to bound the percentile on that side.
    Values by linear interpolation. The interval is that of two order statistics, whose ranks are
    binomial: between ranks l and u lies the true percentile with a probability of at least 95 %,
    whatever the distribution (David and Nagaraja, Order Statistics, 2003, section 7.1).
    """
    from scipy import stats  # slow to load, and most commands need none

    ordered, n, share = np.sort(values), len(values), PERCENT / 100
    bounded = np.concatenate([[np.nan], ordered, [np.nan]])
    tail = (1 - CONFIDENCE) / 2
    low, high = (np.asarray(stats.binom.ppf(at, n, share), np.int64) for at in (tail, 1 - tail))
    columns = {"value": np.quantile(ordered, share), "low": bounded[low], "high": bounded[high + 1]}
    return pd.DataFrame(columns, index=PERCENT)
