"""What computes the points of a sweep: tasks for the workers, and what is kept of each point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.records import interval
from cprsim.results.metrics import difference_of, sample_of, shared_by, summary_of
from cprsim.results.rows import columns_of
from cprsim.results.store import Body, PointStore, Task
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
    """The numbers of all points of a sweep, and how many were computed; see `PointStore.each`."""

    def tasks_of(missing: Sequence[Point]) -> list[Task]:
        if workers.backend == "local":
            pipeline.compile_engine(missing[0].experiment, len(missing) / workers.n_local)
        groups = _groups(missing, workers)
        return [
            task_of(group, f"task {n} of {len(groups)} ({len(group)} points of the sweep)")
            for n, group in enumerate(groups, start=1)
        ]

    return store.each(points, bodies_of, tasks_of, workers, on_progress)


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


def task_of(points: Sequence[Point], name: str) -> Task:
    """The work on points that meet the same failures: each with its reference."""
    failures = points[0].experiment.failures  # one object for all: a trace travels once
    work = [(replace(point.experiment, failures=failures), point.reference) for point in points]
    return Task(name, [point.digest for point in points], work)


# --------------------------------------------------------------------------- numbers of a point


def bodies_of(work: Sequence[tuple[Experiment, str]]) -> list[Body]:
    """The numbers of each point, by strategy.

    Of a quantity: mean and interval, then those of the difference to the reference.
    """
    experiments = [experiment for experiment, _ in work]
    pipeline.expect_all(experiments)
    failures = pipeline.FailureBlocks(experiments)
    return [_body(experiment, reference, failures) for experiment, reference in work]


def _body(experiment: Experiment, reference: str, failures: pipeline.FailureBlocks) -> Body:
    by_row = experiment.curve is not None  # a curve needs each loss
    outcome = pipeline.simulate(experiment, failures=failures, keep_losses=by_row)
    samples = {
        strategy.policy.name: sample_of(columns_of(strategy, outcome), outcome.cluster.n_nodes)
        for strategy in outcome.strategies
    }
    sharing, body = shared_by(experiment.curve), {}
    for name, sample in samples.items():
        less = {} if name == reference else difference_of(samples[reference], sample, sharing)
        body[name] = {
            "n": len(sample.finished),
            "quantities": {
                quantity: [
                    *interval(strategy).values(),
                    *(interval(less[quantity]).values() if quantity in less else NONE),
                ]
                for quantity, strategy in summary_of(sample).items()
            },
        }
    return body
