"""The points of a sweep: every combination of values as a scenario of its own, with an address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from cprsim.curves.choosing import curve_path
from cprsim.errors import Place, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.identity import (
    digest_by_this_source,
    failures_digest,
    file_digest,
    trace_digest,
)
from cprsim.scenario.job import Sweep, Values
from cprsim.scenario.reading import LoadedScenario

BESIDE_THE_NUMBERS = {  # sections that decide none of them
    "name", "kernel", "accuracy", "sweep", "prices", "unknown",
}  # fmt: skip
EXAMPLE = "--over costs.save=30s:10min:log12, or a section `sweep`"
TAKEN = ("interval", "target_pls")  # what an axis gives to all strategies that take it


@dataclass(frozen=True, slots=True)
class Point:
    """One scenario of a sweep."""

    coordinates: tuple[int | None, ...]  # by axis, its value's number; None: the scenario's own
    experiment: Experiment
    digest: str  # of all that decides its numbers
    failures_digest: str  # points with the same one meet the same failures

    @property
    def reference(self) -> str:
        """The strategy that others are compared with: the first full recovery, else the first."""
        entries = self.experiment.scenario.recovery
        return next((entry.name for entry in entries if entry.strategy == "full"), entries[0].name)


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
        yield from ((*nowhere[:n], i, *nowhere[n + 1 :]) for i in range(length))


def _point(
    loaded: LoadedScenario, axes: Mapping[str, Values], where: Sequence[int | None]
) -> Point:
    changes: dict[str, Any] = {}
    stands: dict[str, Place] = {}
    for (axis, values), i in zip(axes.items(), where, strict=True):
        if i is not None:
            place = loaded.place(f"sweep.over.{axis}")
            for key, value in _changes(loaded, axis, values.written[i], place):
                changes[key], stands[key] = value, place
    varied = loaded.varied(changes, stands.__getitem__)
    curve = curve_path(varied)
    digest = digest_by_this_source(
        scenario=varied.scenario.model_dump(mode="json", exclude=BESIDE_THE_NUMBERS),
        inputs=[*trace_digest(varied).values(), curve and file_digest(curve)],
    )
    return Point(tuple(where), assemble(varied), digest, failures_digest(varied))


def _changes(
    loaded: LoadedScenario, key: str, value: Any, place: Place
) -> Iterator[tuple[str, Any]]:
    """The keys that a value changes."""
    section, _, option = key.partition(".")
    entries, scopes = loaded.scenario.recovery, loaded.scenario.scopes
    if section == "scopes" and option.endswith(".share") and isinstance(value, int | float):
        yield key, value
        name = option.removesuffix(".share")
        shares = {
            i: scope.share
            for i, scope in enumerate(scopes)
            if scope.share is not None and name not in (scope.name, str(i))
        }
        for i, share in shares.items():
            yield f"scopes.{i}.share", (1.0 - value) * share / sum(shares.values())
    elif (
        section == "recovery"
        and option in TAKEN
        and option not in [scope.name for scope in entries]
    ):
        taking = [
            n
            for n, scope in enumerate(entries)
            if scope.strategy in STRATEGIES and option in SYSTEMS[scope.strategy].options
        ]
        if not taking:
            raise ScenarioError.at(place, f"no strategy of the scenario takes `{option}`")
        yield from ((f"recovery.{n}.{option}", value) for n in taking)
    else:
        yield key, value
