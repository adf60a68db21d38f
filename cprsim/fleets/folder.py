"""The folder of a finished fleet: options, figures and manifest, all there or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from cprsim.codec import FieldMark, Finite, Key
from cprsim.estimate import Estimate
from cprsim.fleets.cells import STATISTICS
from cprsim.fleets.deciding import FleetDecision, Knee
from cprsim.fleets.options import Option, OptionAxis
from cprsim.results.folder import ResultTarget, new_folder, read_record, write_csv, write_record
from cprsim.results.manifest import read_manifest
from cprsim.scenario import LoadedScenario

ABOUT = "fleet.json"


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option as its folder has it.

    Parameters
    ----------
    where : values of the axes, by key; empty for the scenario's own
    statistics : of `cells.STATISTICS`
    cost : per month: cents, or node-hours where nothing has a price
    node_h : per month, by part
    cents : per month, by part of the bill; empty where nothing has a price
    """

    name: str
    strategy: str
    where: Mapping[str, Any]
    finished: bool
    engine: str
    statistics: Mapping[str, Estimate]
    cost: Finite
    node_h: Mapping[str, float]
    cents: Mapping[str, int] = field(default_factory=dict)
    energy_kwh: Finite = nan
    carbon_kg: Finite = nan


@dataclass(frozen=True, slots=True)
class FleetResult:
    """A finished fleet; `fleet.json` holds all of it."""

    path: Annotated[Path, FieldMark.NOT_STORED]
    name: str
    n_jobs: Annotated[int, Key("jobs")]
    n_kinds: Annotated[int, Key("kinds")]
    window_h: float
    histories: int
    shared: Mapping[str, str]  # what jobs share, in words
    currency: str | None  # None: nothing has a price
    axes: Mapping[str, Sequence[Any]]  # key -> values; without the scenario's own
    options: tuple[OptionRow, ...]
    decision: FleetDecision
    knees: tuple[Knee, ...]

    def option(self, name: str) -> OptionRow:
        """The option of that name."""
        return next(one for one in self.options if one.name == name)

    @property
    def has_money(self) -> bool:
        """Whether anything has a price."""
        return self.currency is not None


def write_fleet(
    target: ResultTarget,
    loaded: LoadedScenario,
    axes: Sequence[OptionAxis],
    options: Sequence[Option],
    decision: FleetDecision,
    knees: Sequence[Knee],
    draw: Callable[[FleetResult], object],
) -> FleetResult:
    """Write a finished fleet into its folder, whole or not at all.

    Parameters
    ----------
    draw : puts the figures into ``result.path``; called before the folder is in place

    Raises
    ------
    ResultError : it can't be written; nothing is left behind
    """
    fleet, first = loaded.scenario.fleet, options[0]
    assert fleet is not None
    bill = first.priced[0].bill
    with new_folder(target) as folder:
        result = FleetResult(
            path=folder,
            name=loaded.scenario.name,
            n_jobs=first.cells[0].n_jobs,
            n_kinds=len(first.cells[0].by_kind),
            window_h=fleet.window_h,
            histories=fleet.histories,
            shared=dict(_shared(loaded)),
            currency=None if bill is None else bill.currency,
            axes={axis.key: axis.values.written for axis in axes},
            options=tuple(map(_row, options)),
            decision=decision,
            knees=tuple(knees),
        )
        write_record(folder / ABOUT, result)
        write_csv(option_table(result), folder / "options.csv")
        draw(_read(folder))
    return load_fleet(target.folder)


def _shared(loaded: LoadedScenario) -> list[tuple[str, str]]:
    section = loaded.scenario.fleet
    assert section is not None
    said = section.model_dump(mode="json", by_alias=True, exclude_none=True)
    keys = ("nodes", "spares", "crews", "queue", "storage", "savers")
    return [(key, str(said[key])) for key in keys if key in said and key != "queue"]


def _row(one: Option) -> OptionRow:
    bills = [each.bill for each in one.priced if each.bill is not None]
    n = len(one.cells)
    node_h: dict[str, float] = {}
    for cell in one.cells:
        for part, by_role in cell.usage.node_h.items():
            hours = sum(by_role.values()) / cell.months / n
            node_h[part] = node_h.get(part, 0.0) + hours
    cents = _mean_cents([bill.cents for bill in bills]) if bills else {}
    return OptionRow(
        name=one.name,
        strategy=one.strategy,
        where=one.where,
        finished=one.finished,
        engine="simpy" if any(cell.by_events for cell in one.cells) else "fast",
        statistics={name: one.statistic(name) for name in STATISTICS},
        cost=float(sum(cents.values())) if cents else one.cost,
        node_h=node_h,
        cents=cents,
        energy_kwh=_mean([each.energy_kwh for each in one.priced]),
        carbon_kg=_mean([each.carbon_kg for each in one.priced]),
    )


def _mean_cents(bills: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Mean over the histories, part by part, in whole cents; the total is their sum."""
    parts = dict.fromkeys(part for bill in bills for part in bill)
    return {part: round(sum(bill.get(part, 0) for bill in bills) / len(bills)) for part in parts}


def _mean(values: Sequence[float | None]) -> float:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else nan


def option_table(result: FleetResult) -> pd.DataFrame:
    """A row per option: values of the axes, statistics with intervals, node-hours, money."""
    rows = []
    for one in result.options:
        row: dict[str, Any] = {"option": one.name, "strategy": one.strategy}
        row |= {key: one.where.get(key) for key in result.axes}
        row |= {"finished": one.finished, "engine": one.engine}
        for name, interval in one.statistics.items():
            row |= {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
        row |= {f"node_h_per_month {part}": hours for part, hours in one.node_h.items()}
        row |= {f"cents_per_month {part}": cents for part, cents in one.cents.items()}
        row |= {
            "cost_per_month": one.cost,
            "energy_kwh": one.energy_kwh,
            "carbon_kg": one.carbon_kg,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def load_fleet(path: Path | str) -> FleetResult:
    """Read the folder of a finished fleet.

    Raises ResultError: no manifest (unfinished, or no fleet at all), a file missing or damaged.
    """
    folder = Path(path)
    read_manifest(folder)
    return _read(folder)


def _read(folder: Path) -> FleetResult:
    return read_record(FleetResult, folder / ABOUT, "a fleet", path=folder)
