"""What a sweep says in a few numbers: where each strategy is at its best and its worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from operator import itemgetter
from typing import Any

import pandas as pd

from cprsim.records import Bools, Estimate
from cprsim.results import records_of
from cprsim.sweeps.costs import COST_MONTH, OVERHEAD
from cprsim.sweeps.folder import SweepResult

LOSSES, COST = "losses", "cost"


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
    rows = _rows(result, OVERHEAD, strategy)
    finished = rows["mean"].notna().to_numpy()
    there = records_of(rows[finished])
    for quantity in result.priced:
        for row, loss in zip(there, _estimates(result, quantity, strategy, finished), strict=True):
            row.setdefault(LOSSES, {})[quantity] = loss
    if result.currency is not None:
        for row, cost in zip(
            there, _estimates(result, COST_MONTH, strategy, finished), strict=True
        ):
            row[COST] = None if isnan(cost.mean) else cost
    return StrategySummary(
        strategy=strategy,
        lowest=_extreme(result, min(there, key=itemgetter("mean"))) if there else None,
        highest=_extreme(result, max(there, key=itemgetter("mean"))) if there else None,
        n_less=int((rows["difference_high"] < 0).sum()),
        n_more=int((rows["difference_low"] > 0).sum()),
        n_points=int(rows["difference"].notna().sum()),
    )


def _estimates(
    result: SweepResult, quantity: str, strategy: str, finished: Bools
) -> Iterator[Estimate]:
    for row in records_of(_rows(result, quantity, strategy)[finished]):
        yield Estimate(row["mean"], row["low"], row["high"], row["n"])


def _rows(result: SweepResult, quantity: str, strategy: str) -> pd.DataFrame:
    of_all = result.of(quantity)
    return of_all[of_all["strategy"] == strategy]


def _extreme(result: SweepResult, row: Mapping[str, Any]) -> Extreme:
    where = {axis.column: row[axis.column] for axis in result.axes}
    return Extreme(
        where={k: v for k, v in where.items() if not pd.isna(v)},
        save_interval_h=float(row["save_interval_h"]),
        overhead=Estimate(row["mean"], row["low"], row["high"]),
        losses=row.get(LOSSES, {}),
        cost_month=row.get(COST),
    )
