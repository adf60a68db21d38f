"""How often a backtest's intervals hold what another system really costs on the same failures.

    python -m benchmarks.backtest_coverage [--histories 100] [--journal FILE]

Half of the histories are as the model assumes (exponential gaps between failures); half are not:
the rate falls to a quarter (drift), racks fail node after node within minutes, and a lemon fails
again soon after its repair. Each runs under full recovery, its log is thinned and damaged at
random, and the backtest of the log is held to a simulation of the same failures under the other
systems. 100 histories take about 4 minutes of CPU time.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.coverage_of_intervals import coverage, keep, kept
from cprsim.backtesting.facts import AS_IT_RAN
from cprsim.backtesting.replaying import backtests
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import replay, simulate
from cprsim.history.ledger import ledgers
from cprsim.history.reading import read_logs
from cprsim.scenario import load_scenario
from tests.history.damage import damaged
from tests.history.exporting import exported, write_events

MTBF_H, USEFUL_H, NODES = 5.0, 150.0, 8
OTHERS = {
    "often": "{strategy: full, name: often, interval: 20 min}",
    "slower": "{strategy: full, name: slower, interval: 3 h}",
    "partial": "{strategy: partial, interval: 2 h}",
}
SCENARIO = """\
name: truth
job: {{useful: {useful} h, step: 6 s}}
cluster: {{emb_ps: {nodes}}}
failures: {{kind: injected, clock: wall, role: emb_ps, at: [{at}]}}
costs:
  save: {{family: gamma, mean: 3 min, shape: 30}}
  load: {{family: gamma, mean: 6 min, shape: 4}}
  detect: {{family: gamma, mean: 3 min, shape: 2}}
  reschedule: {{family: gamma, mean: 5 min, shape: 3}}
recovery:
  - {{strategy: full, name: ran, interval: 1 h}}
  - {others}
simulation: {{seed: {seed}, replications: 1}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument(
        "--journal", type=Path, help="kept row by row; what it has is not done again"
    )
    said = parser.parse_args()
    by_system = defaultdict(list)
    for row in studied(said.histories, said.journal):
        by_system[row["kind"], row["system"]].append(row)
    for (kind, system), rows in sorted(by_system.items()):
        print(f"{kind:8} {system:10} {coverage(rows, 'histories')}")


def studied(n_histories: int, journal: Path | None = None) -> list[dict[str, Any]]:
    """Of each history and system: whether the interval holds, its width and its error."""
    rows = kept(journal)
    first = 1 + max((row["history"] for row in rows), default=-1)
    with TemporaryDirectory() as folder:
        for number in range(first, n_histories):
            rows += _rows(number, Path(folder))
            keep(journal, rows)
    return [row for row in rows if row["history"] < n_histories]


def _rows(number: int, folder: Path) -> list[dict[str, Any]]:
    rng = np.random.default_rng([7, number])
    kind = "violates" if number % 2 else "model"
    at_h = violating_h(rng) if number % 2 else renewals_h(rng, lambda _: MTBF_H)
    scenario = folder / "truth.yaml"
    scenario.write_text(_scenario(at_h, number), "utf-8")
    experiment = assemble(load_scenario(scenario))
    outcome = simulate(experiment)
    truth_h = {
        one.policy.name: float((one.costs.wall_h - one.costs.useful_h)[0])
        for one in outcome.strategies
    }
    truth_h[AS_IT_RAN] = truth_h.pop("ran")
    whole = exported(
        replay(experiment, 0)["ran"], "j", step_s=6.0, progress_every_h=0.1, says_step_seconds=False
    )
    write_events(folder / "log.jsonl", damaged(list(whole), rng, missing=0.1, unseen_deaths=0.3))
    jobs = ledgers(read_logs([folder / "log.jsonl"]), seed=number)
    (found,), _ = backtests(jobs, list(OTHERS.values()), n_nodes=NODES, seed=number)
    return [
        {"history": number, "kind": kind, "system": one.system, "n": len(at_h),
         **_judged(one.overhead_h, truth_h[one.system])}
        for one in found.systems
    ]  # fmt: skip


def _judged(draws_h: np.ndarray, true_h: float) -> dict[str, Any]:
    low, high = np.quantile(draws_h, (0.025, 0.975))
    return {
        "holds": bool(low <= true_h <= high),
        "width": float(high - low) / true_h,
        "error": float(draws_h.mean()) / true_h - 1.0,
    }


def _scenario(at_h: Sequence[float], seed: int) -> str:
    return SCENARIO.format(
        useful=USEFUL_H, nodes=NODES, seed=seed, others="\n  - ".join(OTHERS.values()),
        at=", ".join(f"{one!r} h" for one in at_h),
    )  # fmt: skip


# ------------------------------------------------------------------------------ failures

UNTIL_H = 4 * USEFUL_H


def renewals_h(rng: np.random.Generator, mtbf_h: Any) -> list[float]:
    """Failures with exponential gaps whose mean may change with time."""
    at_h, found = 0.0, []
    while (at_h := at_h + float(rng.exponential(mtbf_h(at_h)))) < UNTIL_H:
        found.append(at_h)
    return found


def violating_h(rng: np.random.Generator) -> list[float]:
    """A rate that falls to a quarter; racks, node after node; and a lemon, again and again."""
    drift = renewals_h(rng, lambda at_h: 1.5 * MTBF_H * 4.0 ** min(at_h / USEFUL_H, 1.0))
    racks = [
        at_h + float(later)
        for at_h in renewals_h(rng, lambda _: 9 * MTBF_H)
        for later in np.sort(rng.uniform(0.0, 0.2, size=3))
    ]
    lemon = []
    for at_h in renewals_h(rng, lambda _: 9 * MTBF_H):
        lemon += np.cumsum([at_h, *rng.exponential(1.0, size=2)]).tolist()
    return sorted({round(one, 6) for one in (*drift, *racks, *lemon)})


if __name__ == "__main__":
    main()
