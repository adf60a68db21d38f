"""Run tasks, yield their results, and find the task whose process dies each time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from time import monotonic, sleep
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from cprsim.errors import WorkerError
from cprsim.workers.pools import LOOK_EVERY_S, Workers, open_pool

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

    Raises WorkerError: the process of one task dies whenever it runs; there is no worker, or no
    cluster; Exception: the first one that a task raises, with a note of which task it was.
    """
    waiting, suspects = deque(range(len(arguments))), deque[int]()  # suspects: their processes died
    running: dict[Future[Any], int] = {}
    deaths, on_trial, seen_at = Counter[int](), -1, monotonic()
    with open_pool(workers) as pool:
        while waiting or suspects or running:
            n_at_once = pool.n_at_once()
            if n_at_once:
                seen_at = monotonic()
            elif monotonic() - seen_at > PATIENCE_S:
                asked = ", ".join(map(name, sorted([*suspects, *running.values()])))
                raise WorkerError(
                    f"the cluster has had no worker for {PATIENCE_S:.0f} s; last asked to do: "
                    f"{asked or 'nothing'}"
                )
            if suspects:  # one by one, with nothing beside them
                numbers = [] if running else [suspects.popleft()]
                on_trial = numbers[0] if numbers else on_trial
            else:
                n_more = min(max(0, n_at_once - len(running)), len(waiting))
                numbers = [waiting.popleft() for _ in range(n_more)]
                on_trial = -1 if numbers else on_trial
            for number in numbers:
                future = pool.submit(partial(_on_one_thread, task), arguments[number])
                running[future] = number
            if not running:
                sleep(WITHOUT_WORKERS_S)
            done, _ = wait(running, LOOK_EVERY_S, FIRST_COMPLETED)
            for future in sorted(done, key=running.__getitem__):
                number = running.pop(future)
                if future.cancelled():
                    raise WorkerError("the cluster's scheduler has gone")
                error = future.exception()
                if not pool.died(error):
                    if error is not None:
                        error.add_note(f"in {name(number)}")
                    yield number, future.result()
                    continue
                deaths[number] += number == on_trial
                if deaths[number] == pool.most_deaths:
                    raise WorkerError(
                        f"{name(number)}: the process that runs it dies each time, also with "
                        "nothing beside it: it is killed from outside, or needs more memory than "
                        "there is"
                    )
                suspects.append(number)


def _on_one_thread(task: Callable[[Any], Any], argument: Any) -> Any:
    """The task, with no more than one BLAS thread, wherever it runs."""
    with threadpool_limits(limits=1):
        return task(argument)
