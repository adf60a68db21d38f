"""Is the promise kept? 30 cells: 5 limits x 3 scenarios x (partial, MFU), on fresh data.

    make promise        at most 90 minutes on 2 cores; killed, it goes on where it was

For each cell the selector chooses the interval that keeps the limit; then fresh failure histories
are trained on fresh clicks and weights until the mean loss is known to a tenth of the limit. The
promise is kept with at least 27 of 30 below their limit, and a mean of measured over limit of at
least 0.6: a selector that is merely cautious fails, too. The rule for the limits stands in
cprsim/reproduce/promise/cells.py. Beside each choice stands the best of a fine grid of intervals.
Runs and summary go to results/promise. `cprsim reproduce promise` makes the same as a study.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rich.console import Console

from cprsim.reproduce.promise.losses import CellLoss
from cprsim.reproduce.promise.study import (
    SCENARIOS,
    measured,
    print_exhaustive,
    print_summary,
)
from cprsim.scenario import load_scenario
from cprsim.whole_file import write_whole
from cprsim.workers import BACKENDS, Workers

ROOT = Path(__file__).parent.parent
BUDGET_MIN = 90


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--folder", type=Path, default=ROOT / "results" / "promise")
    arguments.add_argument("--workers", type=int, default=None)
    arguments.add_argument("--backend", choices=BACKENDS, default="local")
    arguments.add_argument("--address", help="of the scheduler of a dask cluster")
    arguments.add_argument("--budget-min", type=float, default=BUDGET_MIN)
    asked = arguments.parse_args()
    began = time.time()
    console = Console(stderr=True)

    def tell(kept: list[CellLoss], n_runs: int) -> None:
        known = sum(one.known for one in kept)
        minutes = (time.time() - began) / 60
        console.print(f"{minutes:.1f} min: {known} cells known; {n_runs} runs in this round")

    console.print("selecting intervals, simulating fresh histories")
    document = measured(
        [load_scenario(ROOT / "scenarios" / f"{name}.yaml") for name in SCENARIOS],
        asked.folder.absolute(),
        Workers(asked.workers, asked.backend, asked.address),
        began + 60 * asked.budget_min,
        tell,
    )
    write_whole(asked.folder / "summary.json", json.dumps(document, indent=1) + "\n")
    for show in (print_summary, print_exhaustive):
        show(Console(width=132), document)


if __name__ == "__main__":
    main()
