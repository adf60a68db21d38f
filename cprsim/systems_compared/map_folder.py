"""The results folder of a map: its points as JSON and as a table, the figure, the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from cprsim.codec import FieldMark, Key
from cprsim.results.folder import ResultTarget, new_folder, read_record, write_csv, write_record
from cprsim.results.manifest import read_manifest
from cprsim.results.store import Body
from cprsim.scenario.sweep import Axis
from cprsim.sweeps.table import column
from cprsim.systems_compared.mapping import MapPoint, tied_with_best

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
    """A map of systems; `map.json` holds all of it."""

    path: Annotated[Path, FieldMark.NOT_STORED]
    manifest: Annotated[Mapping[str, Any], FieldMark.NOT_STORED]
    name: str
    fixed: bool
    useful_h: float
    n_replications: Annotated[int, Key("replications")]
    axes: tuple[MapAxis, MapAxis]
    points: Annotated[tuple[Body, ...], Key("cells")]  # each with its place, `at`

    @property
    def cells(self) -> dict[tuple[int, int], Body]:
        """The points by the numbers of the values of both axes."""
        return {(int(point["at"][0]), int(point["at"][1])): point for point in self.points}

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


def write_map(
    target: ResultTarget,
    name: str,
    fixed: bool,
    axes: Sequence[Axis],
    points: Sequence[MapPoint],
    bodies: Sequence[Body],
    draw: Callable[[SystemsMap], object],
) -> SystemsMap:
    """Write a map into its folder, whole or not at all."""
    experiment = points[0].lineup.experiment
    first, second = map(_map_axis, axes)
    with new_folder(target) as folder:
        made = SystemsMap(
            path=folder,
            manifest={},
            name=name,
            fixed=fixed,
            useful_h=experiment.useful_h,
            n_replications=experiment.n_replications or 0,
            axes=(first, second),
            points=tuple(
                {"at": list(point.coordinates), **body}
                for point, body in zip(points, bodies, strict=True)
            ),
        )
        write_record(folder / MAP, made, indent=1)
        write_csv(_table(made), folder / "map.csv")
        draw(made)
    return load_map(target.folder)


def _map_axis(axis: Axis) -> MapAxis:
    return MapAxis(axis.key, column(axis), axis.values.numbers or (), axis.values.logarithmic)


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


def load_map(folder: Path) -> SystemsMap:
    """Read a finished map. Raises ResultError where it is none, or is damaged."""
    manifest = read_manifest(folder)
    path = folder / MAP
    return read_record(SystemsMap, path, "a map of systems", path=folder, manifest=manifest)
