"""Whether curves of 3 seeds agree with one of 16 others, for a PyTorch model of one's own.

    python benchmarks/few_seeds.py [--folder results/few-seeds]

The two-tower model of examples/ is measured on 19 seeds, under partial recovery and MFU (4 CPU
minutes; killed, it goes on where it was). Each of six triples of seeds that have none in common
makes a curve, and the 16 others make one: what both say of failures at several times and save
intervals is held to each other, both errors counted, as benchmarks/coverage_of_curves.py does with
the built-in model. Intervals that are right hold 95 % of the differences. Needs PyTorch:
pip install 'cprsim[torch]'.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from coverage_of_curves import ANY_TIME, FAILS_AT, SAVES_EVERY, STRATEGIES, Said, covers, said
from rich.console import Console
from scipy import stats

from cprsim.kernel.blas import one_thread
from cprsim.measuring.design import Design
from cprsim.measuring.fit import fit
from cprsim.measuring.observed import observed
from cprsim.measuring.runs import SeedRuns, Where, read_seed, run_seed
from cprsim.scenario import LoadedScenario, load_scenario
from cprsim.staleness import ALWAYS
from cprsim.workers import Workers, run_each

ROOT = Path(__file__).resolve().parent.parent
N_SEEDS, N_FEW = 19, 3
SHOWN = (len(FAILS_AT), SAVES_EVERY.index(0.1))  # a failure at any time, saves every tenth


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--folder", type=Path, default=ROOT / "results" / "few-seeds")
    arguments.add_argument("--workers", type=int, default=1)
    asked = arguments.parse_args()
    folder, console = asked.folder.absolute() / "runs", Console(stderr=True)
    os.chdir(ROOT / "examples")  # where the trainer's module lies, for workers too
    loaded = load_scenario(Path("two_tower.yaml"))
    tasks = [_task(loaded, seed, folder) for seed in range(1, N_SEEDS + 1)]
    for number, n_run in run_each(run_seed, tasks, Workers(asked.workers), "seed {}".format):
        console.print(f"seed {tasks[number].seed}: {n_run} runs")
    results = [read_seed(folder, one.seed) for one in tasks]
    seen = observed(results, loaded.scenario.cluster.emb_ps)
    print(f"{sum(one.cpu_s for one in results) / 60:.1f} CPU minutes")
    print(
        f"A failure at {ANY_TIME} time, saves every tenth of the run; loss with its 95 % interval"
    )
    with one_thread():
        for metric in ALWAYS:
            held = []
            for first in range(0, N_SEEDS - N_FEW + 1, N_FEW):
                few = range(first, first + N_FEW)
                others = [i for i in range(N_SEEDS) if i not in few]
                ours, theirs = (said(fit(seen.of_seeds(some), metric)) for some in (few, others))
                held.append(covers(ours, theirs).mean())
                print(f"{metric.value:9} seeds {first + 1:2} to {first + N_FEW:2}:  {told(ours)}  "
                      f"16 others: {told(theirs)}  agree in {held[-1]:.0%} of cells")  # fmt: skip
            print(f"{metric.value:9} agree in {np.mean(held):.1%} of all cells")


def _task(loaded: LoadedScenario, seed: int, folder: Path) -> SeedRuns:
    design, n_servers = Design(strategies=STRATEGIES), loaded.scenario.cluster.emb_ps
    trials = (*design.scenes(seed, n_servers), *design.checks(seed, n_servers))
    where = Where(Path.cwd())
    return SeedRuns(loaded, seed, trials, folder, count_bytes=False, where=where)


def told(one: Said) -> str:
    """Losses by strategy; the interval is Student's."""
    reach = float(stats.t.ppf(0.975, one.n_seeds - 1))
    return ", ".join(
        f"{key} {one.loss[SHOWN][i]:.5f} ± {reach * one.error[SHOWN][i]:.5f}"
        for i, key in enumerate(STRATEGIES)
    )


if __name__ == "__main__":
    main()
