"""Compute the points of a sweep that the store lacks, in tasks for the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace

from cprsim.assemble import Experiment
from cprsim.errors import ResultError, WorkerError
from cprsim.pipeline import compile_engine
from cprsim.results.identity import source_digest
from cprsim.sweeps.body import bodies_of
from cprsim.sweeps.points import Point
from cprsim.sweeps.store import Body, Store
from cprsim.workers import Workers, run_each

MOST_TOGETHER = 16  # points of one task: what a kill may cost, against drawing failures anew
TASKS_PER_WORKER = 4  # so that the last ones do not work alone for long


@dataclass(frozen=True, slots=True)
class Task:
    """Points that meet the same failures, as a worker gets them."""

    experiments: tuple[Experiment, ...]
    references: tuple[str, ...]
    source: str  # digest of the code that asks: a worker with other code would give other numbers


def run_points(
    points: Sequence[Point],
    store: Store,
    workers: Workers,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Body], int]:
    """The numbers of all points, in their order: from the store, or computed and put there.

    Parameters
    ----------
    on_progress : called with the points finished and those to finish; not for those from the store

    Returns
    -------
    the numbers, and how many different points were computed

    Raises
    ------
    ResultError : the store can't be read or written, e.g. because the disk is full; what is
        finished is kept, and the message says how much
    WorkerError : the processes that compute a task die
    """
    bodies: dict[str, Body | None] = {p.digest: store.read(p.digest) for p in points}
    missing = list({p.digest: p for p in points if bodies[p.digest] is None}.values())
    n_done = 0
    try:
        with store.writing() if missing else nullcontext():
            for digest, body in _computed(missing, workers):
                store.write(digest, body)
                bodies[digest] = body
                n_done += 1
                if on_progress is not None:
                    on_progress(n_done, len(missing))
    except (ResultError, WorkerError) as error:
        n_kept = len(bodies) - len(missing) + n_done
        raise type(error)(
            f"{error}; {n_kept} of {len(bodies)} points are finished and kept: the same command "
            "goes on from there"
        ) from error
    return [found for point in points if (found := bodies[point.digest]) is not None], n_done


def _computed(missing: Sequence[Point], workers: Workers) -> Iterator[tuple[str, Body]]:
    """Digest and numbers of each point as its task comes back."""
    groups = list(_tasks(missing, workers))
    tasks = [_task(group) for group in groups]
    if missing and workers.backend == "local":
        compile_engine(missing[0].experiment)

    def name(number: int) -> str:
        return f"task {number + 1} of {len(tasks)} ({len(groups[number])} points of the sweep)"

    with closing(run_each(run_task, tasks, workers, name)) as results:
        for number, found in results:
            yield from zip((point.digest for point in groups[number]), found, strict=True)


def _tasks(points: Iterable[Point], workers: Workers) -> Iterator[tuple[Point, ...]]:
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


def _task(points: Sequence[Point]) -> Task:
    failures = points[0].experiment.failures  # one object for all: a trace travels once
    return Task(
        tuple(replace(point.experiment, failures=failures) for point in points),
        tuple(point.reference for point in points),
        source_digest(),
    )


def run_task(task: Task) -> list[Body]:
    """The numbers of some points, in the worker.

    Raises ResultError where the worker has another version of cprsim than who asks.
    """
    if source_digest() != task.source:
        raise ResultError("a worker has another version of cprsim: install the same everywhere")
    return bodies_of(task.experiments, task.references)
