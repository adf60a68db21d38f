"""Metrics of a replication, and means with intervals over replications.

The one place that defines the metrics; docs/concepts.md has the formula of each. A metric is a
column computed from the columns of the replication rows, so that it can be recomputed from any
finished results folder.

The row of a replication includes its loss by the staleness curve. The curve's error is common to
all rows, so each loss keeps its standard error, which averaging does not reduce.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from cprsim.job.intervals import ROUNDING
from cprsim.job.losses import ALWAYS, Metric, lost_portion, strategy_key
from cprsim.job.policy import PARTS_IN_ORDER, Policy
from cprsim.job.records import (
    HIGH,
    LOW,
    Activity,
    Bools,
    Cluster,
    Estimate,
    EventKind,
    EventLog,
    Floats,
    Ints,
    ShardLoss,
    SubSaves,
)

if TYPE_CHECKING:
    from cprsim.accuracy.curve import StalenessCurve
    from cprsim.results.pipeline import Outcome, StrategyOutcome

Columns = Mapping[str, Any] | pd.DataFrame  # of replication rows
Quantities = Mapping[str, Estimate]  # by name
Error = tuple[float, float]  # of a mean loss that a curve prices, its degrees of freedom

ALWAYS_NAMED = {metric: metric.quantity for metric in ALWAYS}  # which all results have columns of
BEYOND = "beyond_measured"
RESPONSE = "response"
FINISHED = "finished_fraction"  # the quantity that every summary has, whatever happened

PRICED = (*ALWAYS_NAMED.values(), BEYOND)  # metrics that a staleness curve alone tells
IN_TABLES = ("save", "load", "lost", "detect", "wait", "reschedule")
"""The parts of overhead that every table shows first, in this order."""

BESIDE_OVERHEAD = (
    "failures", "saves", "pls", "pls_net", *PRICED, "ettr", "ettr_paid", "overhead_h",
    "overhead_node_h", "wall_h",
)  # fmt: skip
"""Metrics other than the overhead and its parts, in the order of files and JSON objects."""

OVERHEAD = "overhead_fraction"
METRICS = (OVERHEAD, *(f"{part}_fraction" for part in IN_TABLES), *BESIDE_OVERHEAD)
"""Those of every result; recovery systems have further parts."""


# --------------------------------------------------------------------------- rows


def replication_rows(outcome: Outcome) -> pd.DataFrame:
    """One row per strategy and replication: its hours, failures, saves and PLS.

    Columns: strategy, the columns of CostBreakdown (`useful_h` being the whole job's for those
    that finished), pls, pls_net, and those of `accuracy_columns`. Where there are finite spares, or
    a strategy takes extra nodes: extra_nodes and spare_nodes, which are paid like the job's.
    """
    return _one_table({s.policy.name: columns_of(s, outcome) for s in outcome.strategies})


def _one_table(columns: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """One table of those of several strategies, whose names come first."""
    frames = [pd.DataFrame({"strategy": name, **mine}) for name, mine in columns.items()]
    return pd.concat(frames or [pd.DataFrame({"strategy": []})], ignore_index=True)


def columns_of(strategy: StrategyOutcome, outcome: Outcome) -> dict[str, Any]:
    """The replication rows of one strategy, as columns; a value equal in all is a scalar.

    Without the single losses there are no columns of accuracy.
    """
    costs, losses, useful_h = strategy.costs, strategy.losses, outcome.useful_h
    if strategy.stale_h is None:
        pls, net = (
            lost_portion(since_h, losses, costs.replication, useful_h)
            for since_h in (losses.since_save_h, losses.since_reload_h)
        )
        accuracy = accuracy_columns(strategy, outcome)
    else:
        pls, net = (stale_h / useful_h for stale_h in strategy.stale_h)
        accuracy = {RESPONSE: ""}
    columns = {**costs.columns(), "pls": pls, "pls_net": net, **accuracy}
    n_spares, extra = outcome.cluster.n_spares, [s.policy.tax.nodes for s in outcome.strategies]
    if n_spares is not None or any(extra):  # nodes that are paid like the job's
        columns |= {"extra_nodes": strategy.policy.tax.nodes, "spare_nodes": float(n_spares or 0)}
    return columns


def loss_rows(outcome: Outcome) -> pd.DataFrame:
    """One row per strategy and lost shard: strategy, then the columns of ShardLoss."""
    return _one_table({s.policy.name: _fields(s.losses) for s in outcome.strategies})


def timeline_rows(logs: Mapping[str, EventLog], cluster: Cluster) -> pd.DataFrame:
    """One row per strategy and event, in words: strategy, the columns of EventLog, node.

    `kind` and `activity` are the lower-case names of EventKind and Activity; `node` names the
    slot within its role (``emb_ps 3``) and is empty where no node is concerned.
    """
    kinds = np.array([kind.name.lower() for kind in EventKind])
    activities = np.array([activity.part for activity in Activity])
    nodes = np.array([f"{role.name} {i}" for role in cluster.roles for i in range(role.n_nodes)])
    return _one_table(
        {
            name: {
                **_fields(log),
                "kind": kinds[log.kind],
                "activity": activities[log.activity],
                "node": np.where(log.slot >= 0, nodes[log.slot], ""),
            }
            for name, log in logs.items()
        }
    )


def _fields(record: ShardLoss | EventLog) -> dict[str, Any]:
    return {column.name: getattr(record, column.name) for column in fields(record)}


# --------------------------------------------------------------------------- what lost samples cost


def further_losses(columns: Iterable[Any]) -> tuple[str, ...]:
    """Columns of losses in other metrics than AUC and log-loss."""
    names = map(str, columns)
    return tuple(n for n in names if n not in ALWAYS_NAMED.values() and has_measured_error(n))


def accuracy_columns(strategy: StrategyOutcome, outcome: Outcome) -> dict[str, Any]:
    """The columns of one strategy's rows: see docs/concepts.md. NaN where nothing is known."""
    policy, costs, curve = strategy.policy, strategy.costs, outcome.curve
    columns: dict[str, Any] = {RESPONSE: strategy_key(policy) or ""}
    if curve is None:  # nothing is known, or nothing lost
        loss, degrees = (np.nan, np.nan) if columns[RESPONSE] else (0.0, inf)
        for name in ALWAYS_NAMED.values():
            columns |= {name: loss, f"{name}_se": loss, f"{name}_degrees": degrees}
        return columns | {BEYOND: loss}
    beyond = np.full(costs.n_replications, np.nan)
    for metric in dict.fromkeys([*ALWAYS, *curve.metrics]):
        name = metric.quantity
        predicted = curve.predict(policy, metric, strategy.losses, costs, outcome.useful_h)
        if predicted is None:
            columns |= {name: np.nan, f"{name}_se": np.nan, f"{name}_degrees": np.nan}
            continue
        columns |= {name: predicted.loss, f"{name}_se": predicted.standard_error}
        columns[f"{name}_degrees"] = predicted.degrees
        beyond = np.fmax(beyond, predicted.beyond)
    return columns | {BEYOND: beyond}


def why_unpriced(curve: StalenessCurve, policy: Policy) -> str:
    """Why a curve does not say what AUC a policy loses; empty where it does, or nothing is lost."""
    key = strategy_key(policy)
    if key is None or curve.of_policy(policy, Metric.AUC) is not None:
        return ""
    response = curve.of(key, Metric.AUC)
    if response is not None and response.settings is not None and policy.sub_saves is not None:
        measured, used = _settings(response.settings), _settings(policy.sub_saves)
        return f"it was measured with sub-saves of {measured}, here they are of {used}"
    if curve.of(key, Metric.LOG_LOSS) is not None:
        return f"the response of `{key}` is in log-loss alone, not in AUC"
    priced = ", ".join(r.strategy for r in curve.responses if r.metric == Metric.AUC)
    return f"it has no response of `{key}` in AUC; it has: {priced or 'none'}"


def _settings(sub_saves: SubSaves) -> str:
    every = f", one sample in {sub_saves.sample_period}" if sub_saves.tracker == "ssu" else ""
    return f"{100 * sub_saves.fraction:g} % of {sub_saves.n_large_tables} large tables{every}"


def has_measured_error(quantity: str) -> bool:
    """Whether a metric carries the error of a curve beside that of the simulation."""
    return Metric.of_quantity(quantity) is not None


# --------------------------------------------------------------------------- metrics of rows


def _measured(rows: Columns, n_nodes: int, parts: Iterable[str]) -> dict[str, Any]:
    """Every metric of replication rows, in the order of tables; parts that they lack are 0."""
    useful_h, wall_h = rows["useful_h"], rows["wall_h"]
    overhead_h = wall_h - useful_h
    extra, spares = rows.get("extra_nodes", 0.0), rows.get("spare_nodes", 0.0)
    metrics = {
        OVERHEAD: overhead_h / useful_h,
        **{share_of(part): rows.get(f"{part}_h", 0.0) / useful_h for part in parts},
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


def share_of(part: str) -> str:
    """The quantity of a part of overhead: its hours as a share of useful time."""
    return f"{part}_fraction"


def parts_among(names: Iterable[str]) -> tuple[str, ...]:
    """The parts of overhead whose hours or shares are among some names, in the order of tables."""
    by_name = {form: part for part in PARTS_IN_ORDER for form in (f"{part}_h", share_of(part))}
    return known_first((by_name[name] for name in names if name in by_name), IN_TABLES)


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
        return [response for response, _ in self.of_curve]


def sample_of(columns: Columns, n_nodes: int, parts: Iterable[str] | None = None) -> Sample:
    """Metrics of the replication rows of one strategy; missing parts of overhead are 0."""
    metrics = _measured(
        columns, n_nodes, parts_among(map(str, columns)) if parts is None else parts
    )
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


Estimates = dict[str, dict[str, Estimate]]  # by strategy and quantity


def frame_of(estimates: Estimates) -> pd.DataFrame:
    """A row per strategy and quantity: mean, low, high, n."""
    records = [
        (strategy, quantity, *estimate.triple, estimate.n)
        for strategy, mine in estimates.items()
        for quantity, estimate in mine.items()
    ]
    return pd.DataFrame(records, columns=["strategy", "quantity", "mean", "low", "high", "n"])


def summarise(outcome: Outcome) -> Estimates:
    """`summary_of` every strategy."""
    return summarise_rows(replication_rows(outcome), outcome.cluster.n_nodes)


def summarise_rows(rows: pd.DataFrame, n_nodes: int) -> Estimates:
    """`summarise`, from replication rows that may have been read back."""
    samples = samples_of(rows, n_nodes)
    return {name: summary_of(sample) for name, sample in samples.items()}


def differences(rows: pd.DataFrame, n_nodes: int, baseline: str) -> Estimates:
    """Cost of each strategy minus that of `baseline`, paired by replication.

    All strategies of a result meet the same failures, so the differences of the replications vary
    less than the replications themselves. NaN where one of the two has replications that did not
    finish.
    """
    samples = samples_of(rows, n_nodes)
    base = samples.pop(baseline)
    return {name: difference_of(base, mine, one_curve=True) for name, mine in samples.items()}


def more_than(baseline: str, rows: pd.DataFrame, n_nodes: int) -> dict[str, Estimate]:
    """Overhead of others less that of one strategy, paired by replication, of those that finish."""
    compared = differences(rows, n_nodes, baseline).items()
    overheads = {name: estimates[OVERHEAD] for name, estimates in compared}
    return {name: more for name, more in overheads.items() if not isnan(more.mean)}


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
    ordered, n, share = np.sort(values), len(values), PERCENT / 100
    bounded = np.concatenate([[np.nan], ordered, [np.nan]])
    at = np.array([[LOW], [HIGH]])
    ranks = np.ceil(special.bdtrik(at, n, share))  # where the binomial comes to `at`, or one beyond
    low, high = (ranks - (special.bdtr(ranks - 1, n, share) >= at)).astype(np.int64)
    columns = {"value": np.quantile(ordered, share), "low": bounded[low], "high": bounded[high + 1]}
    return pd.DataFrame(columns, index=PERCENT)
