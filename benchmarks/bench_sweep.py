"""Speed of sweeps: what a task costs to hand out, 400 points at once, one big grid.

Times are of this machine at this moment; CPU seconds stand beside the clock's, since others may use
the same cores. `--only NAME` does one part: tasks, points, workers, grid.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cprsim.workers import Workers

SCENARIO = """\
name: bench
job: {useful: 50 h}
cluster: {trainers: 20, emb_ps: 18}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 28 h}
costs: {save: 3 min, load: 6 min, detect: 3 min, reschedule: 9 min}
recovery:
  - full
  - partial
  - {strategy: cpr, target_pls: 0.1}
  - {strategy: cpr-mfu, target_pls: 0.1}
  - {strategy: cpr-ssu, target_pls: 0.1}
  - {strategy: cpr-scar, target_pls: 0.1}
"""
LIFE = "{family: gamma, shape: 0.7, mtbf: 1064 h}"  # of one node: 28 h for the 38 together
BY_NODE = f"{{kind: node, roles: {{trainer: {LIFE}, emb_ps: {LIFE}}}}}"
GRID = ["--over", "costs.save=30 s:10 min:log10", "--over", "recovery.interval=0.25h:48h:log40"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", choices=PARTS)
    only = options.parse_args().only
    print(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f} when this began")
    for name, part in PARTS.items():
        if only in (None, name):
            part()


def measured(command: list[str], doing: str) -> dict[str, object]:
    """Run `cprsim sweep` in a folder of its own; say what it took; what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "bench.yaml"
        scenario.write_text(SCENARIO, "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "cprsim", "sweep", str(scenario), *command,
             "--json", "--out", folder],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        said: dict[str, object] = json.loads(done.stdout)
    took_s = perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{doing}: {took_s:.1f} s, {cpu_s:.1f} CPU s; {said['computed']} points; "
        f"largest process {after.ru_maxrss / 1024:.0f} MB"
    )
    return said


def nothing(argument: int) -> int:
    return argument


def tasks() -> None:
    """What a task costs beside its work: handing out, coming back."""
    from cprsim.workers import Workers

    for n_workers in (1, 2):
        empty_tasks(Workers(n_workers), f"{n_workers} worker(s)")
    if find_spec("distributed") is not None:
        from distributed import LocalCluster

        with LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster:
            by = Workers(backend="dask", address=cluster.scheduler_address)
            empty_tasks(by, "a dask cluster of 2")
    print(f"keeping a point: {1e3 * keeping_s():.2f} ms")


def empty_tasks(by: Workers, who: str) -> None:
    from cprsim.workers import run_each

    list(run_each(nothing, range(100), by))  # the processes are there
    began, cpu_began, n = perf_counter(), process_time(), 2_000
    list(run_each(nothing, range(n), by))
    each_ms, cpu_ms = (
        1e3 * took / n for took in (perf_counter() - began, process_time() - cpu_began)
    )
    print(f"an empty task, {who}: {each_ms:.2f} ms, {cpu_ms:.2f} CPU ms of the parent")


def keeping_s() -> float:
    """Seconds of the parent per finished point: unpickling it, writing its file."""
    from cprsim.commands.sweep.points import points_of, run_points
    from cprsim.results.store import PointStore
    from cprsim.scenario.reading import load_scenario
    from cprsim.workers import Workers

    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "bench.yaml"
        scenario.write_text(SCENARIO, "utf-8")
        said = ["simulation.replications=10"]
        points = points_of(load_scenario(scenario, said, ["recovery.interval=1 h,2 h"]))
        store = PointStore(Path(folder))
        body, _ = run_points(points, store, Workers(1))
        pickled, n = pickle.dumps(body), 500
        began = perf_counter()
        for i in range(n):
            store.put(f"{i:064x}", pickle.loads(pickled), Path(folder))
        return (perf_counter() - began) / n


def points() -> None:
    """What somebody waits for: 400 points at default precision, from the command to its end."""
    measured([*GRID, "--set", "recovery=[full,partial,{strategy: cpr, target_pls: 0.1}]"],
             "400 points x 3 strategies x 1,000 replications, figures included")  # fmt: skip


def workers() -> None:
    """Throughput with 1 and 2 workers on one machine."""
    for n in (1, 2):
        measured([*GRID, "--replications", "10000", "--workers", str(n)],
                 f"400 points x 6 strategies x 10,000 replications, {n} worker(s)")  # fmt: skip


def grid() -> None:
    """The big one, and the same with a clock per node; 2.1 failures per job, 5 or fewer in 96 %."""
    big = [*GRID, "--replications", "100000"]
    doing = "400 points x 6 strategies x 100,000 replications"
    measured(big, doing)
    measured([*big, "--set", f"failures={BY_NODE}"], f"{doing}, a clock per node")


PARTS: dict[str, Callable[[], None]] = {
    "tasks": tasks,
    "points": points,
    "workers": workers,
    "grid": grid,
}

if __name__ == "__main__":
    main()
