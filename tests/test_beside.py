"""Two tasks at once, one of them in a copy of this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cprsim.workers import Workers, run_each
from cprsim.workers import beside as module
from cprsim.workers.beside import both, may_copy

needs_two_cores = pytest.mark.skipif(
    not may_copy(), reason="processes can't be copied here, or there is one core"
)


@needs_two_cores
def test_one_task_runs_here_and_the_other_in_a_copy_of_this_process() -> None:
    here, there = both(os.getpid, os.getpid)
    assert here == os.getpid() != there


@needs_two_cores
def test_a_copy_knows_what_is_known_here_and_changes_nothing_here() -> None:
    known = [1]
    _, there = both(lambda: None, lambda: known.append(2) or list(known))
    assert there == [1, 2]
    assert known == [1]


def fails_elsewhere(home: int, how: Any) -> int:
    if os.getpid() != home:
        how()
    return os.getpid()


def raises() -> None:
    raise ValueError("of the copy")


@needs_two_cores
@pytest.mark.parametrize(
    "how",
    [raises, partial(os._exit, 3), lambda: os.kill(os.getpid(), signal.SIGKILL)],
    ids=["raises", "leaves", "is killed"],
)
def test_what_a_copy_does_not_find_is_done_here(how: Any) -> None:
    assert both(lambda: 7, partial(fails_elsewhere, os.getpid(), how)) == (7, os.getpid())


@needs_two_cores
def test_a_copy_that_hangs_is_awaited_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LATEST_S", 0.1)
    began = time.monotonic()
    hangs = partial(fails_elsewhere, os.getpid(), partial(time.sleep, 600))
    assert both(lambda: 7, hangs) == (7, os.getpid())
    assert time.monotonic() - began < 300


@needs_two_cores
def test_a_copy_ends_with_the_process_that_it_is_a_copy_of() -> None:
    code = (
        "import os, time; from cprsim.workers.beside import both\n"
        "both(lambda: time.sleep(600), lambda: (print(os.getpid(), flush=True), time.sleep(600)))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        copy = int(running.stdout.readline())
        assert Path(f"/proc/{copy}").exists()
        running.kill()
        assert running.stdout.read() == ""  # at its end, when nobody can write to it any more
    assert not Path(f"/proc/{copy}/fd/1").exists()


def test_an_error_of_the_task_itself_is_raised_and_leaves_no_copy() -> None:
    with pytest.raises(ValueError, match="of the copy"):
        both(lambda: 7, raises)
    with pytest.raises(ValueError, match="of the copy"):
        both(raises, partial(time.sleep, 600))
    assert not [one for one in module.multiprocessing.active_children() if one.is_alive()]


def pids(_: int) -> tuple[int, int, int]:
    return os.getpid(), *both(os.getpid, os.getpid)


@pytest.mark.parametrize("n", [1, 2])
def test_workers_stay_as_many_as_asked_for(n: int) -> None:
    for _, found in run_each(pids, [0, 1], Workers(n)):
        assert len(set(found)) == 1


def test_a_thread_that_is_not_the_main_one_does_both() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(both(os.getpid, os.getpid)))
    thread.start()
    thread.join()
    assert found == [(os.getpid(), os.getpid())]


def test_one_core_does_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert both(os.getpid, os.getpid) == (os.getpid(), os.getpid())
