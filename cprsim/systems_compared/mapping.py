"""A map over two inputs that are not known: which system is cheapest where.

Each point is a comparison of its own, at its own best intervals, kept in the store of sweeps as
soon as it is finished: the same command goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isclose
from typing import Any

import numpy as np

from cprsim.codec import digest_of, encode, finite_or_none
from cprsim.errors import ParameterError, Place
from cprsim.estimate import Estimate, interval
from cprsim.experiments import pipeline
from cprsim.records import Floats
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.store import Body, PointsTask, PointStore, finish_points
from cprsim.scenario import LoadedScenario
from cprsim.scenario.sweep import Axis
from cprsim.sweeps.points import digests_of, varied_at
from cprsim.systems_compared.best import Found, best_policies, run_of
from cprsim.systems_compared.lineup import Lineup
from cprsim.systems_compared.standings import TIED, accuracy_of, against, may_be_best
from cprsim.workers import Workers

N_AXES = 2
SCOPES, SHARE = "scopes", "share"


@dataclass(frozen=True, slots=True)
class MapPoint:
    """One point of a map: which value of each axis, who runs there, and its address."""

    coordinates: tuple[int, ...]
    lineup: Lineup
    digest: str


def axes_of(loaded: LoadedScenario) -> tuple[Axis, ...]:
    """The two axes of a map. Raises ParameterError where there are more or fewer, or of words."""
    sweep = loaded.scenario.sweep
    axes = () if sweep is None else sweep.axes()
    if len(axes) != N_AXES:
        raise ParameterError(f"--map: a map has two axes, not {len(axes)}: give --map twice")
    for axis in axes:
        if axis.values.numbers is None:
            raise ParameterError(f"--map {axis.key}: a map lies over numbers, not over words")
    return axes


def points_of(
    loaded: LoadedScenario, axes: Sequence[Axis], lineup_of: Callable[[LoadedScenario], Lineup]
) -> tuple[MapPoint, ...]:
    """The points, the last axis fastest; all are known to be possible."""
    made = []
    for where in product(*(range(len(axis)) for axis in axes)):
        varied = varied_at(loaded, axes, where, _changes)
        lineup = lineup_of(varied)
        made.append(MapPoint(where, lineup, _digest(varied, lineup)))
    return tuple(made)


def _changes(
    loaded: LoadedScenario, key: str, value: Any, place: Place
) -> Iterator[tuple[str, Any]]:
    """What an axis changes: of a share of the failures the others too, which keep their ratios."""
    yield key, value
    section, _, rest = key.partition(".")
    name, _, option = rest.rpartition(".")
    if section != SCOPES or option != SHARE or not isinstance(value, int | float):
        return
    scopes = loaded.scenario.scopes
    shares = {
        i: one.share
        for i, one in enumerate(scopes)
        if one.share is not None and name not in (one.name, str(i))
    }
    for i, share in shares.items():
        yield f"{SCOPES}.{i}.{SHARE}", (1.0 - value) * share / sum(shares.values())


def _digest(varied: LoadedScenario, lineup: Lineup) -> str:
    """Of everything that decides the numbers of a point."""
    limit = lineup.limit and encode(lineup.limit)
    who = sorted(one.name for one in lineup.entrants)
    return digest_of(["compare-systems", lineup.fixed, digests_of(varied)[0], limit, who])


def run_points(
    points: Sequence[MapPoint],
    store: PointStore,
    workers: Workers,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Body], int]:
    """The numbers of all points of a map, and how many were computed; see `finish_points`."""

    def tasks_of(missing: Sequence[MapPoint]) -> list[PointsTask]:
        return [
            PointsTask(f"point {number} of the map", (point.digest,), _bodies_of, point.lineup)
            for number, point in enumerate(missing)
        ]

    return finish_points(points, store, workers, tasks_of, on_progress)


def _bodies_of(lineup: Lineup) -> list[Body]:
    return [body_of(lineup)]


def body_of(lineup: Lineup) -> Body:
    """A comparison as what is kept of a point.

    Returns best: the name of the best, None where there is none; systems: of each name, strategy,
    interval_h, accuracy, finished_fraction, overhead and what it is more than the best's (mean,
    low, high; shares of useful time), verdict; left_out: reasons by name.
    """
    found, dropped = best_policies(lineup)
    outcome = pipeline.simulate(run_of(lineup, found))
    overheads: dict[str, Floats] = {}
    finished: dict[str, float] = {}
    for strategy in outcome.strategies:
        costs, name = strategy.costs, strategy.policy.name
        overheads[name] = costs.wall_h / np.where(costs.finished, costs.useful_h, np.nan) - 1.0
        finished[name] = float(costs.finished.mean())
    accuracy = {one.name: _accuracy(one, lineup) for one in found}
    done = [one for one in found if isclose(finished[one.name], 1.0)]
    unknown = {one.name: lineup.unknown(one.name) for one in found}
    able = [one.name for one in done if may_be_best(accuracy[one.name], unknown[one.name])]
    best = min(able, key=lambda name: float(overheads[name].mean())) if able else None
    systems = []
    for one in found:
        finishes = finished[one.name] >= 1.0
        more, verdict = against(overheads, one.name, best, finishes=finishes)
        spread = Estimate.of_mean(overheads[one.name])
        systems.append(
            {
                "name": one.name,
                "strategy": one.strategy,
                "interval_h": finite_or_none(one.policy.save_interval_h),
                "accuracy": accuracy[one.name],
                "unknown": list(unknown[one.name]),
                "finished_fraction": finished[one.name],
                "overhead": interval(spread) if one in done else None,
                "more_than_best": more and interval(more),
                "verdict": verdict,
            }
        )
    return {"best": best, "systems": systems, "left_out": {**lineup.left_out, **dropped}}


def _accuracy(one: Found, lineup: Lineup) -> str:
    system = SYSTEMS.get(one.strategy)
    not_counted = "" if system is None else system.not_counted
    return accuracy_of(
        one.policy.leaves_stale, not_counted, one.how, limited=lineup.limit is not None
    )


def tied_with_best(body: Body) -> list[str]:
    """Systems that can't be told from the best, of those whose accuracy is kept."""
    return [
        one["name"]
        for one in body["systems"]
        if one["verdict"] == TIED and may_be_best(one["accuracy"], one["unknown"])
    ]
