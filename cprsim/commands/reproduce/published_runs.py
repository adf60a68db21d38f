"""Published runs: simulated where their outcome is known, predicted where it is withheld.

Each scenario in `published-runs/` marks all its numbers; an input that is not published is a range
in the section `unknown`. A prediction draws these inputs and simulates the run with each draw: its
interval covers the chance of failures and the unknown inputs. Predictions are kept in
`results/published-runs/predictions.json`, committed before any comparison and never changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from cprsim.commands.calibrate.calibrating import predict
from cprsim.commands.reproduce.estimates import StudyEstimate, series
from cprsim.commands.reproduce.study import Summary, Work
from cprsim.commands.reproduce.verdicts import Ours, Tested
from cprsim.failures.sources import stream
from cprsim.files import digest_of
from cprsim.job.records import S_PER_H
from cprsim.logs.jobs.ledger import ledgers
from cprsim.logs.jobs.reading import read_logs
from cprsim.pages.chart import Panel
from cprsim.results.metrics import replication_rows
from cprsim.results.pipeline import simulate
from cprsim.results.words import significant
from cprsim.scenario.assemble import assemble
from cprsim.scenario.job import values_along
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.yaml_text import Plain

SEED_OF_RUNS = 60
CANNOT_TELL = 10.0  # points, or per cent of the median: wider intervals decide nothing
WITHHELD = "withheld"
P1_NODES = 112
P5_STEP_S, P6_STEP_S = 1.1338, 97.0  # of the arms that are predicted
USEFUL = "useful_percent"  # of wall time
# 21 March, 30 April, 5 % of three days after 28 April (published); "some hours" of maintenance
NAMED_BLOOM_H = 7.3 + 18.0 + 3.6 + 3.0


@dataclass(frozen=True)
class Run:
    """A published run: its scenario, the predicted quantity, and the strategy."""

    file: str
    column: str  # of a replication's row
    unit: str
    scale: float = 1.0  # from the column to the unit
    strategy: str = "full"
    over: str = ""  # another strategy, whose wall clock this one's is divided by
    named_h: float = 0.0  # standstills that are named one by one, beyond what is simulated


RUNS = {
    "P2": Run("p2-ezpz-debug.yaml", "wall_h", "min", 60.0),
    "P3": Run("p3-ezpz-2b.yaml", "wall_h", "min", 60.0),
    "P4": Run("p4-ezpz-20b.yaml", "wall_h", "min", 60.0),
    "P5": Run("p5-ray.yaml", "wall_h", "min", 60.0),
    "P5 jit": Run("p5-ray.yaml", "wall_h", "min", 60.0, "jit"),
    "P5 jit, steps": Run("p5-ray.yaml", "lost_h", "steps", S_PER_H / P5_STEP_S, "jit"),
    "P6": Run("p6-glm.yaml", "useful_h", "steps", S_PER_H / P6_STEP_S),
    "P6 windows": Run("p6-glm.yaml", "wall_h", "h"),
    "P7": Run("p7-bloom.yaml", "wall_h", "h", named_h=NAMED_BLOOM_H),
    "P8": Run("p8-opt.yaml", USEFUL, "%"),
    "P9": Run("p9-llama3.yaml", USEFUL, "%"),
    "P10": Run("p10-byterobust.yaml", USEFUL, "%"),
    "P11": Run("p11-ft-hsdp.yaml", USEFUL, "%", strategy="hsdp"),
    "P12": Run("p12-torchpass.yaml", "wall_h", "times", over="migration"),
}  # by the beginning of a case's name; the longest that fits


def run_of(case: str) -> Run:
    """The run that a case of `studies.yaml` belongs to."""
    return RUNS[max(filter(case.startswith, RUNS), key=len)]


def published_runs(work: Work) -> Summary:
    """Simulate the known arms as they were, the withheld ones over draws of unknown inputs."""
    n_draws, claims = work.pick(20, 100, 400), work.study.claims
    known = {case for case in work.study.cases if case in claims and claims[case].text}
    parts = {
        case: partial(
            outcomes, scenario_of(work, case), run_of(case), 0 if case in known else n_draws
        )
        for case in work.study.cases
    }
    found = work.compute(parts)
    made = {case: estimate(found[case]["outcomes"]) for case in found}
    rows = {case: prediction(work, case, found[case]) for case in found if case not in known}
    return work.study.summary(
        google_log(work) | {case: made[case] for case in found if case in known},
        {"Predictions, each made before its outcome was looked at:": rows_of_table(rows)},
        panel({case: estimate(of["shares"]) for case, of in found.items()}),
        records={"predictions": rows},
        n_draws=n_draws,
    )


def google_log(work: Work) -> dict[str, Ours]:
    """The ledger of a job's whole log, and its later half predicted; nothing without the log."""
    if not (files := work.study.data_files()):
        return {}
    found = work.compute({"P1": partial(of_log, files["P1"])})["P1"]
    words = "{:.2f} ({:.2f} to {:.2f}, 90 %), seen {:.2f}"
    text = words.format(*found["predicted"], found["observed"])
    return {
        "P1 goodput": StudyEstimate(found["goodput"]),
        "P1 later half": Tested(found["is_inside"], text),
    }


def of_log(path: Path) -> dict[str, Any]:
    """Goodput of a log, and the ETTR of its later half as predicted by the earlier one."""
    jobs = ledgers(read_logs([path], None), seed=SEED_OF_RUNS)
    half = predict(jobs, n_nodes=P1_NODES, seed=SEED_OF_RUNS)
    predicted, useful_h = half["predicted"], sum(job.useful_h.mean for job in jobs)
    return {
        "goodput": 100.0 * useful_h / sum(job.wall_h for job in jobs),
        "predicted": [predicted.mean, predicted.low, predicted.high],
        "observed": half["observed"].mean,
        "is_inside": half["is_inside"],
    }


def scenario_of(work: Work, case: str) -> LoadedScenario:
    """The scenario of a case, with the overrides of the case."""
    return work.scenario(f"published-runs/{run_of(case).file}", work.study.cases[case])


def drawn_inputs(loaded: LoadedScenario, n: int) -> Iterator[dict[str, Plain]]:
    """Values of the unknown inputs: each evenly by factors over its range, in a random order."""
    rng = stream(SEED_OF_RUNS, 0, "published-runs")
    values = {
        key: [along.written[i] for i in rng.permutation(n)]
        for key, entry in sorted((loaded.scenario.unknown or {}).items())
        for along in [values_along(f"{entry.low}:{entry.high}:log{n}")]
    }
    for i in range(n):
        yield {key: of[i] for key, of in values.items()}


def outcomes(loaded: LoadedScenario, run: Run, n_draws: int) -> dict[str, Any]:
    """Predicted quantity and useful share of a run, for each draw of inputs and replication."""
    draws = [*drawn_inputs(loaded, n_draws)] if n_draws else [{}]
    found: list[list[float]] = []
    shares: list[float] = []
    for number, changes in enumerate(draws):
        seeds: dict[str, Plain] = {"simulation.seed": number + 1, "unknown": None}
        varied = loaded.varied({**changes, **seeds}, loaded.place)
        rows = replication_rows(simulate(assemble(varied), keep_losses=False))
        rows["wall_h"] += run.named_h
        rows[USEFUL] = 100.0 * rows["useful_h"] / rows["wall_h"]
        of = dict(iter(rows.groupby("strategy")))
        mine = of[run.strategy]
        value = run.scale * mine[run.column].to_numpy()
        if run.over:
            value = value / of[run.over][run.column].to_numpy()
        found.append(value.tolist())
        shares += mine[USEFUL].tolist()
    inputs = {key: [str(one[key]) for one in draws] for key in draws[0]}
    return {"outcomes": found, "shares": shares, "inputs": inputs}


def estimate(values: Any) -> StudyEstimate:
    """The median, and the 95 % interval of single runs."""
    low, median, high = np.quantile(np.ravel(values), [0.025, 0.5, 0.975])
    return StudyEstimate(float(median), float(low), float(high))


def prediction(work: Work, case: str, found: dict[str, Any]) -> dict[str, Any]:
    """A prediction as it is stored."""
    loaded, run = scenario_of(work, case), run_of(case)
    made, shares = estimate(found["outcomes"]), estimate(found["shares"])
    free = {key: [entry.low, entry.high] for key, entry in (loaded.scenario.unknown or {}).items()}
    return {
        "unit": run.unit,
        "median": float(f"{made.mean:.5g}"),
        "low": float(f"{made.low:.5g}"),
        "high": float(f"{made.high:.5g}"),
        "useful_percent": [float(f"{of:.4g}") for of in (shares.mean, shares.low, shares.high)],
        "free": free,
        "decides": deciding(found),
        "scenario": digest_of([loaded.data]),
        "outcome": WITHHELD,
    }


def deciding(found: dict[str, Any]) -> str:
    """The input on which the outcome hangs most, with its rank correlation; empty without any."""
    means = np.mean(found["outcomes"], axis=1)
    by_rank = {
        key: float(stats.spearmanr(values_along(values).numbers or range(len(values)), means)[0])
        for key, values in found["inputs"].items()
    }
    key = max(by_rank, key=lambda key: abs(by_rank[key]), default="")
    return key and f"{key} ({by_rank[key]:+.2f})"


def rows_of_table(rows: dict[str, dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Predictions as rows of a table."""
    for case, row in rows.items():
        width = row["high"] - row["low"]
        is_wide = (width if row["unit"] == "%" else 100 * width / row["median"]) > CANNOT_TELL
        yield {
            "run": case,
            "predicted": f"{significant(row['median'])} {row['unit']}",
            "95 % interval": f"{significant(row['low'])} to {significant(row['high'])}",
            "useful, %": "{} ({} to {})".format(*map(significant, row["useful_percent"])),
            "decides": row["decides"] or "nothing is free",
            "can tell": "no" if is_wide else "yes",
            "outcome": row["outcome"],
        }


def panel(shares: dict[str, StudyEstimate]) -> Panel:
    """The useful share of each run's time, as predicted or simulated."""
    made = series("median, and 95 % interval", shares, shares.values(), kind="range")
    return Panel("", "", "useful share of the time, %", (made,))
