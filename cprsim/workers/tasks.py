"""Run tasks, yield their results, and find the task whose process dies each time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from time import monotonic, sleep
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from cprsim.errors import WorkerError
from cprsim.workers.pools import LOOK_EVERY_S, Pool, Workers, open_pool

Argument = TypeVar("Argument")
Result = TypeVar("Result")

PATIENCE_S = 60.0  # with a cluster that has no worker
WITHOUT_WORKERS_S = 0.2  # between two looks at it
HERE = Workers(1)


def run_each(
    task: Callable[[Argument], Result],
    arguments: Sequence[Argument],
    workers: Workers = HERE,
    name: Callable[[int], str] = "task {}".format,
) -> Generator[tuple[int, Result], None, None]:
    """Run a task for each argument, and yield the results in the order in which they come.

    Each process has one BLAS thread: several tasks at once are what uses several cores. A task
    must give the same result wherever and however often it runs, because one whose process dies is
    run again; what others have finished by then stays. Leaving the iteration ends the workers.

    Parameters
    ----------
    task : a function that can be pickled; what it returns comes back through a pipe or a network
    arguments : what it is called with, one task each
    workers : who runs them
    name : of a task, by its number, for messages

    Yields
    ------
    number of the task, its result

    Raises
    ------
    WorkerError : the process of one task dies whenever it runs; there is no worker, or no cluster
    Exception : the first one that a task raises, with a note of which task it was
    """
    with open_pool(workers) as pool:
        yield from _TaskRun(pool, partial(_on_one_thread, task), arguments, name).results()


class _TaskRun:
    """The tasks of one call on their way."""

    def __init__(
        self,
        pool: Pool,
        task: Callable[[Any], Any],
        arguments: Sequence[Any],
        name: Callable[[int], str],
    ) -> None:
        self.pool, self.task, self.arguments, self.name = pool, task, arguments, name
        self.waiting = deque(range(len(arguments)))
        self.suspects: deque[int] = deque()
        self.running: dict[Future[Any], int] = {}
        self.on_trial: int | None = None  # the suspect that runs with nothing beside it
        self.deaths: Counter[int] = Counter()
        self.workers_seen_at = monotonic()

    def results(self) -> Iterator[tuple[int, Any]]:
        while self.waiting or self.suspects or self.running:
            self._hand_out()
            if not self.running:
                sleep(WITHOUT_WORKERS_S)
            done, _ = wait(self.running, LOOK_EVERY_S, FIRST_COMPLETED)
            for future in sorted(done, key=self.running.__getitem__):
                number = self.running.pop(future)
                if self._has_died(future):
                    self._suspect(number)
                else:
                    yield number, self._result(number, future)

    def _hand_out(self) -> None:
        """Suspects one by one, with nothing beside them; the others as many as there is room."""
        n_at_once = self.pool.n_at_once()
        self._require_workers(n_at_once)
        if self.suspects:
            if not self.running:
                self.on_trial = self.suspects.popleft()
                self._start(self.on_trial)
            return
        while self.waiting and len(self.running) < n_at_once:
            self.on_trial = None
            self._start(self.waiting.popleft())

    def _start(self, number: int) -> None:
        self.running[self.pool.submit(self.task, self.arguments[number])] = number

    def _require_workers(self, n_at_once: int) -> None:
        if n_at_once:
            self.workers_seen_at = monotonic()
        elif monotonic() - self.workers_seen_at > PATIENCE_S:
            suspects = [*self.suspects, *self.running.values()]
            raise WorkerError(
                f"the cluster has had no worker for {PATIENCE_S:.0f} s; last asked to do: "
                + (", ".join(map(self.name, sorted(suspects))) or "nothing")
            )

    def _has_died(self, future: Future[Any]) -> bool:
        if future.cancelled():
            raise WorkerError("the cluster's scheduler has gone")
        return self.pool.died(future.exception())

    def _suspect(self, number: int) -> None:
        self.deaths[number] += number == self.on_trial
        if self.deaths[number] == self.pool.most_deaths:
            raise WorkerError(
                f"{self.name(number)}: the process that runs it dies each time, also with nothing "
                "beside it: it is killed from outside, or needs more memory than there is"
            )
        self.suspects.append(number)

    def _result(self, number: int, future: Future[Any]) -> Any:
        error = future.exception()
        if error is not None:
            error.add_note(f"in {self.name(number)}")
        return future.result()


def _on_one_thread(task: Callable[[Any], Any], argument: Any) -> Any:
    """The task, with no more than one BLAS thread, wherever it runs."""
    with threadpool_limits(limits=1):
        return task(argument)
