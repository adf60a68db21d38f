"""The points of a sweep: every combination of values as a scenario of its own, with an address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from cprsim.curves.choosing import curve_path
from cprsim.errors import Place, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.files import digest_of
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.identity import file_digest, source_digest
from cprsim.results.money import JobPrices, prices_of
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.recovery import RecoverySection
from cprsim.scenario.sweep import Sweep, Values
from cprsim.version import __version__

BESIDE_THE_NUMBERS = {  # sections that decide none of them
    "name", "kernel", "accuracy", "sweep", "prices", "unknown",
}  # fmt: skip
BESIDE_THE_FAILURES = {"costs", "storage", "recovery", "simulation"}  # of which the seed counts
EXAMPLE = "--over costs.save=30s:10min:log12, or a section `sweep`"


@dataclass(frozen=True, slots=True)
class Point:
    """One scenario of a sweep."""

    # by axis, the number of its value; None: as the scenario says
    coordinates: tuple[int | None, ...]
    experiment: Experiment  # the scenario as records
    # what each entry of `recovery` asks for, in the order of the policies
    strategies: tuple[RecoverySection, ...]
    digest: str  # hexadecimal, of all that decides its numbers
    # of what decides which failures it meets; points share them where it is equal
    failures_digest: str
    prices: JobPrices | None = None  # applied to its numbers afterwards; None: nothing has a price

    @property
    def reference(self) -> str:
        """The strategy that others are compared with: the first full recovery, else the first."""
        full = (entry.name for entry in self.strategies if entry.strategy == "full")
        return next(full, self.strategies[0].name)


def require_sweep(loaded: LoadedScenario) -> Sweep:
    """The section `sweep`. Raises ScenarioError where nothing says what to vary."""
    sweep = loaded.scenario.sweep
    if sweep is None:
        message = f"says nothing to vary: give {EXAMPLE}"
        raise ScenarioError.at(Place(loaded.path), message)
    return sweep


def points_of(loaded: LoadedScenario) -> tuple[Point, ...]:
    """The points in the order of the axes, the last axis fastest; all are known to be possible."""
    sweep = require_sweep(loaded)
    return tuple(_point(loaded, sweep.over, where) for where in _coordinates(sweep))


def _coordinates(sweep: Sweep) -> Iterator[tuple[int | None, ...]]:
    lengths = [len(values) for values in sweep.over.values()]
    if sweep.mode == "grid":
        yield from product(*map(range, lengths))
        return
    nowhere = (None,) * len(lengths)
    yield nowhere
    for n, length in enumerate(lengths):
        for i in range(length):
            yield (*nowhere[:n], i, *nowhere[n + 1 :])


def _point(
    loaded: LoadedScenario, axes: Mapping[str, Values], where: tuple[int | None, ...]
) -> Point:
    varied = _varied(loaded, axes, where)
    scenario = varied.scenario
    return Point(
        where, assemble(varied), scenario.recovery, *digests_of(varied), prices_of(scenario)
    )


def _varied(
    loaded: LoadedScenario, axes: Mapping[str, Values], where: Sequence[int | None]
) -> LoadedScenario:
    """The scenario at one value of each axis; None: as the scenario says."""
    changes: dict[str, Any] = {}
    stands: dict[str, Place] = {}
    for (axis, values), i in zip(axes.items(), where, strict=True):
        if i is None:
            continue
        place = loaded.place(f"sweep.over.{axis}")
        for key, value in _changes(loaded, axis, values.written[i], place):
            changes[key], stands[key] = value, place
    return loaded.varied(changes, stands.__getitem__)


def _changes(
    loaded: LoadedScenario, key: str, value: Any, place: Place
) -> Iterator[tuple[str, Any]]:
    """The keys that a value changes."""
    section, _, option = key.partition(".")
    if section == "scopes" and option.endswith(".share") and isinstance(value, int | float):
        name = option.removesuffix(".share")
        others = {
            i: one.share
            for i, one in enumerate(loaded.scenario.scopes)
            if one.share is not None and name not in (one.name, str(i))
        }
        yield key, value
        for i, share in others.items():
            yield f"scopes.{i}.share", (1.0 - value) * share / sum(others.values())
        return
    entries = loaded.scenario.recovery
    if section != "recovery" or option not in TAKEN or option in [entry.name for entry in entries]:
        yield key, value
        return
    taking = [
        f"recovery.{n}.{option}"
        for n, entry in enumerate(entries)
        if entry.strategy in STRATEGIES and SYSTEMS[entry.strategy].takes(option)
    ]
    if not taking:
        raise ScenarioError.at(place, f"no strategy of the scenario takes `{option}`")
    yield from ((each, value) for each in taking)


TAKEN = ("interval", "target_pls")
"""What an axis gives to all strategies that take it; systems take none."""


def digests_of(loaded: LoadedScenario) -> tuple[str, str]:
    """Of everything that decides the numbers of a point, and of what decides its failures."""
    plain = loaded.scenario.model_dump(mode="json", exclude=BESIDE_THE_NUMBERS)
    path = loaded.trace_path
    common = {
        "input": None if path is None else _file_digest(path),
        "version": __version__,
        "source": source_digest(),
    }
    curve = curve_path(loaded)
    numbers = {"scenario": plain, "curve": None if curve is None else _file_digest(curve), **common}
    failures = {name: said for name, said in plain.items() if name not in BESIDE_THE_FAILURES}
    failures["seed"] = loaded.scenario.simulation.seed
    return digest_of(numbers), digest_of({"scenario": failures, **common})


def _file_digest(path: Path) -> str:
    """Read once for all points, unless it changes."""
    return _digest_when(path, path.stat().st_mtime_ns if path.exists() else 0)


@cache
def _digest_when(path: Path, changed_ns: int) -> str:
    return file_digest(path)
