"""The folder of a finished sweep: its table, figures and manifest, all there or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from cprsim.errors import ResultError, one_line
from cprsim.experiments.assemble import Experiment
from cprsim.files import NOT_STORED
from cprsim.recovery.policy import BY_RULES, RELOAD
from cprsim.results.folder import (
    ResultTarget,
    new_folder,
    read_record,
    read_table,
    readable,
    write_csv,
    write_parquet,
    write_record,
)
from cprsim.results.manifest import read_manifest
from cprsim.results.metrics import records_of
from cprsim.results.rows import QUANTITIES, further_losses, why_unpriced
from cprsim.results.run import warnings_of
from cprsim.results.store import Body
from cprsim.results.words import count, priced_by
from cprsim.scenario.prices import ACCURACY
from cprsim.scenario.reading import LoadedScenario
from cprsim.staleness.names import Metric, strategy_key
from cprsim.sweeps.points import Point, require_sweep
from cprsim.sweeps.table import COST_MONTH, OVERHEAD, sweep_table

TABLE = "sweep.parquet"
ABOUT = "sweep.json"
AUC_LOSS = QUANTITIES[Metric.AUC]


# Columns of the table that tables, figures and sentences are made of, beside those of the axes.
SHOWN = (
    "strategy", "on_failure", "mean", "low", "high", "n", "save_interval_h",
    "difference", "difference_low", "difference_high",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AxisColumn:
    """An axis as the table has it."""

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
    """A finished sweep; `sweep.json` holds what is no table. `table` is that of `sweep_table`."""

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
        """The rows of one quantity."""
        return self.table[self.table["quantity"] == quantity]

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies in the scenario's order."""
        return tuple(self.table["strategy"].unique())

    @property
    def losses(self) -> tuple[str, ...]:
        """Losses in AUC and further metrics, known of any strategy whose shards go stale."""
        rows = self.table[self.table["on_failure"].isin([RELOAD, BY_RULES])]
        known = set(rows.loc[rows["mean"].notna(), "quantity"])
        return tuple(one for one in (AUC_LOSS, *further_losses(known)) if one in known)

    @property
    def cheapest(self) -> dict[str, Any] | None:
        """The row of the least cost a month over all points; None where nothing has a price."""
        rows, losses = self.of(COST_MONTH), self.of(f"{COST_MONTH} {ACCURACY}")
        rows = rows[rows["mean"].notna()]
        known = rows["strategy"].isin(losses.loc[losses["mean"].notna(), "strategy"])
        rows = rows[known] if known.any() else rows
        return records_of(rows.loc[[rows["mean"].idxmin()]])[0] if len(rows) else None

    @property
    def n_points(self) -> int:
        """Points of the sweep."""
        return len(self.of(OVERHEAD)) // len(self.strategies)


def sweep_result(
    loaded: LoadedScenario, points: Sequence[Point], bodies: Sequence[Body]
) -> SweepResult:
    """A finished sweep, which has no folder yet."""
    sweep, experiments = require_sweep(loaded), [point.experiment for point in points]
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
        table=sweep_table(sweep.over, points, bodies),
        accuracy=tuple(_accuracy(experiments)),
        warnings=tuple(_warnings(experiments)),
        currency=next((one.prices.currency for one in points if one.prices is not None), None),
    )


def write_sweep(
    target: ResultTarget, result: SweepResult, draw: Callable[[SweepResult], object]
) -> SweepResult:
    """Write a finished sweep into its folder, whole or not at all."""
    with new_folder(target) as folder:
        write_record(folder / ABOUT, result)
        write_parquet(result.table, folder / TABLE)
        write_csv(result.table, folder / "sweep.csv")
        draw(_read(folder))
    return load_sweep(target.folder)


def _warnings(experiments: Sequence[Experiment]) -> list[str]:
    """Of `warnings_of`: the first of each strategy, and at how many points it is warned of."""
    first: dict[str, str] = {}
    n_points: Counter[str] = Counter()
    for experiment in experiments:
        for warning in warnings_of(experiment):
            strategy = warning.partition(":")[0]
            first.setdefault(strategy, warning)
            n_points[strategy] += 1
    n = len(experiments)
    return [f"At {n_points[name]:,} of {count(n, 'point')}: {text}" for name, text in first.items()]


def _accuracy(experiments: Sequence[Experiment]) -> list[str]:
    """Which curve prices losses, and which strategies it does not price at some point, and why."""
    curve = experiments[0].curve
    if curve is None:
        return []
    stale = [p for one in experiments for p in one.policies if strategy_key(p) is not None]
    unpriced = {p.name: why for p in stale if (why := why_unpriced(curve, p))}
    shown = any(not why_unpriced(curve, p) for p in stale)
    return priced_by(curve.name, curve.origin, curve.notes, unpriced, shown=shown)


def load_sweep(path: Path | str) -> SweepResult:
    """Read the folder of a finished sweep."""
    folder = Path(path)
    read_manifest(folder)
    result = _read(folder)
    needed = [*SHOWN, *(axis.column for axis in result.axes)]
    missing = [name for name in needed if name not in result.table]
    if missing:
        raise ResultError(f"{folder} is damaged: its table has no column {one_line(missing[0])}")
    return result


def _read(folder: Path) -> SweepResult:
    with readable(folder, "a sweep"):
        table = read_table(folder / TABLE)
    return read_record(SweepResult, folder / ABOUT, "a sweep", path=folder, table=table)
