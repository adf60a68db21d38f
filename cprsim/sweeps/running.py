"""What computes the points of a sweep: tasks for the workers, and what is kept of each point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from cprsim.experiments.assemble import Experiment
from cprsim.experiments.pipeline import compile_engine
from cprsim.files import finite_or_none
from cprsim.records import Estimate, interval
from cprsim.results.metrics import FINISHED
from cprsim.results.store import Body, PointsTask, PointStore, finish_points
from cprsim.results.streaming import Moments, summarise
from cprsim.sweeps.points import Point
from cprsim.workers import Workers

MOST_TOGETHER = 16  # points of one task: what a kill may cost, against drawing failures anew
TASKS_PER_WORKER = 4  # so that the last ones do not work alone for long
NONE = [None, None, None]


def run_points(
    points: Sequence[Point],
    store: PointStore,
    workers: Workers,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Body], int]:
    """The numbers of all points of a sweep, and how many were computed; see `finish_points`."""

    def tasks_of(missing: Sequence[Point]) -> list[PointsTask]:
        if missing and workers.backend == "local":
            compile_engine(missing[0].experiment, len(missing) / workers.n_local)
        groups = list(_groups(missing, workers))
        names = (
            f"task {n} of {len(groups)} ({len(group)} points of the sweep)"
            for n, group in enumerate(groups, start=1)
        )
        return [task_of(group, name) for group, name in zip(groups, names, strict=True)]

    return finish_points(points, store, workers, tasks_of, on_progress)


def _groups(points: Iterable[Point], workers: Workers) -> Iterator[tuple[Point, ...]]:
    """Points with the same failures side by side, as many as leave every worker some tasks."""
    of_a_kind: dict[str, list[Point]] = {}
    for point in points:
        of_a_kind.setdefault(point.failures_digest, []).append(point)
    n_points = sum(map(len, of_a_kind.values()))
    n_workers = workers.n_local if workers.backend == "local" else MOST_TOGETHER
    together = min(MOST_TOGETHER, -(-n_points // (TASKS_PER_WORKER * n_workers)))
    for group in of_a_kind.values():
        for first in range(0, len(group), together):
            yield tuple(group[first : first + together])


def task_of(points: Sequence[Point], name: str) -> PointsTask:
    """The work on points that meet the same failures: each with its reference."""
    failures = points[0].experiment.failures  # one object for all: a trace travels once
    work = [(replace(one.experiment, failures=failures), one.reference) for one in points]
    return PointsTask(name, tuple(point.digest for point in points), bodies_of, work)


# --------------------------------------------------------------------------- numbers of a point


def bodies_of(work: Sequence[tuple[Experiment, str]]) -> list[Body]:
    """The numbers of each point: means, and differences to its reference, with intervals."""
    found = dict(summarise([experiment for experiment, _ in work]))
    return [_body(found[place], reference) for place, (_, reference) in enumerate(work)]


def _body(moments: Moments, reference: str) -> Body:
    return {
        "reference": reference,
        "strategies": [
            {
                "name": policy.name,
                "on_failure": policy.on_failure,
                "save_interval_h": finite_or_none(policy.interval_h),
                "interval_rule": policy.interval_rule,
                "n": moments.n,
                "quantities": _quantities(moments, i, reference),
            }
            for i, policy in enumerate(moments.strategies)
        ],
    }


def _quantities(moments: Moments, i: int, reference: str) -> dict[str, list[float | None]]:
    """Mean and interval of each metric, then those of its difference to the reference's."""
    name, n_finished = moments.strategies[i].name, int(moments.n_finished[i])
    share = (n_finished / moments.n, *Estimate.of_share(n_finished, moments.n).triple[1:])
    found: dict[str, list[Any]] = {FINISHED: [*share, *NONE]}
    for metric in moments.metrics:
        paired = (
            NONE
            if name == reference
            else interval(moments.difference(name, reference, metric)).values()
        )
        found[metric] = [*interval(moments.spread(name, metric)).values(), *paired]
    return found
