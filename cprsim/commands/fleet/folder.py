"""The folder of a finished fleet: options, figures and manifest, complete or absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.commands.fleet.options import Axes, FleetDecision, FleetOption
from cprsim.files import NOT_STORED
from cprsim.results.folder import (
    ResultTarget,
    new_folder,
    read_manifest,
    read_record,
    write_csv,
    write_record,
)
from cprsim.scenario.job import values_along
from cprsim.scenario.population import fleet_of
from cprsim.scenario.reading import LoadedScenario

FLEET_FILE = "fleet.json"
SHARED = ("nodes", "spares", "storage")


@dataclass(frozen=True, slots=True)
class FleetResult:
    """A finished fleet; `fleet.json` holds all of it."""

    path: Path = field(metadata=NOT_STORED)
    name: str
    n_jobs: int = field(metadata={"alias": "jobs"})
    n_kinds: int = field(metadata={"alias": "kinds"})
    window_h: float
    is_work: bool  # whether the window is the work of one job alone
    histories: int
    shared: Mapping[str, str]  # what jobs share, in words
    currency: str | None  # None: nothing has a price
    axes: Mapping[str, Sequence[Any]]  # key -> values; the scenario's own are not in it
    options: tuple[FleetOption, ...]
    decision: FleetDecision

    def option(self, name: str) -> FleetOption:
        """The option of that name."""
        return next(option for option in self.options if option.name == name)

    @property
    def has_money(self) -> bool:
        """Whether anything has a price."""
        return self.currency is not None

    def parts(self, option: FleetOption) -> Mapping[str, float]:
        """Cost of an option per month, by part: cents, or node-hours without prices."""
        return option.cents if self.has_money else option.node_h


def write_fleet(
    target: ResultTarget,
    loaded: LoadedScenario,
    axes: Axes,
    options: Sequence[FleetOption],
    decision: FleetDecision,
    draw: Callable[[FleetResult], object],
) -> FleetResult:
    """Write a finished fleet into its folder, completely or not at all.

    Raises ResultError: it can't be written; nothing is left behind.
    """
    fleet = fleet_of(loaded)
    n_jobs, prices = options[0].cells[0].n_jobs, options[0].prices
    section = fleet.model_dump(mode="json", by_alias=True, exclude_none=True)
    with new_folder(target) as folder:
        result = FleetResult(
            path=folder,
            name=loaded.scenario.name,
            n_jobs=sum(n_jobs),
            n_kinds=len(n_jobs),
            window_h=fleet.window_h,
            is_work=fleet.jobs == 1 and fleet.window_h == loaded.scenario.job.useful_h,
            histories=fleet.histories,
            shared={key: str(section[key]) for key in SHARED if key in section},
            currency=None if prices is None else prices.label,
            axes={key: values.written for key, values in axes.items()},
            options=tuple(options),
            decision=decision,
        )
        write_record(folder / FLEET_FILE, result)
        write_csv(options_frame(result), folder / "options.csv")
        write_csv(parts_frame(result), folder / "parts.csv")
        draw(result)
    return load_fleet(target.folder)


def options_frame(result: FleetResult) -> pd.DataFrame:
    """A row per option: values of the axes, statistics with intervals, cost per month."""
    axes = {key: values_along(list(written)) for key, written in result.axes.items()}
    at = {key: dict(zip(of.written, of.listed, strict=True)) for key, of in axes.items()}
    rows = [
        {
            "option": option.name,
            "strategy": option.strategy,
            **{of.column(key): at[key].get(option.where.get(key)) for key, of in axes.items()},
            "finished": option.finished,
            **{k: v for name, of in option.statistics.items() for k, v in of.columns(name).items()},
            "node_h_per_month": sum(option.node_h.values()),
            **({"cost_per_month": option.cost / 100} if result.has_money else {}),
            "energy_kwh_per_month": option.energy_kwh,
            "carbon_kg_per_month": option.carbon_kg,
        }
        for option in result.options
    ]
    return pd.DataFrame(rows)


def parts_frame(result: FleetResult) -> pd.DataFrame:
    """A row per option and part of its month: node-hours, and cost where there are prices."""
    rows = [
        {
            "option": option.name,
            "part": part,
            "node_h_per_month": option.node_h.get(part),
            **({"cost_per_month": option.cents.get(part, 0) / 100} if result.has_money else {}),
        }
        for option in result.options
        for part in dict.fromkeys([*option.node_h, *option.cents])
    ]
    return pd.DataFrame(rows)


def load_fleet(path: Path | str) -> FleetResult:
    """Read the folder of a finished fleet.

    Raises ResultError: no manifest (unfinished, or no fleet at all), a file missing or damaged.
    """
    folder = Path(path)
    read_manifest(folder)
    return read_record(FleetResult, folder / FLEET_FILE, "a fleet", path=folder)
