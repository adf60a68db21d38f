"""The results folder of a map: its points as JSON and as a table, the figure, the manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.compare_systems.mapping import MapPoint, tied_with_best
from cprsim.errors import ResultError
from cprsim.foreign import UNUSABLE, one_line, read_json
from cprsim.results.identity import Identity
from cprsim.results.manifest import damage, read_manifest, write_manifest
from cprsim.results.publish import publishing
from cprsim.results.write import write_csv
from cprsim.scenario.sweep import Axis
from cprsim.sweeps.store import Body
from cprsim.sweeps.table import column

MAP = "map.json"


@dataclass(frozen=True, slots=True)
class MapAxis:
    """One axis: its key, heading with unit, and values in order."""

    key: str
    column: str
    values: tuple[float, ...]
    logarithmic: bool


@dataclass(frozen=True, slots=True)
class SystemsMap:
    """A map as read from its folder; `cells` by the numbers of the values of both axes."""

    path: Path
    manifest: Mapping[str, Any]
    name: str
    fixed: bool
    useful_h: float
    n_replications: int
    axes: tuple[MapAxis, MapAxis]
    cells: Mapping[tuple[int, int], Body]

    @property
    def bests(self) -> list[str]:
        """Names of the systems that are best somewhere, the most frequent first."""
        found = [cell["best"] for cell in self.cells.values() if cell["best"] is not None]
        return sorted(set(found), key=lambda name: (-found.count(name), name))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per point: the values of the axes, the best, and what can't be told from it."""
        first, second = self.axes
        for (i, j), cell in self.cells.items():
            best = next((one for one in cell["systems"] if one["name"] == cell["best"]), None)
            overhead = {} if best is None else best["overhead"]
            yield {
                first.column: first.values[i],
                second.column: second.values[j],
                "best": cell["best"],
                "overhead_fraction": overhead.get("mean"),
                "low": overhead.get("low"),
                "high": overhead.get("high"),
                "interval_h": None if best is None else best["interval_h"],
                "cant_be_told": tied_with_best(cell),
            }


def plain_map(
    name: str, fixed: bool, axes: Sequence[Axis], points: Sequence[MapPoint], bodies: Sequence[Body]
) -> dict[str, Any]:
    """A map as what JSON holds."""
    experiment = points[0].lineup.experiment
    return {
        "name": name,
        "fixed": fixed,
        "useful_h": experiment.useful_h,
        "replications": experiment.n_replications,
        "axes": [
            {
                "key": axis.key,
                "column": column(axis),
                "values": list(axis.values.numbers or ()),
                "logarithmic": axis.values.logarithmic,
            }
            for axis in axes
        ],
        "cells": [
            {"at": list(point.coordinates), **body}
            for point, body in zip(points, bodies, strict=True)
        ],
    }


def write_map(
    root: Path,
    identity: Identity,
    plain: Mapping[str, Any],
    *,
    about: Mapping[str, Any],
    started: datetime,
    draw: Callable[[SystemsMap], object],
) -> SystemsMap:
    """Write a map into its folder under `root`, whole or not at all.

    Raises ResultError where it can't be written; nothing is left behind.
    """
    final = root / identity.folder_name
    with publishing(final, damage) as folder:
        (folder / "scenario.yaml").write_text(identity.scenario_yaml, "utf-8")
        text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / MAP).write_text(text + "\n", "utf-8")
        made = _from(folder, {}, plain)
        write_csv(_table(made), folder / "map.csv")
        draw(made)
        write_manifest(folder, identity, about, started)
    return load_map(final)


def _table(made: SystemsMap) -> pd.DataFrame:
    """A row per point and system."""
    first, second = made.axes
    rows = []
    for (i, j), cell in made.cells.items():
        for one in cell["systems"]:
            triples = {
                f"{name}_{end}": (one[name] or {}).get(end)
                for name in ("overhead", "more_than_best")
                for end in ("mean", "low", "high")
            }
            head = {first.column: first.values[i], second.column: second.values[j]}
            plain = {key: one[key] for key in ("name", "interval_h", "accuracy", "verdict")}
            rows.append({**head, **plain, **triples})
    return pd.DataFrame(rows)


def is_map(folder: Path) -> bool:
    """Whether a folder holds a map."""
    return (folder / MAP).is_file()


def load_map(folder: Path) -> SystemsMap:
    """Read a finished map. Raises ResultError where it is none, or is damaged."""
    manifest = read_manifest(folder)
    try:
        return _from(folder, manifest, read_json(folder / MAP))
    except (OSError, *UNUSABLE) as error:
        told = one_line(str(error), 200)
        raise ResultError(f"{folder} can't be read as a map of systems: {told}") from error


def _from(folder: Path, manifest: Mapping[str, Any], plain: Mapping[str, Any]) -> SystemsMap:
    first, second = (
        MapAxis(axis["key"], axis["column"], tuple(map(float, axis["values"])), axis["logarithmic"])
        for axis in plain["axes"]
    )
    return SystemsMap(
        folder,
        manifest,
        str(plain["name"]),
        bool(plain["fixed"]),
        float(plain["useful_h"]),
        int(plain["replications"]),
        (first, second),
        {(int(cell["at"][0]), int(cell["at"][1])): cell for cell in plain["cells"]},
    )
