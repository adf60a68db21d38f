"""Tasks in worker processes, local or on a cluster; the death of one stops no other.

A task is waiting, running or finished. A task whose process died is a suspect: it is run once more
alone, so that another task can't be the cause of a second death. Pools are executors of
`concurrent.futures`: loky, which joblib uses, or dask's own (ADR 0013).
"""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from logging import CRITICAL, getLogger, root
from multiprocessing.resource_tracker import ensure_running
from threading import Thread
from time import monotonic, sleep
from typing import Any, Literal, TypeVar

import loky
from threadpoolctl import threadpool_limits

from cprsim.errors import ClusterError, ParameterError, WorkerError

Argument = TypeVar("Argument")
Result = TypeVar("Result")

BACKENDS = ("local", "dask")
AHEAD = 2  # tasks handed out per worker: the next one is there when one is finished
GONE = "the cluster's scheduler has gone"
IDLE_S = 60.0  # after which a local worker without work ends
LOOK_EVERY_S = 2.0  # whether a cluster still has workers, and a parent still lives
CONNECT_S = 10.0
PATIENCE_S = 60.0  # with a cluster that has no worker
WITHOUT_WORKERS_S = 0.2  # between two looks at it

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMBA")
}
# where a worker grows by more than 300 MB, loky takes it for a leak and starts it anew; training
# keeps half a gigabyte between its runs
NO_LEAK = {"LOKY_MAX_MEMORY_LEAK_SIZE": "4e9"}


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does the tasks.

    Parameters
    ----------
    n : processes on this machine; None for one per core that this process may use. With one, tasks
        run in this very process. A cluster has as many workers as it has.
    backend : local: this machine; dask: the cluster whose scheduler listens at `address`
    address : such as ``tcp://head:8786``

    Raises
    ------
    ParameterError : fewer than one worker, an unknown backend, an address too many or too few
    """

    n: int | None = None
    backend: Literal["local", "dask"] = "local"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ParameterError(f"backend: {self.backend!r} is none of {', '.join(BACKENDS)}")
        if self.n is not None and self.n < 1:
            raise ParameterError(f"there must be at least 1, not {self.n}", option="--workers")
        if (self.backend == "local") != (self.address is None):
            message = "name the scheduler's address, for example tcp://head:8786"
            raise ParameterError(message, option="--dask")
        if self.backend != "local" and self.n is not None:
            message = "a cluster has as many workers as it has"
            raise ParameterError(message, option="--workers")

    @property
    def n_local(self) -> int:
        """Processes on this machine."""
        return int(loky.cpu_count()) if self.n is None else self.n


HERE = Workers(1)


def run_each(
    task: Callable[[Argument], Result],
    arguments: Sequence[Argument],
    workers: Workers = HERE,
    name: Callable[[int], str] = "task {}".format,
) -> Generator[tuple[int, Result], None, None]:
    """Run a task for each argument, and yield the results in the order in which they finish.

    Each process has one BLAS thread; the cores are shared by tasks that run in parallel. A task
    must return the same result wherever and however often it runs, because one whose process dies
    is run again; finished results are kept. Leaving the iteration ends the workers.

    Raises WorkerError: the process of one task dies whenever it runs; there is no worker, or no
    cluster; Exception: the first one that a task raises, with a note of which task it was.
    """
    if workers.backend == "local" and workers.n_local == 1:
        for number, argument in enumerate(arguments):
            try:
                result = _on_one_thread(task, argument)
            except Exception as raised:
                raised.add_note(f"in {name(number)}")
                raise
            yield number, result
        return
    waiting, suspects = deque(range(len(arguments))), deque[int]()  # suspects: their processes died
    running: dict[Future[Any], int] = {}
    deaths, on_trial, seen_at = Counter[int](), -1, monotonic()
    with _loky(workers.n_local) if workers.backend == "local" else _dask(workers.address) as pool:
        while waiting or suspects or running:
            n_at_once = pool.n_at_once()
            if n_at_once:
                seen_at = monotonic()
            elif monotonic() - seen_at > PATIENCE_S:
                names = ", ".join(map(name, sorted([*suspects, *running.values()])))
                raise ClusterError(
                    f"the cluster has had no worker for {PATIENCE_S:.0f} s; last asked to do: "
                    f"{names or 'nothing'}"
                )
            if suspects:  # one by one, with nothing beside them
                numbers = [] if running else [suspects.popleft()]
                on_trial = numbers[0] if numbers else on_trial
            else:
                n_more = min(max(0, n_at_once - len(running)), len(waiting))
                numbers = [waiting.popleft() for _ in range(n_more)]
                on_trial = -1 if numbers else on_trial
            for number in numbers:
                running[pool.submit(partial(_on_one_thread, task), arguments[number])] = number
            if not running:
                sleep(WITHOUT_WORKERS_S)
            finished, _ = wait(running, LOOK_EVERY_S, FIRST_COMPLETED)
            for future in sorted(finished, key=running.__getitem__):
                number = running.pop(future)
                if future.cancelled():
                    raise ClusterError(GONE)
                error = future.exception()
                if not pool.died(error):
                    if error is not None:
                        error.add_note(f"in {name(number)}")
                    yield number, future.result()
                    continue
                deaths[number] += number == on_trial
                if deaths[number] == pool.most_deaths:
                    raise WorkerError(
                        f"{name(number)}: the process that runs it dies each time, also when "
                        "no other task runs: it is killed from outside, or needs more memory than "
                        "there is"
                    )
                suspects.append(number)


def _on_one_thread(task: Callable[[Any], Any], argument: Any) -> Any:
    """The task, with no more than one BLAS thread, wherever it runs."""
    with threadpool_limits(limits=1):
        return task(argument)


@dataclass
class _Loky:
    """Processes of this machine; where one is killed loky ends the others, and starts anew."""

    n_workers: int
    most_deaths: int = 2  # another program may have been short of memory the first time

    def n_at_once(self) -> int:
        """How many tasks to hand out; 0 where there is no worker."""
        return AHEAD * self.n_workers

    def submit(self, task: Callable[[Any], Any], argument: Any) -> Future[Any]:
        ensure_running()  # multiprocessing's tracker lets Ctrl-C through as it starts: not below
        # new processes do not heed Ctrl-C before they run `_follow`
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            while True:
                with suppress(BrokenExecutor):  # it broke just now: the next one is whole
                    future: Future[Any] = self.executor().submit(task, argument)
                    return future
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def died(self, error: BaseException | None) -> bool:
        """Whether this is how the death of a worker shows."""
        return isinstance(error, BrokenExecutor)

    def executor(self) -> Any:
        return loky.get_reusable_executor(
            max_workers=self.n_workers, timeout=IDLE_S, env=ONE_THREAD | NO_LEAK,
            initializer=_follow, initargs=(os.getpid(),),
        )  # fmt: skip


@contextmanager
def _loky(n_workers: int) -> Iterator[_Loky]:
    """Processes of this machine, which stay for the next block unless this one is left early."""
    pool = _Loky(n_workers)
    try:
        yield pool
    except BaseException:
        pool.executor().shutdown(wait=True, kill_workers=True)
        raise


def _follow(parent: int) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the parent, and end with it."""

    def end_with_it() -> None:
        while os.getppid() == parent:
            sleep(LOOK_EVERY_S)
        os._exit(1)  # it was killed: no process waits for the result

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=end_with_it, daemon=True).start()


@dataclass
class _Dask:
    """The workers of a cluster, as many as there are at the moment."""

    client: Any
    most_deaths: int = 1  # each stands for several: dask has tried other workers by then

    def n_at_once(self) -> int:
        return AHEAD * int(sum(self._asked(self.client.nthreads).values()))

    def submit(self, task: Callable[[Any], Any], argument: Any) -> Future[Any]:
        executor = self.client.get_executor(pure=False)
        future: Future[Any] = self._asked(executor.submit, task, argument)
        return future

    def _asked(self, of_scheduler: Callable[..., Any], *arguments: Any) -> Any:
        """Call the scheduler, which may import cprsim first. Raises ClusterError if it is lost."""
        while True:
            try:
                return of_scheduler(*arguments)
            except (OSError, CancelledError, RuntimeError) as error:  # closed, lost, ended
                if not isinstance(error, OSError) or self.client.status != "running":
                    raise ClusterError(GONE) from error

    def died(self, error: BaseException | None) -> bool:
        from distributed import KilledWorker

        return isinstance(error, KilledWorker)


@contextmanager
def _dask(address: str | None) -> Iterator[_Dask]:
    """The cluster at an address; WorkerError where it can't be reached."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise WorkerError("dask is not installed: pip install 'cprsim[dask]'") from None
    for name in [name for name in root.manager.loggerDict if name.startswith("distributed")]:
        getLogger(name).setLevel(CRITICAL)  # of a cluster that goes away we say it ourselves
    try:
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=CONNECT_S, set_as_default=False
        )
    except (OSError, TypeError, ValueError) as error:  # not there; TLS without certificates
        raise ClusterError(f"no dask scheduler answers at {address}: {error}") from error
    with client:
        yield _Dask(client)
