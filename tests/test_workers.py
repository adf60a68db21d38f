"""Tasks in processes of their own: what comes back, and what the death of a process costs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info

from cprsim.errors import ClusterError, ParameterError, Place, Problem, ScenarioError, WorkerError
from cprsim.workers import Workers, run_each

TWO = Workers(2)


def square(number: int) -> int:
    return number * number


def whoami(_: int) -> tuple[int, set[int]]:
    import numpy as np

    np.ones((8, 8)) @ np.ones((8, 8))
    return os.getpid(), {library["num_threads"] for library in threadpool_info()}


def die_once(mark: Path | None) -> str:
    """Kill the process that runs this, the first time that this mark is seen."""
    if mark is not None and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuse(number: int) -> int:
    if number == 2:
        raise ScenarioError([Problem(Place("a.yaml", 7), "costs", "no")])
    return number


@pytest.fixture(scope="module", params=["here", "two processes", "a cluster"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    from tests.making import small_cluster  # not above: every worker would import the program

    if request.param == "a cluster":
        with small_cluster() as there:
            yield there
    else:
        yield Workers(1) if request.param == "here" else TWO


def test_every_task_comes_back_once_with_its_number(workers: Workers) -> None:
    assert sorted(run_each(square, range(20), workers)) == [(n, n * n) for n in range(20)]


def test_tasks_run_elsewhere_with_one_blas_thread_each(workers: Workers) -> None:
    found = [result for _, result in run_each(whoami, range(8), workers)]
    if workers != Workers(1):
        assert os.getpid() not in {pid for pid, _ in found}
        assert {threads for _, there in found for threads in there} == {1}


def test_a_killed_worker_costs_no_task(workers: Workers, tmp_path: Path) -> None:
    killed = () if workers == Workers(1) else (1, 5) if workers == TWO else (1,)
    marks = [tmp_path / str(n) if n in killed else None for n in range(8)]
    assert dict(run_each(die_once, marks, workers)) == dict.fromkeys(range(8), "survived")


def test_a_task_that_always_kills_its_worker_is_named_and_the_others_come_back() -> None:
    came: list[int] = []
    coming = run_each(die, range(6), TWO, "point {}".format)
    with pytest.raises(WorkerError, match=r"^point 3: the process that runs it dies each time"):
        came.extend(number for number, _ in coming)
    assert set(came) >= {0, 1, 2}
    assert 3 not in came


def test_what_a_task_raises_arrives_whole(workers: Workers) -> None:
    with pytest.raises(ScenarioError, match=r"^a.yaml:7: costs: no") as caught:
        list(run_each(refuse, range(4), workers, "point {}".format))
    assert caught.value.problems[0].place.line == 7
    assert caught.value.__notes__ == ["in point 2"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0,), "at least 1, not 0"),
        ((None, "dask"), "for example tcp://head:8786"),
        ((4, "dask", "tcp://head:8786"), "as many workers as it has"),
    ],
)
def test_who_cannot_work_is_said(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Workers(*given)


SLEEPING = """
import os, time
from cprsim.workers import Workers, run_each
def sleep(_):
    os.write(1, f'{os.getpid()}\\n'.encode())  # at once: two workers share the pipe
    time.sleep(60)
list(run_each(sleep, range(2), Workers(2)))
"""


def test_workers_end_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", SLEEPING], stdout=subprocess.PIPE, text=True)
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    assert all(alive(pid) for pid in workers)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in workers)


HEEDING = """
import signal
from cprsim.workers import Workers, run_each
def heeds(_):
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
print({heeds for _, heeds in run_each(heeds, range(4), Workers(2))})
"""


def test_no_worker_heeds_ctrl_c_from_its_first_instant_on() -> None:
    ran = subprocess.run([sys.executable, "-c", HEEDING], capture_output=True, text=True)
    assert ran.stdout == "{False}\n", ran.stderr


def alive(pid: int) -> bool:
    with suppress(ProcessLookupError, FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    return False


def test_a_cluster_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("cprsim.workers.CONNECT_S", 0.3)
    nobody = Workers(backend="dask", address="tcp://127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"no dask scheduler answers at tcp://127.0.0.1:1"):
        list(run_each(square, [1], nobody))
