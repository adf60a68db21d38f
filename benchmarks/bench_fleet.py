"""How long 17,000 jobs of 720 h take that share nodes, spares or storage, and how much memory.

    python benchmarks/bench_fleet.py [JOBS [CASE ...]]

For each case and strategy: CPU seconds of one process, and the most memory that it held. The aim is
90 s and 1 GB.
"""

from __future__ import annotations

import resource
import sys
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from cprsim.commands.fleet.histories import prepare, run_history
from cprsim.scenario.reading import load_scenario

SCENARIO = Path(__file__).parents[1] / "scenarios" / "fleet.yaml"
TYPICAL = 17_000  # jobs; the limits of the cases are for so many
CASES: dict[str, dict[str, tuple[float, str]]] = {
    "no limit": {},
    "nodes": {"fleet.nodes": (60_000, "")},
    "spares that run out": {"fleet.spares": (2000, "")},
    "spares and few nodes": {"fleet.nodes": (60_000, ""), "fleet.spares": (200, "")},
    "storage": {"fleet.storage": (4000, " Gbit/s")},
    "too little storage": {"fleet.storage": (2000, " Gbit/s")},
}


def measure(n_jobs: int, case: str, strategy: int) -> None:
    """Print one line."""
    share, began = n_jobs / TYPICAL, process_time()
    sets = [f"{key}={max(1, round(n * share))}{unit}" for key, (n, unit) in CASES[case].items()]
    fleet = prepare(load_scenario(SCENARIO, [f"fleet.jobs={n_jobs}", *sets]))
    overhead = 100 * run_history(fleet, strategy).jobs.overhead.mean()
    mb, took_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, process_time() - began
    name = fleet.kinds[0].policies[strategy].name
    print(f"{case:24} {name:5} {took_s:7.1f} s {mb:7} MB   overhead {overhead:.3f} %", flush=True)


if __name__ == "__main__":
    _, jobs, *cases = (*sys.argv, *[str(TYPICAL)][len(sys.argv) - 1 :])
    for each in [(int(jobs), case, n) for case in cases or CASES for n in range(2)]:
        process = get_context("spawn").Process(target=measure, args=each)  # has its own memory
        process.start()
        process.join()
