"""Two tasks at once: one here, the other in a copy of this process that has all that is loaded."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, TypeVar

Here = TypeVar("Here")
There = TypeVar("There")

LATE_TIMES, LATEST_S = 2.0, 5.0  # what the copy may take longer than the task here
PR_SET_PDEATHSIG = 1  # of Linux's prctl: a signal when the parent dies

in_task: ContextVar[bool] = ContextVar("in_task", default=False)  # of `run_each`


def may_copy() -> bool:
    """Whether this process can be copied, and its copy would have a core of its own.

    Not inside a task of `run_each`: who asked for workers has as many as asked for.
    """
    if sys.platform != "linux" or in_task.get() or multiprocessing.parent_process() is not None:
        return False
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and len(os.sched_getaffinity(0)) > 1


def both(here: Callable[[], Here], there: Callable[[], There]) -> tuple[Here, There]:
    """Do two tasks at once; one after the other where there can be no copy, or it came to nothing.

    Parameters
    ----------
    here : a task for this process
    there : a task for its copy, whose memory is not that of this process: it returns all that it
        finds, which can be pickled. It may be begun a second time.
    """
    if not may_copy():
        return here(), there()
    with _copy_that_does(there) as results:
        began = monotonic()
        found_here = here()
        patience_s = LATEST_S + LATE_TIMES * (monotonic() - began)
        found_there = _received(results, patience_s)
    return found_here, (there() if found_there is None else found_there[0])


@contextmanager
def _copy_that_does(task: Callable[[], There]) -> Iterator[Any]:
    """A copy of this process that does a task, and ends with the block."""
    fork = multiprocessing.get_context("fork")
    results, told = fork.Pipe(duplex=False)
    process = fork.Process(target=_tell, args=(told, task), daemon=True)
    with results:
        with told, warnings.catch_warnings():
            # of other threads, whose locks the copy may find locked: it is awaited only so long
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        try:
            yield results
        finally:
            process.kill()
            process.join()


def _tell(told: Any, task: Callable[[], Any]) -> None:
    """What the copy does, and ends with the other process; Ctrl-C and errors are for that."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        told.send((task(),))
    except BaseException:  # the other process finds out by doing it itself
        os._exit(1)


def _received(results: Any, patience_s: float) -> tuple[Any] | None:
    """What a copy found; None where it failed, died, or is not done in so many seconds."""
    try:
        return results.recv() if results.poll(patience_s) else None
    except (EOFError, OSError):
        return None
