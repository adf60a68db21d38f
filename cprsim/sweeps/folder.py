"""The folder of a finished sweep: its table, figures and manifest, all there or none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cprsim.assemble import Experiment
from cprsim.errors import ResultError
from cprsim.foreign import UNUSABLE, one_line, read_json
from cprsim.records import OnFailure
from cprsim.results.accuracy_rows import why_unpriced
from cprsim.results.identity import Identity
from cprsim.results.manifest import damage, read_manifest, write_manifest
from cprsim.results.publish import publishing
from cprsim.results.warnings import warnings
from cprsim.results.words import count, priced_by
from cprsim.results.write import write_csv, write_parquet
from cprsim.scenario.sweep import Axis
from cprsim.staleness import strategy_key
from cprsim.sweeps.table import column

TABLE = "sweep.parquet"
ABOUT = "sweep.json"


# Columns of the table that tables, figures and sentences are made of, beside those of the axes.
SHOWN = (
    "strategy", "on_failure", "engine", "mean", "low", "high", "n", "save_interval_h",
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
    """A finished sweep, as read from its folder; `table` is that of `sweep_table`."""

    path: Path
    name: str
    mode: str
    axes: tuple[AxisColumn, ...]
    reference: str
    useful_h: float
    table: pd.DataFrame
    accuracy: tuple[str, ...] = ()  # which staleness curve prices losses, in sentences
    warnings: tuple[str, ...] = ()

    def of(self, quantity: str) -> pd.DataFrame:
        """The rows of one quantity."""
        return self.table[self.table["quantity"] == quantity]

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies in the scenario's order."""
        return tuple(self.table["strategy"].unique())

    @property
    def knows_loss(self) -> bool:
        """Whether there is a loss of AUC of any strategy whose shards go stale."""
        rows = self.of("auc_loss")
        reloads = rows["on_failure"].isin([OnFailure.RELOAD.value, OnFailure.BY_RULES.value])
        return bool(rows.loc[reloads, "mean"].notna().any())

    @property
    def n_points(self) -> int:
        """Points of the sweep."""
        return len(self.table) // max(1, len(self.table.groupby(["strategy", "quantity"])))


def about(
    name: str, mode: str, axes: Sequence[Axis], reference: str, experiments: Sequence[Experiment]
) -> dict[str, Any]:
    """What a sweep says of itself beside its table; `experiments` are those of its points."""
    return {
        "name": name,
        "mode": mode,
        "axes": [
            {
                "key": axis.key,
                "column": column(axis),
                "unit": axis.values.unit,
                "numeric": axis.values.numbers is not None,
                "logarithmic": axis.values.logarithmic,
            }
            for axis in axes
        ],
        "reference": reference,
        "useful_h": experiments[0].useful_h,
        "accuracy": _accuracy(experiments),
        "warnings": _warnings(experiments),
    }


def _warnings(experiments: Sequence[Experiment]) -> list[str]:
    """Of `results.warnings`: the first of each strategy, and at how many points it is warned of."""
    first: dict[str, str] = {}
    n_points: Counter[str] = Counter()
    for experiment in experiments:
        for said in warnings(experiment):
            strategy = said.partition(":")[0]
            first.setdefault(strategy, said)
            n_points[strategy] += 1
    n = len(experiments)
    return [f"At {n_points[name]:,} of {count(n, 'point')}: {said}" for name, said in first.items()]


def _accuracy(experiments: Sequence[Experiment]) -> list[str]:
    """Which curve prices losses, and which strategies it does not price at some point, and why."""
    curve = experiments[0].curve
    if curve is None:
        return []
    stale = [p for one in experiments for p in one.policies if strategy_key(p) is not None]
    unpriced = {p.name: why for p in stale if (why := why_unpriced(curve, p))}
    shown = any(not why_unpriced(curve, p) for p in stale)
    return priced_by(curve.name, curve.origin, curve.notes, unpriced, shown=shown)


def write_sweep(
    root: Path,
    identity: Identity,
    said: Mapping[str, Any],
    table: pd.DataFrame,
    *,
    manifest: Mapping[str, Any],
    started: datetime,
    draw: Callable[[SweepResult], object],
) -> SweepResult:
    """Write a finished sweep into its folder under `root`, whole or not at all.

    Parameters
    ----------
    said : of `about`
    manifest : what else the manifest says: command, points, ...
    draw : puts the figures into ``result.path``; called before the folder is in place

    Raises
    ------
    ResultError : it can't be written; nothing is left behind, the points stay in their store
    """
    final = root / identity.folder_name
    with publishing(final, damage) as folder:
        (folder / "scenario.yaml").write_text(identity.scenario_yaml, "utf-8")
        text = json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False)
        (folder / ABOUT).write_text(text + "\n", "utf-8")
        write_parquet(table, folder / TABLE)
        write_csv(table, folder / "sweep.csv")
        draw(_read(folder))
        write_manifest(folder, identity, manifest, started)
    return load_sweep(final)


def load_sweep(path: Path | str) -> SweepResult:
    """Read the folder of a finished sweep.

    Raises
    ------
    ResultError : no manifest (unfinished, or no sweep at all), a file missing, damaged or of
        another layout
    """
    folder = Path(path)
    read_manifest(folder)
    result = _read(folder)
    needed = [*SHOWN, *(axis.column for axis in result.axes)]
    missing = [name for name in needed if name not in result.table]
    if missing:
        raise ResultError(f"{folder} is damaged: its table has no column {one_line(missing[0])}")
    return result


def is_sweep(folder: Path) -> bool:
    """Whether this is the folder of a sweep, and not of a run."""
    return (folder / ABOUT).is_file()


def _read(folder: Path) -> SweepResult:
    try:
        said = read_json(folder / ABOUT)
        return SweepResult(
            path=folder,
            name=str(said["name"]),
            mode=str(said["mode"]),
            axes=tuple(AxisColumn(**axis) for axis in said["axes"]),
            reference=str(said["reference"]),
            useful_h=float(said["useful_h"]),
            accuracy=tuple(said.get("accuracy", ())),
            warnings=tuple(said.get("warnings", ())),
            table=pq.read_table(folder / TABLE).to_pandas(),
        )
    except (OSError, pa.ArrowException, *UNUSABLE) as error:
        told = one_line(str(error), 200)
        raise ResultError(f"{folder} can't be read as a sweep: {told}") from error
