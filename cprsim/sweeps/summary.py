"""What a sweep says in a few numbers: where each strategy is at its best and its worst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

import pandas as pd

from cprsim.records import Estimate
from cprsim.results import records_of
from cprsim.sweeps.costs import COST_MONTH, OVERHEAD
from cprsim.sweeps.folder import SweepResult


@dataclass(frozen=True, slots=True)
class Extreme:
    """One point of a sweep, as one strategy does there; `where` by the table's axis columns."""

    where: Mapping[str, Any]
    save_interval_h: float
    overhead: Estimate  # as a share of useful time
    losses: Mapping[str, Estimate]  # there, by quantity; none where no staleness curve prices it
    cost_month: Estimate | None = None  # in the currency of the prices; None: nothing has one


@dataclass(frozen=True, slots=True)
class StrategySummary:
    """One strategy over all points of a sweep; points at which jobs do not finish are left out.

    `n_less`, `n_more`: points at which its overhead is below and above the reference's with 95 %
    confidence, point by point.
    """

    strategy: str
    lowest: Extreme | None
    highest: Extreme | None
    n_less: int
    n_more: int
    n_points: int  # at which both finish


def summaries(result: SweepResult) -> list[StrategySummary]:
    """One summary per strategy, in the scenario's order."""
    return [_summary(result, name) for name in result.strategies]


def _summary(result: SweepResult, strategy: str) -> StrategySummary:
    mine = result.table[result.table["strategy"] == strategy]
    of = {str(name): records_of(rows) for name, rows in mine.groupby("quantity", sort=False)}
    overhead = of[OVERHEAD]
    finished = [at for at, row in enumerate(overhead) if not isnan(row["mean"])]

    def extreme(choose: Any) -> Extreme | None:
        if not finished:
            return None
        at = choose(finished, key=lambda at: overhead[at]["mean"])
        row = overhead[at]
        where = {axis.column: row[axis.column] for axis in result.axes}
        cost = None if result.currency is None else _estimate(of[COST_MONTH][at])
        return Extreme(
            where={k: v for k, v in where.items() if not pd.isna(v)},
            save_interval_h=row["save_interval_h"],
            overhead=_estimate(row),
            losses={name: _estimate(of[name][at]) for name in result.priced},
            cost_month=None if cost is None or isnan(cost.mean) else cost,
        )

    return StrategySummary(
        strategy=strategy,
        lowest=extreme(min),
        highest=extreme(max),
        n_less=sum(row["difference_high"] < 0 for row in overhead),
        n_more=sum(row["difference_low"] > 0 for row in overhead),
        n_points=sum(not isnan(row["difference"]) for row in overhead),
    )


def _estimate(row: Mapping[str, Any]) -> Estimate:
    return Estimate(row["mean"], row["low"], row["high"])
