"""Is the promise kept for a PyTorch model of one's own? 12 cells: 6 limits x (partial, MFU).

    make promise-torch      says its cost first; killed, it goes on where it was

The two-tower model of examples/ is measured on 16 seeds by `cprsim measure`; the selector chooses
intervals by that curve; fresh failure histories are trained on fresh sessions and weights, as
benchmarks/promise.py does with the built-in model. The promise is kept with at least 11 of 12 cells
below their limit, and a mean of measured over limit of at least 0.6. Curve, runs and summary go to
results/promise-torch. Needs PyTorch: pip install 'cprsim[torch]'.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from cprsim.curves import read_curve
from cprsim.measuring.design import Design
from cprsim.measuring.runs import own_setting
from cprsim.reproduce.promise.losses import MOST_SEEDS, CellLoss, PromisedJob, measure_losses
from cprsim.reproduce.promise.study import document_of, print_exhaustive, print_summary
from cprsim.scenario import LoadedScenario, load_scenario
from cprsim.whole_file import write_whole
from cprsim.workers import Workers

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = "two_tower.yaml"
N_SEEDS, N_LIMITS = 16, 6
# A test of 20,000 samples: chance in which of them are ranked wrongly is then the smaller part.
SAID = (
    "kernel.options={samples: 32000, test: 20000, users: 60, items: 50, batch: 128}",
    "failures.mtbf=8 h",
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--folder", type=Path, default=ROOT / "results" / "promise-torch")
    arguments.add_argument("--workers", type=int, default=None)
    arguments.add_argument("--budget-min", type=float, default=600)
    asked = arguments.parse_args()
    folder, began, console = asked.folder.absolute(), time.time(), Console(stderr=True)
    os.chdir(ROOT / "examples")  # where the trainer's module lies, for workers too
    workers, path = Workers(asked.workers), folder / "two_tower.json"
    say_cost(console, load_scenario(Path(SCENARIO), SAID), workers.n_local)
    if not path.exists():
        measure_curve(path, asked.workers)
    loaded = load_scenario(Path(SCENARIO), [*SAID, f"accuracy.curve={path}"])
    job = PromisedJob.of(loaded, read_curve(path).curve(path.name), N_LIMITS)

    def tell(kept: list[CellLoss], n_runs: int) -> None:
        known = sum(one.known for one in kept)
        minutes = (time.time() - began) / 60
        console.print(f"{minutes:.1f} min: {known} cells known; {n_runs} runs in this round")

    until = began + 60 * asked.budget_min
    kept = measure_losses([job], folder / "runs", workers, until, tell)
    document = document_of([job], kept, folder / "runs", "make promise-torch")
    write_whole(folder / "summary.json", json.dumps(document, indent=1) + "\n")
    for show in (print_summary, print_exhaustive):
        show(Console(width=132), document)


def say_cost(console: Console, loaded: LoadedScenario, n_workers: int) -> None:
    """By the time of one run: the curve, and as many histories as there are at most."""
    design, n_servers = Design(), loaded.scenario.cluster.emb_ps
    trials = design.trials(1, n_servers)
    run = own_setting(loaded, 1).trainer()
    began = time.process_time()
    run.run()
    each_min = (time.process_time() - began) / 60
    of_curve, at_most = N_SEEDS * (len(trials) + 1), 2 * N_LIMITS * MOST_SEEDS
    console.print(
        f"{of_curve:,} runs for the curve and at most {at_most:,} for the cells, a run at most "
        f"{60 * each_min:.1f} s, most of them half of it: up to "
        f"{each_min * (of_curve + at_most):.0f} CPU minutes, on {n_workers} workers; what is "
        "finished is not run again"
    )


def measure_curve(path: Path, n_workers: int | None) -> None:
    """By the command that a user types."""
    said = [word for one in SAID for word in ("--set", one)]
    where = ["--seeds", str(N_SEEDS), "--out", os.path.relpath(path)]
    local = [] if n_workers is None else ["--workers", str(n_workers)]
    command = [sys.executable, "-m", "cprsim", "measure", SCENARIO, *said, *where, *local]
    subprocess.run(command, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
