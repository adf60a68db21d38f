"""The points of a sweep: one scenario per combination of values, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import nan
from typing import Any

from cprsim.errors import Place, ScenarioError, watch
from cprsim.files import finite_or_none
from cprsim.job.records import Estimate
from cprsim.recovery.paper import STRATEGIES
from cprsim.results import pipeline
from cprsim.results.identity import (
    digest_by_this_source,
    failures_digest,
    file_digest,
    trace_digest,
)
from cprsim.results.metrics import columns_of, difference_of, sample_of, summary_of
from cprsim.results.store import Body, PointStore, Task
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.curves import curve_path
from cprsim.scenario.job import Sweep, Values
from cprsim.scenario.reading import LoadedScenario
from cprsim.workers import Workers

IRRELEVANT_TO_A_POINT = {  # sections that decide none of them
    "name", "kernel", "accuracy", "sweep", "prices", "unknown", "marks",
}  # fmt: skip
OVER_EXAMPLE = "--over costs.save=30s:10min:log12, or a section `sweep`"
TAKEN = ("interval", "target_pls")  # what an axis gives to all strategies that take it
MOST_TOGETHER = 16  # points of one task: what a kill may cost, against drawing failures anew
TASKS_PER_WORKER = 4  # so that the last ones do not work alone for long


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
    """The section `sweep`. Raises ScenarioError if it is missing."""
    sweep = loaded.scenario.sweep
    if sweep is None:
        message = f"says nothing to vary: give {OVER_EXAMPLE}"
        raise ScenarioError.at(Place(loaded.path), message)
    return sweep


def points_of(loaded: LoadedScenario) -> tuple[Point, ...]:
    """The points in the order of the axes, the last axis fastest; all are known to be possible."""
    sweep, points = require_sweep(loaded), list[Point]()
    with watch.progress("planning points") as on_progress:
        for where in _coordinates(sweep):
            points.append(_point(loaded, sweep.over, where))
            on_progress(len(points), sweep.n_points)
    return tuple(points)


def check_axes(loaded: LoadedScenario) -> None:
    """Raise ScenarioError where the ends of an axis, or any of its words, make no scenario."""
    axes = {} if loaded.scenario.sweep is None else loaded.scenario.sweep.over
    for axis, values in axes.items():
        place = loaded.place(f"sweep.over.{axis}")
        ends = (values.written[0], values.written[-1])
        for value in values.written if values.numbers is None else ends:
            loaded.varied(dict(_changes(loaded, axis, value, place)), lambda _, place=place: place)  # type: ignore[misc]


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
        scenario=varied.scenario.model_dump(mode="json", exclude=IRRELEVANT_TO_A_POINT),
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
            if scope.strategy in STRATEGIES and option in scope.system.options
        ]
        if not taking:
            raise ScenarioError.at(place, f"no strategy of the scenario takes `{option}`")
        yield from ((f"recovery.{n}.{option}", value) for n in taking)
    else:
        yield key, value


# --------------------------------------------------------------------------- their numbers


def run_points(
    points: Sequence[Point],
    store: PointStore,
    workers: Workers,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Body]:
    """The numbers of all points; see `PointStore.compute_missing`."""

    def tasks_of(missing: Sequence[Point]) -> list[Task]:
        if workers.backend == "local":
            pipeline.compile_first(missing[0].experiment)
        groups, tasks = _groups(missing, workers), []
        for n, group in enumerate(groups, start=1):
            failures = group[0].experiment.failures  # one object for all: a trace travels once
            work = [(replace(one.experiment, failures=failures), one.reference) for one in group]
            name = f"task {n} of {len(groups)} ({len(group)} points of the sweep)"
            tasks.append(Task(name, [point.digest for point in group], work))
        return tasks

    return store.compute_missing(points, bodies_of, tasks_of, workers, on_progress)


def _groups(points: Sequence[Point], workers: Workers) -> list[list[Point]]:
    """Points with the same failures side by side, as many as leave every worker some tasks."""
    alike: dict[str, list[Point]] = {}
    for point in points:
        alike.setdefault(point.failures_digest, []).append(point)
    n_workers = workers.n_local if workers.backend == "local" else MOST_TOGETHER
    n_together = min(MOST_TOGETHER, -(-len(points) // (TASKS_PER_WORKER * n_workers)))
    return [
        group[first : first + n_together]
        for group in alike.values()
        for first in range(0, len(group), n_together)
    ]


def bodies_of(work: Sequence[tuple[Experiment, str]]) -> list[Body]:
    """The numbers of each point, by strategy.

    Of a quantity: mean and interval, then those of the difference to the reference.
    """
    failures = pipeline.failure_blocks([experiment for experiment, _ in work])
    return [_body(experiment, reference, failures) for experiment, reference in work]


def _body(experiment: Experiment, reference: str, failures: pipeline.Blocks) -> Body:
    by_row = experiment.curve is not None  # a curve needs each loss
    outcome = pipeline.simulate(experiment, failures=failures, keep_losses=by_row)
    samples = {
        strategy.policy.name: sample_of(columns_of(strategy, outcome), outcome.cluster.n_nodes)
        for strategy in outcome.strategies
    }
    base, body, unknown = samples[reference], {}, Estimate(nan)
    for name, sample in samples.items():
        less = {} if name == reference else difference_of(base, sample, one_curve=True)
        body[name] = {
            "n": len(sample.finished),
            "quantities": {
                quantity: [
                    *map(finite_or_none, estimate.triple),
                    *map(finite_or_none, less.get(quantity, unknown).triple),
                ]
                for quantity, estimate in summary_of(sample).items()
            },
        }
    return body
