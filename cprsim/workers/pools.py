"""Who does the tasks: this process, processes on this machine, or a cluster.

All pools are executors of `concurrent.futures`: loky is what joblib runs on, dask brings its own
(ADR 0013 says why not joblib itself).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from time import monotonic, sleep
from typing import Any, Literal, Protocol

import loky

from cprsim.errors import ParameterError, WorkerError

BACKENDS = ("local", "dask")
AHEAD = 2  # tasks handed out per worker: the next one is there when one is finished
IDLE_S = 60.0  # after which a local worker without work ends
LOOK_EVERY_S = 2.0  # whether a cluster still has workers, and a parent still lives
CONNECT_S = 10.0

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
            raise ParameterError(f"workers: there must be at least 1, not {self.n}")
        if (self.backend == "local") != (self.address is None):
            raise ParameterError(
                "address: a dask cluster needs its scheduler's, for example tcp://head:8786; "
                "workers on this machine have none"
            )
        if self.backend != "local" and self.n is not None:
            raise ParameterError("workers: a cluster has as many workers as it has")

    @property
    def n_local(self) -> int:
        """Processes on this machine."""
        return int(loky.cpu_count()) if self.n is None else self.n


class Pool(Protocol):
    """Runs tasks in parallel; a broken one mends itself."""

    def n_at_once(self) -> int:
        """How many tasks to hand out; 0 where there is no worker."""
        ...

    def submit(self, task: Callable[[Any], Any], argument: Any) -> Future[Any]: ...

    def died(self, error: BaseException | None) -> bool:
        """Whether this is how the death of a worker shows."""
        ...

    @property
    def most_deaths(self) -> int:
        """Deaths after which a task that runs with nothing beside it is given up."""
        ...


@contextmanager
def open_pool(workers: Workers) -> Iterator[Pool]:
    """The pool of these workers while the block lasts; local ones stay for the next block.

    Raises WorkerError where a cluster can't be reached.
    """
    if workers.backend == "dask":
        with _dask(str(workers.address)) as pool:
            yield pool
    elif workers.n_local == 1:
        yield _InThisProcess()
    else:
        with _loky(workers.n_local) as pool:
            yield pool


class _InThisProcess:
    """One task after the other."""

    most_deaths = 1  # this process dies with the task

    def n_at_once(self) -> int:
        return 1

    def submit(self, task: Callable[[Any], Any], argument: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(task(argument))
        except Exception as error:
            done.set_exception(error)
        return done

    def died(self, error: BaseException | None) -> bool:
        return False


@dataclass
class _Loky:
    """Processes of this machine; where one is killed loky ends the others, and starts anew."""

    n_workers: int
    most_deaths: int = 2  # another program may have been short of memory the first time

    def n_at_once(self) -> int:
        return AHEAD * self.n_workers

    def submit(self, task: Callable[[Any], Any], argument: Any) -> Future[Any]:
        while True:
            with suppress(BrokenExecutor):  # it broke just now: the next one is whole
                return self.executor().submit(task, argument)

    def died(self, error: BaseException | None) -> bool:
        return isinstance(error, BrokenExecutor)

    def executor(self) -> Executor:
        executor: Executor = loky.get_reusable_executor(
            max_workers=self.n_workers,
            timeout=IDLE_S,
            env=ONE_THREAD | NO_LEAK,
            initializer=_follow,
            initargs=(os.getpid(),),
        )
        return executor


@contextmanager
def _loky(n_workers: int) -> Iterator[_Loky]:
    pool = _Loky(n_workers)
    try:
        yield pool
    except BaseException:
        pool.executor().shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
        raise


def _follow(parent: int) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        sleep(LOOK_EVERY_S)
    os._exit(1)  # it was killed: no process waits for the result


@dataclass
class _Dask:
    """The workers of a cluster, as many as there are at the moment."""

    client: Any
    most_deaths: int = 1  # each stands for several: dask has tried other workers by then
    n_threads: int = 0
    counted_at: float = -LOOK_EVERY_S

    def n_at_once(self) -> int:
        if monotonic() - self.counted_at >= LOOK_EVERY_S:
            self.n_threads = sum(self.client.nthreads().values())
            self.counted_at = monotonic()
        return AHEAD * self.n_threads

    def submit(self, task: Callable[[Any], Any], argument: Any) -> Future[Any]:
        future: Future[Any] = self.client.get_executor(pure=False).submit(task, argument)
        return future

    def died(self, error: BaseException | None) -> bool:
        from distributed import KilledWorker

        return isinstance(error, KilledWorker)


@contextmanager
def _dask(address: str) -> Iterator[_Dask]:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise WorkerError("dask is not installed: pip install 'cprsim[dask]'") from None
    try:
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=CONNECT_S, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise WorkerError(f"no dask scheduler answers at {address}: {error}") from error
    with client:
        yield _Dask(client)
