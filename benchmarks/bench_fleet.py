"""How long 17,000 jobs of 720 h take that share nodes, spares or storage, and how much memory.

    python benchmarks/bench_fleet.py [JOBS [CASE ...]]

For each case and strategy: CPU seconds of one process (each core runs another strategy or option),
and the most memory that the process held. The aim is 60 s and 1 GB.
"""

from __future__ import annotations

import resource
import sys
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from cprsim.fleets.course import prepare, run_history
from cprsim.scenario import load_scenario

SCENARIO = Path(__file__).parents[1] / "scenarios" / "fleet.yaml"
TYPICAL = 17_000  # jobs; the limits of the cases are for so many
CASES: dict[str, dict[str, tuple[float, str]]] = {
    "nodes": {"fleet.nodes": (60_000, "")},
    "spares that run out": {"fleet.spares": (2000, "")},
    "spares beside idle nodes": {"fleet.nodes": (60_000, ""), "fleet.spares": (200, "")},
    "storage": {"fleet.storage": (4000, " Gbit/s")},
    "too little storage": {"fleet.storage": (2000, " Gbit/s")},
}


def measure(n_jobs: int, case: str, strategy: int) -> None:
    """Print one line."""
    limits = [
        f"{key}={max(1, round(n * n_jobs / TYPICAL))}{unit}"
        for key, (n, unit) in CASES[case].items()
    ]
    began = process_time()
    fleet = prepare(load_scenario(SCENARIO, [f"fleet.jobs={n_jobs}", *limits]))
    rows = run_history(fleet, strategy)
    used_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    by = "SimPy" if rows.by_events else "engine"
    print(
        f"{case:24} {fleet.strategies[strategy]:5} {by:7} {process_time() - began:7.1f} s "
        f"{used_mb:7.0f} MB   mean overhead {100 * rows.overhead.mean():.3f} %",
        flush=True,
    )


def main(n_jobs: int = TYPICAL, *cases: str) -> None:
    """One process after the other, so that each has its own memory."""
    for case in cases or CASES:
        for strategy in range(2):
            process = get_context("spawn").Process(target=measure, args=(n_jobs, case, strategy))
            process.start()
            process.join()


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:2]), *sys.argv[2:])
