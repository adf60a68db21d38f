"""A finished sweep: its table, a row per point, strategy and quantity; and its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from cprsim.commands.sweep.points import Point, require_sweep
from cprsim.files import NOT_STORED
from cprsim.job.intervals import daly_h, young_h
from cprsim.job.losses import strategy_key
from cprsim.job.policy import BY_RULES, RELOAD, Policy
from cprsim.job.records import Estimate
from cprsim.recovery.paper import FELL_BACK, cpr_interval_h
from cprsim.results.folder import (
    ResultTarget,
    new_folder,
    read_manifest,
    read_record,
    write_csv,
    write_parquet,
    write_record,
)
from cprsim.results.metrics import OVERHEAD, further_losses, records_of, why_unpriced
from cprsim.results.money import AUC_LOSS, JobPrices, at_overhead, prices_of, use_of
from cprsim.results.run import warnings_of
from cprsim.results.store import Body
from cprsim.results.words import count, priced_by
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.job import Values
from cprsim.scenario.prices import ACCURACY
from cprsim.scenario.reading import LoadedScenario

TABLE, ABOUT = "sweep.parquet", "sweep.json"
ONE_VARIED = "varied"  # which axis a row of one-at-a-time varies; empty for the scenario as it is
COST_JOB, COST_MONTH = "cost_job", "cost_month"  # quantities; ``cost_month save``: of a part
NUMBERS = ("mean", "low", "high", "difference", "difference_low", "difference_high")


@dataclass(frozen=True, slots=True)
class AxisColumn:
    """An axis in the table."""

    key: str
    column: str
    unit: str
    numeric: bool
    logarithmic: bool

    @property
    def is_interval(self) -> bool:
        """Whether it is how often strategies save, as a time."""
        is_one = self.key.startswith("recovery.") and self.key.endswith(".interval")
        return is_one and self.numeric and self.unit != ""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A finished sweep; `sweep.json` holds all but `table`, which is that of `sweep_rows`."""

    path: Path = field(metadata=NOT_STORED)
    name: str
    mode: str
    axes: tuple[AxisColumn, ...]
    reference: str
    useful_h: float
    table: pd.DataFrame = field(metadata=NOT_STORED)
    accuracy: tuple[str, ...] = ()  # which staleness curve prices losses, in sentences
    warnings: tuple[str, ...] = ()
    currency: str | None = None  # of what it costs; None: nothing has a price
    __pydantic_config__: ClassVar = {"arbitrary_types_allowed": True}

    def of(self, quantity: str) -> pd.DataFrame:
        """Rows of a quantity, without numbers where the strategy saves at another interval."""
        rows = self.table[self.table["quantity"] == quantity]
        return rows.assign(**{name: rows[name].mask(self.is_off_axis(rows)) for name in NUMBERS})

    def is_off_axis(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """Where CPR fell back to full recovery, and did not use the interval of an axis."""
        is_off = pd.Series(data=False, index=rows.index)
        for axis in [axis for axis in self.axes if axis.is_interval]:
            of = axis.key.split(".")[1:-1]  # a name or a number; none: of all
            names = [self.strategies[int(at)] if at.isdigit() else at for at in of]
            is_off |= rows["strategy"].isin(names or self.strategies) & rows[axis.column].notna()
        return is_off & (rows["interval_rule"] == FELL_BACK)

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies in the scenario's order."""
        return tuple(self.table["strategy"].unique())

    @property
    def losses(self) -> tuple[str, ...]:
        """Losses in AUC and further metrics, known of any strategy whose shards go stale."""
        rows = self.table[self.table["on_failure"].isin([RELOAD, BY_RULES])]
        priced = set(rows.loc[rows["mean"].notna(), "quantity"])
        return tuple(loss for loss in (AUC_LOSS, *further_losses(priced)) if loss in priced)

    @property
    def columns(self) -> dict[str, str]:
        """The quantities by their columns in the frame of points."""
        return {str(name).replace(" ", "_"): str(name) for name in self.table["quantity"].unique()}

    @property
    def best(self) -> pd.DataFrame:
        """Rows of the least cost, or overhead, at each point; of equal ones that of most saves."""
        losses = self.of(f"{COST_MONTH} {ACCURACY}")
        rows = self.of(OVERHEAD if self.currency is None else COST_MONTH).dropna(subset="mean")
        is_priced = rows["strategy"].isin(losses.loc[losses["mean"].notna(), "strategy"])
        rows = rows[is_priced] if is_priced.any() else rows
        places = [*(axis.column for axis in self.axes), ONE_VARIED]
        return rows.sort_values(["mean", "save_interval_h"]).drop_duplicates(places)

    @property
    def cheapest(self) -> dict[str, Any] | None:
        """The row of the least cost per month over all points; None without prices."""
        rows = [] if self.currency is None else records_of(self.best[:1])
        return next(iter(rows), None)

    @property
    def replications(self) -> str:
        """The number of replications of its points, in words."""
        low, high = self.table["n"].min(), self.table["n"].max()
        return (f"{low:,} to " if low < high else "") + count(high, "replication")

    @property
    def n_points(self) -> int:
        return len(self.of(OVERHEAD)) // len(self.strategies)


def sweep_result(
    loaded: LoadedScenario, points: Sequence[Point], bodies: Sequence[Body]
) -> SweepResult:
    """A finished sweep, which has no folder yet."""
    sweep, experiments = require_sweep(loaded), [point.experiment for point in points]
    prices = [prices_of(experiment.scenario) for experiment in experiments]
    rows = sweep_rows(sweep.over, points, bodies, prices)
    return SweepResult(
        path=Path(),
        name=loaded.scenario.name,
        mode=sweep.mode,
        axes=tuple(
            AxisColumn(key, of.column(key), of.unit, of.numbers is not None, of.logarithmic)
            for key, of in sweep.over.items()
        ),
        reference=points[0].reference,
        useful_h=experiments[0].useful_h,
        table=pd.DataFrame(rows),
        accuracy=tuple(_accuracy(experiments)),
        warnings=tuple(_warnings(experiments)),
        currency=next((of.currency for of in prices if of is not None), None),
    )


def write_sweep(
    target: ResultTarget, result: SweepResult, draw: Callable[[SweepResult], object]
) -> SweepResult:
    """Write a finished sweep into its folder, whole or not at all."""
    with new_folder(target, points=result.n_points) as folder:
        write_record(folder / ABOUT, result)
        write_parquet(result.table, folder / TABLE)
        write_csv(result.table, folder / "sweep.csv")
        draw(_read(folder))
    return load_sweep(target.folder)


def load_sweep(path: Path | str) -> SweepResult:
    """Read the folder of a finished sweep."""
    folder = Path(path)
    read_manifest(folder)
    return _read(folder)


def _read(folder: Path) -> SweepResult:
    return read_record(SweepResult, folder / ABOUT, "a sweep", [("table", TABLE)], path=folder)


# ------------------------------------------------------------------------------ what is said of it


def _warnings(experiments: Sequence[Experiment]) -> list[str]:
    """Of `warnings_of`: the first about each thing, and its number of points."""
    first: dict[str, str] = {}
    n_points: Counter[str] = Counter()
    for experiment in experiments:
        for about, warning in warnings_of(experiment).items():
            first.setdefault(about, warning)
            n_points[about] += 1
    of = count(len(experiments), "point")
    return [f"At {n_points[it]:,} of {of}, e.g. {text}" for it, text in first.items()]


def _accuracy(experiments: Sequence[Experiment]) -> list[str]:
    """Which curve prices losses, and which strategies it does not price at some point, and why."""
    curve = experiments[0].curve
    if curve is None:
        return []
    stale = [
        p for experiment in experiments for p in experiment.policies if strategy_key(p) is not None
    ]
    unpriced = {p.name: why for p in stale if (why := why_unpriced(curve, p))}
    any_priced = any(not why_unpriced(curve, p) for p in stale)
    return priced_by(curve.name, curve.origin, curve.notes, unpriced, is_shown=any_priced)


# ------------------------------------------------------------------------------ the table


def sweep_rows(
    axes: Mapping[str, Values],
    points: Sequence[Point],
    bodies: Sequence[Body],
    prices: Sequence[JobPrices | None],
) -> Iterator[dict[str, Any]]:
    """The tidy table of a sweep, in the order of its points."""
    costs = [
        [
            _costs_of(point.experiment, policy, body[policy.name]["quantities"], at)
            for policy in point.experiment.policies
        ]
        for point, body, at in zip(points, bodies, prices, strict=True)
    ]
    names = dict.fromkeys(name for some in costs for cost in some for name in cost)
    for point, body, some in zip(points, bodies, costs, strict=True):
        place, job = _place(axes, point), point.experiment
        for policy, cost in zip(job.policies, some, strict=True):
            head = {
                **place,
                "strategy": policy.name,
                "on_failure": policy.on_failure,
                "save_interval_h": policy.interval_h,
                "interval_rule": policy.interval_rule,
                **_rules(job, policy),
            }
            shared = {"n": body[policy.name]["n"], "reference": point.reference}
            columns = {
                name: dict(zip(NUMBERS, map(_number, numbers), strict=True))
                for name, numbers in body[policy.name]["quantities"].items()
            }
            for name in names:
                # a part that a strategy lacks costs nothing, but a loss is not known
                none = Estimate(nan if not cost or name.endswith(f" {ACCURACY}") else 0.0)
                columns[name] = dict.fromkeys(NUMBERS, nan) | cost.get(name, none).by_name
            for name, numbers in columns.items():
                yield {**head, "quantity": name, **shared, **numbers}


def _place(axes: Mapping[str, Values], point: Point) -> dict[str, Any]:
    """Where a point is: its value on each axis; empty where the scenario's own holds."""
    located = list(zip(axes.items(), point.coordinates, strict=True))
    varied = [key for (key, _), i in located if i is not None]
    listed = {of.column(key): None if i is None else of.listed[i] for (key, of), i in located}
    return {**listed, ONE_VARIED: " ".join(varied)}


def _rules(job: Experiment, policy: Policy) -> Mapping[str, float]:
    """Intervals by Young's, Daly's and CPR's formulas at this point [h]."""
    entry = next(entry for entry in job.scenario.recovery if entry.name == policy.name)
    costs = job.at_costs_of(entry).costs
    facts, chosen = replace(job.facts, costs=costs), nan
    save_h = costs.mean_h(costs.save_stall, job.cluster.n_emb_ps)
    if entry.target_pls and facts.n_shards_together:
        chosen = cpr_interval_h(facts, entry.target_pls)
    return {
        "young_h": young_h(save_h, facts.mtbf_h) or nan,
        "daly_h": daly_h(save_h, facts.mtbf_h) or nan,
        "cpr_h": chosen,
    }


def _costs_of(
    job: Experiment, policy: Policy, quantities: Mapping[str, Any], prices: JobPrices | None
) -> dict[str, Estimate]:
    """Cost of a job and of a month at a point, in total and by part, in the prices' currency.

    Amounts are rounded to the cent, and parts add up to their total. The intervals of the totals
    are those of the overhead. Empty without prices, or if not all jobs finish.
    """
    summary = {
        name: Estimate(_number(mean), _number(low), _number(high))
        for name, (mean, low, high, *_) in quantities.items()
    }
    use = use_of(job.useful_h, summary)
    if prices is None or use is None:
        return {}
    billed, overhead, estimates = prices.billed(policy, use), summary[OVERHEAD], {}
    ends = [
        None if isnan(end) else prices.billed(policy, at_overhead(use, end))
        for end in (overhead.low, overhead.high)
    ]
    for name, of in ((COST_JOB, "job"), (COST_MONTH, "month")):
        total, low, high = (
            nan if bill is None else getattr(bill, of).total_cents / 100 for bill in (billed, *ends)
        )
        estimates[name] = Estimate(total, low, high)
        for part, cents in getattr(billed, of).cents.items():
            estimates[f"{name} {part}"] = Estimate(cents / 100)
    return estimates


def _number(value: float | None) -> float:
    return nan if value is None else float(value)
