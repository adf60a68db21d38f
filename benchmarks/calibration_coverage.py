"""How well a calibration from the earlier half of logs predicts the later half.

    python -m benchmarks.calibration_coverage [--fleets 100] [--failures 150] [--journal FILE]

A fleet is some jobs of one scenario, drawn at random: how often and how regularly they fail, how
they recover, how often they save, and what that costs. Their logs, 5 % of the events missing, are
cut in the middle; the earlier half, of about 150 failures, predicts the share of useful hours. That
is held to the mean of 2,000 futures of the whole fleet (10,000 of a job), and to what the later
half shows. Fleets of fewer than 100 failures in the earlier half are left out. A fleet takes about
5 seconds of CPU time.

Beside it stands what nobody can beat: who knows the whole scenario but the MTBF, and estimates that
by maximum likelihood from the very same failures (of n gaps of a Weibull distribution the logarithm
of its scale has a standard deviation of at least 1 / (shape sqrt(n)), by its Fisher information).
"""

from __future__ import annotations

import argparse
from math import gamma, log, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import norm

from benchmarks.coverage_of_intervals import Row, coverage, keep, kept
from cprsim.backtesting.calibrating import FEW_TO_PREDICT, predict
from cprsim.backtesting.facts import experiment_of
from cprsim.experiments.pipeline import replay, simulate
from cprsim.history.ledger import ledgers
from cprsim.history.reading import read_logs
from cprsim.records import EventKind, EventLog
from tests.history.damage import damaged
from tests.history.exporting import exported, write_events

JOBS, NODES = 5, 8
FAILURES = 150  # expected in a half
FUTURES = 2_000  # of five jobs each, one after the other
FEWER_FUTURES = 500  # at a longer and at a shorter MTBF
STEP = 0.1  # of its logarithm
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
    parser.add_argument(
        "--failures", type=int, default=FAILURES, help="expected in the earlier half"
    )
    said = parser.parse_args()
    rows = studied(said.fleets, said.failures, said.journal)
    rows = [row for row in rows if row["n"] >= FEW_TO_PREDICT]
    for name, low, high in (("all", 0.0, 1.0), ("ETTR below 0.9", 0.0, 0.9), ("above", 0.9, 1.0)):
        mine = [row for row in rows if low <= row["true"] < high]
        if not mine:
            continue
        within, best, bound = (
            np.mean([row[key] for row in mine]) for key in ("within", "best_within", "bound")
        )
        print(f"{name}: {coverage(mine, 'fleets', LEVEL)}")
        print(
            f"  mean within {WITHIN} of the true one: {within:.3f} (asked: {SHARE_WITHIN}); best "
            f"possible on the same failures {best:.3f}, expected of it {bound:.3f}"
        )


def studied(n_fleets: int, n_failures: int = FAILURES, journal: Path | None = None) -> list[Row]:
    """Of each fleet: whether the interval holds what was observed, its width, and the mean."""
    rows = kept(journal)
    with TemporaryDirectory() as folder:
        for number in range(len(rows), n_fleets):
            rows.append(_row(number, n_failures, Path(folder)))
            keep(journal, rows)
    return rows[:n_fleets]


def _row(number: int, n_failures: int, folder: Path) -> Row:
    rng = np.random.default_rng([21, number])
    mtbf_h = float(rng.uniform(3.0, 10.0))
    half_h = n_failures * mtbf_h
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
    logs = [replay(truth, job)["ran"] for job in range(JOBS)]
    for job, ran in enumerate(logs):
        events = list(exported(ran, f"j{job}", step_s=6.0, progress_every_h=0.1))
        write_events(folder / f"{job}.jsonl", damaged(events, rng, missing=0.05, unseen_deaths=0.2))
    jobs = ledgers(read_logs([folder]), n_draws=40, seed=number)
    found = predict(jobs, n_nodes=NODES, seed=number)
    true_ettr = _ettr(drawn, half_h, FUTURES, 2 * number + 1)
    longer, shorter = (
        _ettr(drawn | {"mtbf": mtbf_h * factor}, half_h, FEWER_FUTURES, 2 * number + 1)
        for factor in (1 + STEP, 1 / (1 + STEP))
    )
    slope = (longer - shorter) / (2 * log(1 + STEP))  # of the ETTR over the logarithm of the MTBF
    shape = float(drawn["shape"])
    best = slope * _log_error(logs, half_h / JOBS, mtbf_h, shape)
    return {
        "fleet": number, **drawn, "n": found.n_failures, "true": true_ettr,
        "holds": bool(found.is_inside),
        "within": bool(abs(found.predicted.mean - true_ettr) <= WITHIN),
        "width": (found.predicted.high - found.predicted.low) / true_ettr,
        "error": found.predicted.mean / true_ettr - 1.0,
        "observed": found.observed.mean / true_ettr - 1.0,
        "slope": slope, "best_error": best / true_ettr, "best_within": bool(abs(best) <= WITHIN),
        "bound": 1 - 2 * norm.sf(WITHIN * shape * sqrt(found.n_failures) / slope),
        "by_mtbf": slope * log(found.mtbf_h / mtbf_h) / true_ettr,
    }  # fmt: skip


def _ettr(drawn: dict[str, float | str], half_h: float, futures: int, seed: int) -> float:
    """The mean share of useful hours of so many futures."""
    costs = simulate(experiment_of(_text(drawn, half_h, futures, seed), ())).strategies[0].costs
    return float((costs.useful_h / costs.wall_h).mean())


def _log_error(logs: list[EventLog], until_h: float, mtbf_h: float, shape: float) -> float:
    """Of the MTBF's logarithm, by maximum likelihood from the failures of all jobs until then."""
    n, total = 0, 0.0
    for ran in logs:
        at_h = ran.at_h[np.isin(ran.kind, (EventKind.FAILED, EventKind.MISSED))]
        edges_h = np.concatenate([[0.0], np.unique(at_h[at_h < until_h]), [until_h]])
        n += len(edges_h) - 2
        total += float((np.diff(edges_h) ** shape).sum())
    scale_h = mtbf_h / gamma(1 + 1 / shape)
    return log(total / n) / shape - log(scale_h)


def _text(drawn: dict[str, float | str], horizon_h: float, replications: int, seed: int) -> str:
    return SCENARIO.format(
        useful=2 * horizon_h, horizon=horizon_h, nodes=NODES, seed=seed,
        replications=replications, **drawn,
    )  # fmt: skip


if __name__ == "__main__":
    main()
