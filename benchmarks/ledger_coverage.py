"""How often a ledger's intervals hold the truth: simulated logs, thinned and damaged at random.

    python -m benchmarks.ledger_coverage [--logs 400] [--missing 0.1] [--unseen 0.3]

Of each log a share of all events is missing, a share of the failures leaves no event, and no
says its step. Printed are the share of logs whose 95 % interval holds the simulator's own hours,
the median width of the interval over the truth, and the mean error.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import replay, simulate
from cprsim.history.exporting import exported, write_events
from cprsim.history.ledger import ledgers
from cprsim.history.reading import read_logs
from cprsim.scenario import load_scenario
from tests.history.damage import damaged

PARTS = ("lost", "save", "detect", "reschedule", "load")
EXACT_H = 3e-7  # 1 ms
SCENARIO = """\
name: coverage
job: {useful: 200 h}
cluster: {trainers: 4, emb_ps: 4}
failures: {kind: job, family: exponential, mtbf: 6 h}
costs:
  save: {family: gamma, mean: 4 min, shape: 30}
  load: {family: gamma, mean: 6 min, shape: 4}
  detect: {family: gamma, mean: 3 min, shape: 2}
  reschedule: {family: gamma, mean: 8 min, shape: 3}
recovery: [full, {strategy: partial, interval: young}]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--missing", type=float, default=0.1)
    parser.add_argument("--unseen", type=float, default=0.3)
    said = parser.parse_args()
    for key, rows in studied(said.logs, said.missing, said.unseen).items():
        holds, width, error = np.array(rows).T
        print(
            f"{key[0]:8} {key[1]:11} holds {holds.mean():.3f}  "
            f"median width {np.median(width):.4f}  mean error {error.mean():+.4f}"
        )


def studied(
    n_logs: int, missing: float, unseen: float
) -> dict[tuple[str, str], list[tuple[bool, float, float]]]:
    """Of each strategy and part, and each log: whether it holds, its width, its error."""
    rng, rows = np.random.default_rng(5), defaultdict(list)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        scenario = Path(folder) / "scenario.yaml"
        scenario.write_text(f"{SCENARIO}simulation: {{seed: 1, replications: {n_logs}}}\n", "utf-8")
        experiment = assemble(load_scenario(scenario))
        outcome = simulate(experiment)
        for number in range(n_logs):
            logs = replay(experiment, number)
            for one in outcome.strategies:
                whole = exported(
                    logs[one.policy.name], "j", step_s=2.0, progress_every_h=0.1,
                    says_step_seconds=False,
                )  # fmt: skip
                write_events(path, damaged(list(whole), rng, missing=missing, unseen_deaths=unseen))
                (found,) = ledgers(read_logs([path]), seed=number)
                for part in PARTS:
                    true_h = float(one.costs.hours_of(part)[number])
                    if true_h > 0:
                        rows[one.policy.name, part].append(_row(found.parts[part], true_h))
    return rows


def _row(hours, true_h):
    holds = hours.low - EXACT_H <= true_h <= hours.high + EXACT_H
    return holds, (hours.high - hours.low) / true_h, hours.mean / true_h - 1.0


if __name__ == "__main__":
    main()
