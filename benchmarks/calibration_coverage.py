"""How well a calibration from the earlier half of logs predicts the later half.

    python -m benchmarks.calibration_coverage [--fleets 100] [--journal FILE]

A fleet is some jobs of one scenario, drawn at random: how often and how regularly they fail, how
they recover, how often they save, and what that costs. Their logs, 5 % of the events missing, are
cut in the middle; the earlier half, of about 150 failures, predicts the share of useful hours. That
is held to the mean of 2,000 futures of the whole fleet (10,000 of a job), and to what the later
half shows. Fleets of fewer than 100 failures in the earlier half are left out. A fleet takes about
5 seconds of CPU time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.coverage_of_intervals import Row, coverage, keep, kept
from cprsim.backtesting.calibrating import FEW_TO_PREDICT, predict
from cprsim.backtesting.facts import experiment_of
from cprsim.experiments.pipeline import replay, simulate
from cprsim.history.exporting import exported, write_events
from cprsim.history.ledger import ledgers
from cprsim.history.reading import read_logs
from tests.history.damage import damaged

JOBS, NODES = 5, 8
FAILURES = 150  # expected in a half
FUTURES = 2_000  # of five jobs each, one after the other
WITHIN = 0.01  # of the true mean
SHARE_WITHIN, LEVEL = 0.9, 0.9
SCENARIO = """\
name: truth
job: {{useful: {useful} h, horizon: {horizon} h, step: 6 s}}
cluster: {{emb_ps: {nodes}}}
failures: {{kind: job, role: emb_ps, family: weibull, mtbf: {mtbf} h, shape: {shape}}}
costs:
  save: {{family: gamma, mean: {save} min, shape: 30}}
  load: {{family: gamma, mean: {load} min, shape: 4}}
  detect: {{family: gamma, mean: {detect} min, shape: 2}}
  reschedule: {{family: gamma, mean: {reschedule} min, shape: 3}}
recovery:
  - {{strategy: {strategy}, name: ran, interval: {interval} h}}
simulation: {{seed: {seed}, replications: {replications}}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fleets", type=int, default=100)
    parser.add_argument(
        "--journal", type=Path, help="kept fleet by fleet; what it has is not done again"
    )
    said = parser.parse_args()
    rows = [row for row in studied(said.fleets, said.journal) if row["n"] >= FEW_TO_PREDICT]
    for name, low, high in (("all", 0.0, 1.0), ("ETTR below 0.9", 0.0, 0.9), ("above", 0.9, 1.0)):
        mine = [row for row in rows if low <= row["true"] < high]
        within = np.mean([row["within"] for row in mine])
        print(f"{name}: {coverage(mine, 'fleets', LEVEL)}")
        print(f"  mean within {WITHIN} of the true one: {within:.3f} (at least {SHARE_WITHIN})")


def studied(n_fleets: int, journal: Path | None = None) -> list[Row]:
    """Of each fleet: whether the interval holds what was observed, its width, and the mean."""
    rows = kept(journal)
    with TemporaryDirectory() as folder:
        for number in range(len(rows), n_fleets):
            rows.append(_row(number, Path(folder)))
            keep(journal, rows)
    return rows[:n_fleets]


def _row(number: int, folder: Path) -> Row:
    rng = np.random.default_rng([21, number])
    mtbf_h = float(rng.uniform(3.0, 10.0))
    half_h = FAILURES * mtbf_h
    drawn = {
        "mtbf": mtbf_h,
        "shape": float(rng.choice([0.7, 1.0, 1.4])),
        "strategy": str(rng.choice(["full", "partial"])),
        "interval": float(rng.uniform(0.5, 3.0)),
        "save": float(rng.uniform(0.5, 4.0)),
        "load": float(rng.uniform(1.0, 10.0)),
        "detect": float(rng.uniform(0.5, 5.0)),
        "reschedule": float(rng.uniform(1.0, 10.0)),
    }
    truth = experiment_of(_text(drawn, 2 * half_h / JOBS, JOBS, 2 * number), ())
    for job in range(JOBS):
        log = replay(truth, job)["ran"]
        events = list(exported(log, f"j{job}", step_s=6.0, progress_every_h=0.1))
        write_events(folder / f"{job}.jsonl", damaged(events, rng, missing=0.05, unseen_deaths=0.2))
    jobs = ledgers(read_logs([folder]), n_draws=40, seed=number)
    found = predict(jobs, n_nodes=NODES, seed=number)
    futures = simulate(experiment_of(_text(drawn, half_h, FUTURES, 2 * number + 1), ()))
    costs = futures.strategies[0].costs
    true_ettr = float((costs.useful_h / costs.wall_h).mean())
    return {
        "fleet": number, **drawn, "n": found.n_failures, "true": true_ettr,
        "holds": bool(found.is_inside),
        "within": bool(abs(found.predicted.mean - true_ettr) <= WITHIN),
        "width": (found.predicted.high - found.predicted.low) / true_ettr,
        "error": found.predicted.mean / true_ettr - 1.0,
        "observed": found.observed.mean / true_ettr - 1.0,
    }  # fmt: skip


def _text(drawn: dict[str, float | str], horizon_h: float, replications: int, seed: int) -> str:
    return SCENARIO.format(
        useful=2 * horizon_h, horizon=horizon_h, nodes=NODES, seed=seed,
        replications=replications, **drawn,
    )  # fmt: skip


if __name__ == "__main__":
    main()
