"""How often a ledger's intervals hold the truth: simulated logs, thinned and damaged at random.

    python -m benchmarks.ledger_coverage [--logs 400] [--missing 0.1] [--unseen 0.3]
        [--journal FILE]

Of each log a share of all events is missing, a share of the failures leaves no event, and none
says its step. Printed are the share of logs whose 95 % interval holds the simulator's own hours,
up to the last event that the log still has, with the 99.9 % binomial band around 95 %; the median
width of the interval over the truth; and the mean error. 400 logs take about 8 minutes of CPU time.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.coverage_of_intervals import coverage, keep, kept
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import replay
from cprsim.history.ledger import ledgers
from cprsim.history.reading import read_logs
from cprsim.records import Activity, EventLog
from cprsim.scenario import load_scenario
from tests.history.damage import damaged
from tests.history.exporting import exported, write_events

PARTS = ("useful", "lost", "save", "detect", "reschedule", "load")
EXACT_H = 3e-7  # 1 ms
LEAST_H = 1 / 60
N_LOGS = 400
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
    parser.add_argument("--logs", type=int, default=N_LOGS)
    parser.add_argument("--missing", type=float, default=0.1)
    parser.add_argument("--unseen", type=float, default=0.3)
    parser.add_argument(
        "--journal", type=Path, help="kept row by row; what it has is not done again"
    )
    said = parser.parse_args()
    by_part = defaultdict(list)
    for row in studied(said.logs, said.missing, said.unseen, said.journal):
        by_part[row["strategy"], row["part"]].append(row)
    for key, rows in by_part.items():
        print(f"{key[0]:8} {key[1]:11} {coverage(rows, 'logs')}")


def studied(
    n_logs: int, missing: float, unseen: float, journal: Path | None = None
) -> list[dict[str, Any]]:
    """Of each log, strategy and part: whether its interval holds, its width, its error.

    Width and error are shares of the true hours; those below a minute in all are left out.
    """
    others, rows = [], []
    for row in kept(journal):
        (rows if (row["missing"], row["unseen"]) == (missing, unseen) else others).append(row)
    first = 1 + max((row["log"] for row in rows), default=-1)
    with TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.yaml"
        scenario.write_text(
            f"{SCENARIO}simulation: {{seed: 1, replications: {max(n_logs, N_LOGS)}}}\n", "utf-8"
        )
        experiment = assemble(load_scenario(scenario))
        for number in range(first, n_logs):
            rng = np.random.default_rng([5, number])
            new = [
                {"log": number, "strategy": name, "missing": missing, "unseen": unseen, **row}
                for name, log in replay(experiment, number).items()
                for row in _rows(log, Path(folder) / "log.jsonl", number, missing, unseen, rng)
            ]
            rows += new
            keep(journal, others + rows)
    return [row for row in rows if row["log"] < n_logs]


def _rows(
    log: EventLog, path: Path, number: int, missing: float, unseen: float, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    whole = list(exported(log, "j", step_s=2.0, progress_every_h=0.1, says_step_seconds=False))
    some = damaged(whole, rng, missing=missing, unseen_deaths=unseen)
    write_events(path, some)
    (found,) = ledgers(read_logs([path]), seed=number)
    for part in PARTS:
        true_h = _hours(log, Activity[part.upper()], found.wall_h)
        if true_h > LEAST_H:
            hours = found.useful_h if part == "useful" else found.parts[part]
            yield {
                "part": part,
                "holds": bool(hours.low - EXACT_H <= true_h <= hours.high + EXACT_H),
                "width": (hours.high - hours.low) / true_h,
                "error": hours.mean / true_h - 1.0,
            }


def _hours(log: EventLog, activity: Activity, until_h: float) -> float:
    """By the simulator: hours of one activity until the last event that a log still has."""
    took_h = np.diff(np.minimum(log.at_h, until_h))
    return float(took_h[log.activity[:-1] == activity].sum())


if __name__ == "__main__":
    main()
