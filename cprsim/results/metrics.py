"""What is measured of a replication, and means with intervals over replications.

The one place that defines the metrics; docs/metrics.md has the formula of each. A metric is a
column computed from the columns of the replication rows, so that it can be recomputed from any
finished results folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cprsim.records import CONFIDENCE, Estimate, Floats, Ints
from cprsim.results.rows import (
    BEYOND,
    QUANTITIES,
    RESPONSE,
    errors_of,
    further_losses,
    has_measured_error,
    mean_of_loss,
    replication_rows,
)

if TYPE_CHECKING:
    from cprsim.experiments.pipeline import Outcome


# (columns of replication rows, nodes of the job) -> the metric of each row
Columns = Mapping[str, Any] | pd.DataFrame
Metric = Callable[[Columns, int], Any]


def _part(name: str) -> Metric:
    return lambda rows, n_nodes: rows[f"{name}_h"] / rows["useful_h"]


def _column(name: str) -> Metric:
    return lambda rows, n_nodes: rows[name]


def _overhead_h(rows: Columns) -> Any:
    return rows["wall_h"] - rows["useful_h"]


def _nodes(rows: Columns, kind: str) -> Any:
    """Nodes that are paid beside the job's own; rows name them where there are some."""
    return rows.get(f"{kind}_nodes", 0.0)


def _overhead_node_h(rows: Columns, n_nodes: int) -> Any:
    return _overhead_h(rows) * n_nodes + rows["wall_h"] * _nodes(rows, "extra")


def _ettr_paid(rows: Columns, n_nodes: int) -> Any:
    beside = _nodes(rows, "extra") + _nodes(rows, "spare")
    return rows["useful_h"] / (rows["wall_h"] * (1.0 + beside / n_nodes))


_OVERHEAD: Mapping[str, Metric] = {
    "overhead_fraction": lambda rows, n_nodes: _overhead_h(rows) / rows["useful_h"],
}
BESIDE: dict[str, Metric] = {
    "failures": lambda rows, n_nodes: rows["n_failures"].astype(float),
    "saves": lambda rows, n_nodes: rows["n_saves"].astype(float),
    "pls": lambda rows, n_nodes: rows["pls"],
    "pls_net": lambda rows, n_nodes: rows["pls_net"],
    **{name: _column(name) for name in (*QUANTITIES.values(), BEYOND)},
    "ettr": lambda rows, n_nodes: rows["useful_h"] / rows["wall_h"],
    "ettr_paid": _ettr_paid,
    "overhead_h": lambda rows, n_nodes: _overhead_h(rows),
    "overhead_node_h": _overhead_node_h,
    "wall_h": lambda rows, n_nodes: rows["wall_h"],
}
"""Beside the overhead and its parts, in the order of files and JSON objects."""

FINISHED = "finished_fraction"  # the quantity that every summary has, whatever happened

IN_TABLES = ("save", "load", "lost", "detect", "wait", "reschedule")
"""The parts of overhead that every table shows first, in this order."""

_NO_PARTS = ("wall", "useful")  # columns of hours that are no part of overhead


def metrics_of(parts: Iterable[str]) -> dict[str, Metric]:
    """All metrics of replications whose overhead has these parts, in the order of tables."""
    return {**_OVERHEAD, **{part: _part(part) for part in parts}, **BESIDE}


METRICS: Mapping[str, Metric] = metrics_of(IN_TABLES)
"""Those of the parts that the engines tell apart today; sweeps add them up without rows."""


def parts_of(columns: Iterable[Any]) -> tuple[str, ...]:
    """The parts of overhead that columns of replication rows hold, in the order of tables."""
    names = [str(name).removesuffix("_h") for name in columns if str(name).endswith("_h")]
    return known_first((name for name in names if name not in _NO_PARTS), IN_TABLES)


def parts_among(quantities: Iterable[str]) -> tuple[str, ...]:
    """Those quantities of a summary that are parts of overhead, in the order of tables."""
    quantities = tuple(quantities)
    others = {*_OVERHEAD, *BESIDE, FINISHED, *further_losses(quantities)}
    return known_first((name for name in quantities if name not in others), IN_TABLES)


def known_first(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Each name once: known ones in the order of `known`, then the others as they come."""
    there, ranks = dict.fromkeys(names), {name: rank for rank, name in enumerate(known)}
    return tuple(sorted(there, key=lambda name: ranks.get(name, len(ranks))))


def measure(rows: pd.DataFrame, n_nodes: int, parts: Sequence[str] | None = None) -> pd.DataFrame:
    """Every metric of every replication: strategy, replication, finished and a column a metric."""
    there = parts_of(rows)
    metrics = metrics_of(there if parts is None else parts)
    rows = rows.assign(**{f"{part}_h": 0.0 for part in parts or () if part not in there})
    further = further_losses(rows)
    metrics |= {name: _column(name) for name in further}
    values = {name: metric(rows, n_nodes) for name, metric in metrics.items()}
    errors = errors_of((*QUANTITIES.values(), *further))
    kept = rows[["strategy", "replication", "finished", RESPONSE, *errors]]
    return pd.concat([kept, pd.DataFrame(values)], axis=1)


def summarise(outcome: Outcome) -> pd.DataFrame:
    """Mean and 95 % interval of every metric of every strategy.

    Tidy frame: strategy, quantity, mean, low, high, n (replications). Where a strategy has
    replications that did not finish, the means of its metrics are NaN, because the hours of a
    stopped replication say nothing; `finished_fraction` is there for every strategy.
    """
    return summarise_rows(replication_rows(outcome), outcome.cluster.n_nodes)


def summarise_rows(rows: pd.DataFrame, n_nodes: int) -> pd.DataFrame:
    """`summarise`, from replication rows that may have been read back."""
    measured = measure(rows, n_nodes)
    records = []
    for strategy, mine in measured.groupby("strategy", sort=False, observed=True):
        n, n_finished = len(mine), int(mine["finished"].sum())
        records.append(
            (strategy, FINISHED, n_finished / n, *Estimate.of_share(n_finished, n).triple[1:], n)
        )
        for name in (*metrics_of(parts_of(rows)), *further_losses(rows)):
            mean, low, high = _interval(mine, name) if n_finished == n else (np.nan, np.nan, np.nan)
            records.append((strategy, name, mean, low, high, n))
    return pd.DataFrame(records, columns=["strategy", "quantity", "mean", "low", "high", "n"])


def _interval(measured: pd.DataFrame, name: str) -> tuple[float, float, float]:
    if has_measured_error(name):
        found = mean_of_loss(measured, name)
        return found.mean, *found.interval(CONFIDENCE)
    return Estimate.of_mean(measured[name].to_numpy(np.float64)).triple


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
