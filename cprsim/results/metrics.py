"""What is measured of a replication, and means with intervals over replications.

The one place that defines the metrics; docs/metrics.md has the formula of each. A metric is a
column computed from the columns of the replication rows, so that it can be recomputed from any
finished results folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cprsim.records import CONFIDENCE, Bools, Estimate, Floats, Ints
from cprsim.results.rows import (
    BEYOND,
    QUANTITIES,
    RESPONSE,
    Sharing,
    Variance,
    further_losses,
    not_shared,
    of_difference,
    replication_rows,
)
from cprsim.staleness.expected import MeanLoss, pooled

if TYPE_CHECKING:
    from cprsim.experiments.pipeline import Outcome


Columns = Mapping[str, Any] | pd.DataFrame  # of replication rows
Errors = Mapping[str, tuple[float, float]]  # by loss: a curve's mean one, its degrees of freedom

FINISHED = "finished_fraction"  # the quantity that every summary has, whatever happened

PRICED = (*QUANTITIES.values(), BEYOND)  # metrics that a staleness curve alone tells
IN_TABLES = ("save", "load", "lost", "detect", "wait", "reschedule")
"""The parts of overhead that every table shows first, in this order."""

ROUNDING = 1e-9  # so far two engines are apart where a strategy costs the same
_NO_PARTS = ("wall", "useful")  # columns of hours that are no part of overhead
BESIDE = (
    "failures", "saves", "pls", "pls_net", *PRICED, "ettr", "ettr_paid", "overhead_h",
    "overhead_node_h", "wall_h",
)  # fmt: skip
"""Metrics beside the overhead and its parts, in the order of files and JSON objects."""

OVERHEAD = "overhead_fraction"
METRICS = (OVERHEAD, *IN_TABLES, *BESIDE)
"""Those of every result; recovery systems have further parts."""


def _measured(rows: Columns, n_nodes: int, parts: Iterable[str]) -> dict[str, Any]:
    """Every metric of replication rows, in the order of tables; parts that they lack are 0."""
    useful_h, wall_h = rows["useful_h"], rows["wall_h"]
    overhead_h = wall_h - useful_h
    extra, spares = rows.get("extra_nodes", 0.0), rows.get("spare_nodes", 0.0)
    found = {
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
    return found | {name: rows[name] for name in map(str, rows) if f"{name}_se" in rows}


def parts_of(columns: Iterable[Any]) -> tuple[str, ...]:
    """The parts of overhead that columns of replication rows hold, in the order of tables."""
    names = [str(name).removesuffix("_h") for name in columns if str(name).endswith("_h")]
    return known_first((name for name in names if name not in _NO_PARTS), IN_TABLES)


def parts_among(quantities: Iterable[str]) -> tuple[str, ...]:
    """Those quantities of a summary that are parts of overhead, in the order of tables."""
    quantities = tuple(quantities)
    others = {OVERHEAD, *BESIDE, FINISHED, *further_losses(quantities)}
    return known_first((name for name in quantities if name not in others), IN_TABLES)


def known_first(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Each name once: known ones in the order of `known`, then the others as they come."""
    there, ranks = dict.fromkeys(names), {name: rank for rank, name in enumerate(known)}
    return tuple(sorted(there, key=lambda name: ranks.get(name, len(ranks))))


@dataclass(frozen=True, slots=True)
class Sample:
    """Every metric of the replications of one strategy."""

    metrics: tuple[str, ...]
    values: Floats  # (n_metrics, n_replications)
    replication: Ints
    finished: Bools
    response: str  # of a staleness curve, that prices the losses
    errors: Mapping[str, tuple[Floats, float]]  # by loss: the curve's, (n_replications,), degrees

    def of(self, replications: Ints) -> Sample:
        """These replications alone, all of which it has."""
        at = np.searchsorted(self.replication, replications)
        errors = {name: (error[at], degrees) for name, (error, degrees) in self.errors.items()}
        return replace(
            self, values=self.values[:, at], replication=replications,
            finished=self.finished[at], errors=errors,
        )  # fmt: skip

    def value(self, metric: str) -> Floats:
        """One metric of every replication."""
        row: Floats = self.values[self.metrics.index(metric)]
        return row

    def measured(self, loss: str) -> tuple[float, float]:
        """The curve's standard error of a mean loss, and its degrees of freedom."""
        error, degrees = self.errors[loss]
        return float(error.sum() / max(len(error), 1)), degrees


def sample_of(columns: Columns, n_nodes: int, parts: Iterable[str] | None = None) -> Sample:
    """What is measured of the replication rows of one strategy; parts that they lack are 0."""
    metrics = _measured(columns, n_nodes, parts_of(columns) if parts is None else parts)
    losses = [name for name in metrics if f"{name}_se" in columns]
    values = np.empty((len(metrics), len(columns["finished"])))
    for row, metric in zip(values, metrics.values(), strict=True):
        row[:] = metric
    of_curve = {
        name: (
            np.broadcast_to(np.asarray(columns[f"{name}_se"], np.float64), values.shape[1:]),
            float(_first(columns[f"{name}_degrees"])),
        )
        for name in losses
    }
    return Sample(
        tuple(metrics), values, np.asarray(columns["replication"]), np.asarray(columns["finished"]),
        str(_first(columns[RESPONSE])), of_curve,
    )  # fmt: skip


def _first(column: Any) -> Any:
    """What is equal in all rows: of a column, or the scalar that stands for one."""
    return np.atleast_1d(column)[0]


def samples_of(
    rows: pd.DataFrame, n_nodes: int, parts: Iterable[str] | None = None
) -> dict[str, Sample]:
    """The samples of replication rows, which may have been read back, by strategy."""
    each = rows.groupby("strategy", sort=False, observed=True)
    return {str(name): sample_of(mine, n_nodes, parts) for name, mine in each}


@dataclass(frozen=True, slots=True)
class Moments:
    """What is left of the replications of a strategy, or of its differences to another one."""

    metrics: tuple[str, ...]
    n: int
    n_finished: int
    mean: Floats  # (n_metrics,)
    squares: Floats  # (n_metrics,) sums of squared deviations from the means
    # of each strategy that is in them: the response that prices its losses, the errors of these
    of_curve: tuple[tuple[str, Errors], ...]

    def __add__(self, more: Moments) -> Moments:
        """Those of further replications besides (Chan, Golub & LeVeque 1983)."""
        n, off = self.n + more.n, more.mean - self.mean
        of_curve = tuple(
            (response, {name: _weighted(self.n, a[name], more.n, b[name]) for name in a})
            for (response, a), (_, b) in zip(self.of_curve, more.of_curve, strict=True)
        )
        return Moments(
            self.metrics, n, self.n_finished + more.n_finished,
            self.mean + off * (more.n / n),
            self.squares + more.squares + off**2 * (self.n * more.n / n), of_curve,
        )  # fmt: skip


def _weighted(
    n: int, error: tuple[float, float], n_more: int, of_more: tuple[float, float]
) -> tuple[float, float]:
    """The mean error of two samples, whose degrees of freedom are equal."""
    return (n * error[0] + n_more * of_more[0]) / (n + n_more), of_more[1]


def moments_of(sample: Sample) -> Moments:
    """Those of one strategy."""
    n_finished = int(sample.finished.sum())
    return _moments(sample.metrics, sample.values, n_finished, [sample])


@np.errstate(invalid="ignore")  # replications that did not finish
def moments_apart(a: Sample, b: Sample) -> Moments:
    """Those of b - a, over the replications that both have; finished where all of both are."""
    all_finished = a.finished.all() and b.finished.all()
    if not np.array_equal(a.replication, b.replication):
        shared = np.intersect1d(a.replication, b.replication, assume_unique=True)
        a, b = a.of(shared), b.of(shared)
    metrics = tuple(name for name in a.metrics if name in b.metrics)
    of_a, of_b = (
        one.values if one.metrics == metrics else np.array([one.value(name) for name in metrics])
        for one in (a, b)
    )
    values = of_b - of_a
    values[np.abs(values) <= ROUNDING * np.abs(of_a)] = 0.0
    return _moments(metrics, values, len(a.finished) if all_finished else 0, [a, b])


def _moments(
    metrics: tuple[str, ...], values: Floats, n_finished: int, samples: Sequence[Sample]
) -> Moments:
    n = values.shape[1]
    if n_finished < n:  # the hours of a stopped replication say nothing, and may be infinite
        values = np.full_like(values, np.nan)
    mean = values.sum(axis=1) / max(n, 1)
    squares = np.square(values - mean[:, None]).sum(axis=1)
    of_curve = (
        (one.response, {name: one.measured(name) for name in one.errors}) for one in samples
    )
    return Moments(metrics, n, n_finished, mean, squares, tuple(of_curve))


def summary_of(moments: Moments) -> dict[str, Estimate]:
    """Mean and 95 % interval of every metric, and how many replications finished."""
    share = {FINISHED: Estimate.of_share(moments.n_finished, moments.n)}
    return share | estimates_of(moments, not_shared)


def difference_of(a: Sample, b: Sample, sharing: Sharing) -> dict[str, Estimate]:
    """Mean and interval of b - a, over the replications that both have."""
    return estimates_of(moments_apart(a, b), sharing)


def estimates_of(moments: Moments, sharing: Sharing) -> dict[str, Estimate]:
    """Mean and 95 % interval of every metric; those of losses have the curve's variances too.

    All are NaN where there are replications that did not finish.
    """
    n = moments.n
    if not n or moments.n_finished < n:
        return dict.fromkeys(moments.metrics, Estimate(np.nan, n=n))
    responses, errors = zip(*moments.of_curve, strict=True)
    found = {}
    numbers = zip(moments.metrics, moments.mean.tolist(), moments.squares.tolist(), strict=True)
    for name, mean, square in numbers:
        found[name] = Estimate.of_squares(mean, square, n)
        if n > 1 and name in errors[0]:
            of_curve = [each[name] for each in errors]
            measured: tuple[Variance, ...] = tuple((error**2, free) for error, free in of_curve)
            if len(of_curve) > 1:
                correlation = sharing(name, responses[0], responses[1])
                measured = of_difference(of_curve[0], of_curve[1], correlation)
            loss = MeanLoss(mean, *pooled((square / (n - 1) / n, n - 1.0), *measured))
            found[name] = Estimate(mean, *loss.interval(CONFIDENCE), n)
    return found


def summarise(outcome: Outcome) -> pd.DataFrame:
    """`summary_of` every strategy. Tidy frame: strategy, quantity, mean, low, high, n."""
    return summarise_rows(replication_rows(outcome), outcome.cluster.n_nodes)


def summarise_rows(rows: pd.DataFrame, n_nodes: int) -> pd.DataFrame:
    """`summarise`, from replication rows that may have been read back."""
    records = [
        (strategy, quantity, *one.triple, one.n)
        for strategy, sample in samples_of(rows, n_nodes).items()
        for quantity, one in summary_of(moments_of(sample)).items()
    ]
    return pd.DataFrame(records, columns=["strategy", "quantity", "mean", "low", "high", "n"])


def spreads(summary: pd.DataFrame) -> dict[str, dict[str, Estimate]]:
    """A summary by strategy and quantity."""
    found: dict[str, dict[str, Estimate]] = {}
    for row in records_of(summary):
        spread = Estimate(float(row["mean"]), float(row["low"]), float(row["high"]), int(row["n"]))
        found.setdefault(str(row["strategy"]), {})[str(row["quantity"])] = spread
    return found


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a small table as plain dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


# --------------------------------------------------------------------------- percentiles


PERCENT: Ints = np.arange(1, 100)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The percentiles 1 to 99 of a sample, each with its 95 % interval.

    `value`, `low`, `high`: (99,), in the sample's unit; `low` or `high` is NaN where the sample is
    too small to bound the percentile on that side.
    """

    percent: Ints
    value: Floats
    low: Floats
    high: Floats
    n: int

    def at(self, percent: int) -> Estimate:
        """One percentile; `mean` holds its value."""
        i = percent - 1
        return Estimate(float(self.value[i]), float(self.low[i]), float(self.high[i]), self.n)


def percentiles(values: Floats) -> Percentiles:
    """Percentiles of independent values.

    Values by linear interpolation. The interval is that of two order statistics, whose ranks are
    binomial: between ranks l and u lies the true percentile with a probability of at least 95 %,
    whatever the distribution (David and Nagaraja, Order Statistics, 2003, section 7.1).
    """
    from scipy import stats  # slow to load, and most commands need none

    ordered = np.sort(values)
    n, share = len(ordered), PERCENT / 100
    tail = (1 - CONFIDENCE) / 2
    low_rank = np.asarray(stats.binom.ppf(tail, n, share), np.int64)
    high_rank = np.asarray(stats.binom.ppf(1 - tail, n, share), np.int64) + 1
    bounded = np.concatenate([[np.nan], ordered, [np.nan]])
    return Percentiles(
        percent=PERCENT,
        value=np.quantile(ordered, share),
        low=bounded[low_rank],
        high=bounded[high_rank],
        n=n,
    )
