"""The folder of a finished fleet: options, figures and manifest, all there or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.errors import ResultError
from cprsim.estimate import Estimate
from cprsim.fleet.cells import STATISTICS
from cprsim.fleet.deciding import Decision, Flip, Knee
from cprsim.fleet.options import Axis, Option
from cprsim.foreign import UNUSABLE, one_line, read_json
from cprsim.results.identity import Identity
from cprsim.results.manifest import damage, read_manifest, write_manifest
from cprsim.results.plain import number_from
from cprsim.results.publish import publishing
from cprsim.results.write import write_csv
from cprsim.scenario import LoadedScenario

ABOUT = "fleet.json"


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option as read from its folder.

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
    cost: float
    node_h: Mapping[str, float]
    cents: Mapping[str, int] = field(default_factory=dict)
    energy_kwh: float = nan
    carbon_kg: float = nan


@dataclass(frozen=True, slots=True)
class FleetResult:
    """A finished fleet, as read from its folder."""

    path: Path
    name: str
    n_jobs: int
    n_kinds: int
    window_h: float
    histories: int
    shared: Mapping[str, str]  # what jobs share, in words
    currency: str | None  # None: nothing has a price
    axes: Mapping[str, Sequence[Any]]  # key -> values; without the scenario's own
    options: tuple[OptionRow, ...]
    decision: Decision
    knees: tuple[Knee, ...]

    def option(self, name: str) -> OptionRow:
        """The option of that name."""
        return next(one for one in self.options if one.name == name)

    @property
    def has_money(self) -> bool:
        """Whether anything has a price."""
        return self.currency is not None


def about(
    loaded: LoadedScenario,
    axes: Sequence[Axis],
    options: Sequence[Option],
    decision: Decision,
    knees: Sequence[Knee],
) -> dict[str, Any]:
    """All that a fleet's folder says, as JSON has it; NaN becomes null."""
    fleet, first = loaded.scenario.fleet, options[0]
    assert fleet is not None
    bill = first.priced[0].bill
    said: dict[str, Any] = _plain(
        {
            "name": loaded.scenario.name,
            "jobs": first.cells[0].n_jobs,
            "kinds": len(first.cells[0].by_kind),
            "window_h": fleet.window_h,
            "histories": fleet.histories,
            "shared": dict(_shared(loaded)),
            "currency": None if bill is None else bill.currency,
            "axes": {axis.key: list(axis.values.written) for axis in axes},
            "options": [_row(one) for one in options],
            "decision": {**asdict(decision), "saves": decision.saves.by_name},
            "knees": [asdict(knee) for knee in knees],
        }
    )
    return said


def _shared(loaded: LoadedScenario) -> list[tuple[str, str]]:
    section = loaded.scenario.fleet
    assert section is not None
    said = section.model_dump(mode="json", by_alias=True, exclude_none=True)
    keys = ("nodes", "spares", "crews", "queue", "storage", "savers")
    return [(key, str(said[key])) for key in keys if key in said and key != "queue"]


def _row(one: Option) -> dict[str, Any]:
    bills = [each.bill for each in one.priced if each.bill is not None]
    n = len(one.cells)
    node_h: dict[str, float] = {}
    for cell in one.cells:
        for part, by_role in cell.usage.node_h.items():
            hours = sum(by_role.values()) / cell.months / n
            node_h[part] = node_h.get(part, 0.0) + hours
    cents = _mean_cents([bill.cents for bill in bills]) if bills else {}
    return {
        "name": one.name,
        "strategy": one.strategy,
        "where": dict(one.where),
        "finished": one.finished,
        "engine": "simpy" if any(cell.by_events for cell in one.cells) else "fast",
        "statistics": {name: one.statistic(name).by_name for name in STATISTICS},
        "cost": float(sum(cents.values())) if cents else one.cost,
        "node_h": node_h,
        "cents": cents,
        "energy_kwh": _mean([each.energy_kwh for each in one.priced]),
        "carbon_kg": _mean([each.carbon_kg for each in one.priced]),
    }


def _mean_cents(bills: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Mean over the histories, part by part, in whole cents; the total is their sum."""
    parts = dict.fromkeys(part for bill in bills for part in bill)
    return {part: round(sum(bill.get(part, 0) for bill in bills) / len(bills)) for part in parts}


def _mean(values: Sequence[float | None]) -> float:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else nan


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value


def write_fleet(
    root: Path,
    identity: Identity,
    said: Mapping[str, Any],
    *,
    manifest: Mapping[str, Any],
    started: datetime,
    draw: Callable[[FleetResult], object],
) -> FleetResult:
    """Write a finished fleet into its folder under `root`, whole or not at all.

    Parameters
    ----------
    said : of `about`
    draw : puts the figures into ``result.path``; called before the folder is in place

    Raises
    ------
    ResultError : it can't be written; nothing is left behind
    """
    final = root / identity.folder_name
    with publishing(final, damage) as folder:
        (folder / "scenario.yaml").write_text(identity.scenario_yaml, "utf-8")
        text = json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False)
        (folder / ABOUT).write_text(text + "\n", "utf-8")
        result = _read(folder)
        write_csv(option_table(result), folder / "options.csv")
        draw(result)
        write_manifest(folder, identity, manifest, started)
    return load_fleet(final)


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


def is_fleet(folder: Path) -> bool:
    """Whether this is the folder of a fleet."""
    return (folder / ABOUT).is_file()


def _read(folder: Path) -> FleetResult:
    try:
        said = read_json(folder / ABOUT)
        return FleetResult(
            path=folder,
            name=str(said["name"]),
            n_jobs=int(said["jobs"]),
            n_kinds=int(said["kinds"]),
            window_h=float(said["window_h"]),
            histories=int(said["histories"]),
            shared={str(key): str(value) for key, value in said["shared"].items()},
            currency=None if said["currency"] is None else str(said["currency"]),
            axes={str(key): tuple(values) for key, values in said["axes"].items()},
            options=tuple(_option_from(entry) for entry in said["options"]),
            decision=_decision_from(said["decision"]),
            knees=tuple(Knee(**entry) for entry in said["knees"]),
        )
    except (OSError, StopIteration, *UNUSABLE) as error:
        told = one_line(str(error), 200)
        raise ResultError(f"{folder} can't be read as a fleet: {told}") from error


def _option_from(entry: Mapping[str, Any]) -> OptionRow:
    return OptionRow(
        **{
            **entry,
            "statistics": {name: _interval(one) for name, one in entry["statistics"].items()},
            "cost": number_from(entry["cost"]),
            "cents": {part: int(cents) for part, cents in entry["cents"].items()},
            "energy_kwh": number_from(entry["energy_kwh"]),
            "carbon_kg": number_from(entry["carbon_kg"]),
        }
    )


def _interval(entry: Mapping[str, Any]) -> Estimate:
    mean, low, high = (number_from(entry[name]) for name in ("mean", "low", "high"))
    return Estimate(mean, low, high)


def _decision_from(entry: Mapping[str, Any]) -> Decision:
    return Decision(
        **{
            **entry,
            "saves": _interval(entry["saves"]),
            "share": number_from(entry["share"]),
            "flips": tuple(Flip(**one) for one in entry["flips"]),
        }
    )
