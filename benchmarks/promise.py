"""Is the promise kept? Intervals of the selector compared with losses measured on fresh data.

    make promise          30 cells of the built-in model: half an hour of CPU time, at most 90 min
    make promise-torch    12 cells of examples/two_tower.py (--torch); needs 'cprsim[torch]'

A cell is a scenario, a limit of the loss of AUC and a strategy (partial recovery, MFU). The
selector chooses the interval that keeps the limit; fresh failure histories are trained on fresh
clicks and weights until the mean loss is known to a tenth of the limit. The promise is kept with at
least 9 of 10 cells below their limit, and a mean of measured over limit of at least 0.6: a selector
that is merely cautious fails, too.

The limits are spread evenly, in their logarithm, between the losses that the curve predicts for
partial recovery at 2 saves per job (with fewer, hardly any limit binds) and at 6. The predicted
loss of a history is a control variate: its mean is known from 4,000 histories, of which those that
are trained are drawn one from each stratum of equal size. The cheapest of a fine grid of intervals,
on fresh failures, is set beside each choice. Runs are kept in journals: killed, it goes on where it
was. Runs and summary go to results/promise or results/promise-torch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import cprsim
from cprsim.accuracy.curve import StalenessCurve
from cprsim.accuracy.curve_file import read_curve
from cprsim.commands.select.evaluation import Evaluated, evaluator_of, options_of
from cprsim.commands.select.selection import selection_of
from cprsim.failures.sources import stream
from cprsim.files import finite_or_none, write_whole
from cprsim.job.losses import Metric
from cprsim.job.policy import RELOAD, Policy
from cprsim.job.records import NO_NUMBER, Floats, ShardLoss
from cprsim.recovery.paper import strategy as paper_policy
from cprsim.results import pipeline
from cprsim.results.folder import git_state
from cprsim.results.limit import Limit
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.curves import chosen_curve
from cprsim.scenario.reading import LoadedScenario, load_scenario
from cprsim.training.kernel.blas import description
from cprsim.training.kernel.trials import ROUNDING, Saving, ShardFailure, Trial
from cprsim.training.measuring.runs import SeedRuns, read_seed, require_seen, run_seed
from cprsim.workers import BACKENDS, Workers, run_each

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ("criteo-kaggle", "criteo-terabyte", "production-gamma")
OWN_MODEL, N_LIMITS_OWN, N_SEEDS_OWN = "two_tower.yaml", 6, 16
OWN_SETS = (  # of 20,000 samples to test on: chance in their ranking is then the smaller part
    "kernel.options={samples: 32000, test: 20000, users: 60, items: 50, batch: 128}",
    "failures.mtbf=8 h",
)
STRATEGIES = {"partial": "partial", "cpr-mfu": "mfu"}  # of the selector: the curve's key
N_LIMITS, SAVES = 5, (2, 6)  # saves per job at the largest limit and at the smallest
CONFIDENCE, LEAST_KEPT, LEAST_USED = 0.95, 27 / 30, 0.6
FRESH_SEED, N_HISTORIES, N_STRATA = 3_000_017, 4000, 8  # of the failures: not the selector's
FIRST_SEED, MOST_SEEDS, ROUND = 6001, 128, 8  # of training: no curve was measured on them
ENOUGH = 0.1  # of the limit, the standard error of a measured mean
N_GRID, N_INTERVALS, FINEST, NEAR_ENOUGH = 2000, 120, 30, 1.05
NONE = np.zeros(0)


@dataclass
class Cell:
    """One promise: a job under this strategy, so chosen, loses no more than the limit."""

    scenario: str
    limit: float
    strategy: str
    policy: Policy | None = None  # None: no interval keeps the limit
    predicted: float = np.nan  # by the curve at that interval
    held: float = np.nan  # the upper bound that the selector compares with the limit
    fresh: Floats = field(default_factory=lambda: NONE)  # predicted loss of every fresh history
    drawn: list[tuple[float, Trial | None]] = field(default_factory=list)  # predicted loss, trial
    off: Floats = field(default_factory=lambda: NONE)  # measured less predicted, by seed

    @property
    def mean(self) -> float:
        return float(self.fresh.mean() + self.off.mean()) if len(self.off) > 1 else np.nan

    @property
    def standard_error(self) -> float:
        """As if histories were drawn at random, which forgoes what stratification gains."""
        if len(self.off) < 2:
            return np.inf
        return float(np.hypot(stats.sem(self.off), stats.sem(self.fresh)))

    @property
    def known(self) -> bool:
        return self.standard_error <= ENOUGH * self.limit


@dataclass(frozen=True)
class Job:
    """A scenario and its cells."""

    loaded: LoadedScenario
    curve: StalenessCurve
    experiment: Experiment
    cells: list[Cell]


def limit_of(most: float) -> Limit:
    return Limit(Metric.AUC, most, confidence=CONFIDENCE)


def job_of(loaded: LoadedScenario, curve: StalenessCurve, n_limits: int = N_LIMITS) -> Job:
    """A scenario with its cells, by the selector, and their fresh histories."""
    job = Job(loaded, curve, assemble(loaded), [])
    for most in limits(job.experiment, curve, n_limits):
        by_curve = replace(job.experiment, curve=curve)
        best = selection_of(evaluator_of(by_curve, limit_of(float(most))), with_figure=False).best
        for strategy in STRATEGIES:
            cell, found = Cell(loaded.scenario.name, float(most), strategy), best.get(strategy)
            if found is not None:
                cell.policy, cell.predicted, cell.held = found.policy, found.loss.mean, found.held
            job.cells.append(cell)
    draw_histories(job)
    return job


def limits(experiment: Experiment, curve: StalenessCurve, n: int = N_LIMITS) -> Floats:
    """The limits of a scenario, the largest first."""
    every_h = [experiment.useful_h / (n_saves + 1) * (1 + 1e-6) for n_saves in SAVES]
    costs, cluster = experiment.costs, experiment.cluster
    policies = tuple(paper_policy(str(h), RELOAD, costs, cluster, h) for h in every_h)
    outcome = pipeline.simulate(replace(experiment, policies=policies))
    losses = (predicted(curve, one, outcome.useful_h).mean() for one in outcome.strategies)
    return np.geomspace(*map(float, losses), n)


def predicted(curve: StalenessCurve, one: pipeline.StrategyOutcome, useful_h: float) -> Floats:
    """(n,) loss of AUC of every replication."""
    return curve.predict(one.policy, Metric.AUC, one.losses, one.costs, useful_h).loss


def fresh_of(job: Job, n: int) -> Experiment:
    """The job on failures that the selector never saw."""
    return job.experiment.simulated(seed=FRESH_SEED, replications=n, precision_fraction=None)


def draw_histories(job: Job, n: int = N_HISTORIES) -> None:
    """Simulate fresh histories for all cells, on the same failures, and draw those to train."""
    chosen = {f"{c.scenario} {c.limit:.2g} {c.strategy}": c for c in job.cells if c.policy}
    policies = tuple(replace(cell.policy, name=name) for name, cell in chosen.items())
    outcome = pipeline.simulate(replace(fresh_of(job, n), policies=policies))
    first_slot = job.experiment.cluster.shard_slots.start
    for (name, cell), one in zip(chosen.items(), outcome.strategies, strict=True):
        cell.fresh = predicted(job.curve, one, outcome.useful_h)
        interval = min(cell.policy.interval_h / outcome.useful_h, 2.0)  # never saving: 2 jobs
        saving = Saving(STRATEGIES[cell.strategy], interval)
        cell.drawn = [
            (cell.fresh[number], trial_of(saving, one.losses, number, outcome.useful_h, first_slot))
            for number in drawn_of(cell.fresh, name)
        ]


def drawn_of(fresh: Floats, name: str) -> list[int]:
    """Numbers of histories, one from each stratum in turn, strata shuffled."""
    rng = stream(FIRST_SEED, 0, f"promise/{name}")
    strata = np.array_split(np.argsort(fresh, kind="stable"), N_STRATA)
    turns = -(-MOST_SEEDS // N_STRATA)
    shuffled = [place for _ in range(turns) for place in rng.permutation(N_STRATA)]
    return [int(rng.choice(strata[place])) for place in shuffled[:MOST_SEEDS]]


def trial_of(
    saving: Saving, losses: ShardLoss, number: int, useful_h: float, first_slot: int
) -> Trial | None:
    """One history as the kernel trains it; None where nothing was lost."""
    lost = set()
    for i in np.flatnonzero(losses.replication == number):
        at = float(losses.progress_h[i]) / useful_h
        if losses.since_save_h[i] > 0 and any(saving.due(at - 2 * ROUNDING, at)):
            at = max(at - 4 * ROUNDING, 0.0)  # the save that is due here was struck
        lost.add((at, int(losses.slot[i]) - first_slot))
    # one by one: servers that fail in one recovery have the same progress, but not all at once
    failures = tuple(ShardFailure(at, (server,)) for at, server in sorted(lost))
    return Trial(saving, failures) if failures else None


def measure(jobs: list[Job], folder: Path, workers: Workers, until: float) -> None:
    """Train, in rounds of seeds, the cells that are not known yet; no run begins after `until`."""
    for first in range(0, MOST_SEEDS, ROUND):
        tasks = []
        for job in jobs:
            unknown = [cell for cell in job.cells if cell.drawn and not cell.known]
            for at in range(first, first + ROUND):
                trials = dict.fromkeys(cell.drawn[at][1] for cell in unknown)
                some = tuple(trial for trial in trials if trial is not None)
                where = folder / job.loaded.scenario.name
                task = SeedRuns(job.loaded, FIRST_SEED + at, some, where, until, count_bytes=False)
                tasks += [task] if some else []
        if not tasks:
            break
        n_known = sum(cell.known for job in jobs for cell in job.cells)
        n_runs = sum(len(task.trials) for task in tasks)
        print(f"{n_known} cells known; {n_runs} runs in this round", file=sys.stderr)
        for number, n_run in run_each(run_seed, tasks, workers):
            require_seen(tasks[number], n_run)
        for job in jobs:
            where = folder / job.loaded.scenario.name
            seeds = [read_seed(where, FIRST_SEED + at) for at in range(MOST_SEEDS)]
            for cell in job.cells:
                cell.off = differences(cell, seeds)


def differences(cell: Cell, seeds: list[Any]) -> Floats:
    """Measured less predicted loss, seed by seed, up to the first that was not run to its end."""
    off = []
    for (due, trial), result in zip(cell.drawn, seeds, strict=False):
        if result.twin is None or (trial is not None and trial not in result.quality):
            break
        auc = result.twin.quality.auc
        off.append((auc - result.quality[trial].auc if trial else 0.0) - due)
    return np.array(off)


def ratio_of(cells: list[Cell]) -> tuple[float, float]:
    """Measured over predicted loss, pooled; its error is widened where cells differ by more."""
    known = [cell for cell in cells if len(cell.off) >= 2 and cell.fresh.mean() > 0]
    if not known:
        return np.nan, np.nan
    ratio = np.array([cell.mean / cell.fresh.mean() for cell in known])
    weight = np.array([(cell.fresh.mean() / cell.standard_error) ** 2 for cell in known])
    mean = (ratio * weight).sum() / weight.sum()
    apart = ((ratio - mean) ** 2 * weight).sum() / max(len(known) - 1, 1)
    return float(mean), float(np.sqrt(max(apart, 1.0) / weight.sum()))


def beside_grid(job: Job) -> list[dict[str, Any]]:
    """Every choice beside the cheapest interval of a fine grid that keeps the limit.

    By the curve's upper bound, as the selector has it; by the upper bound of the measured losses;
    and by their mean: the distance to this one is the price of the curve's uncertainty. Measured
    losses are the curve's times the pooled ratio of measured to predicted.
    """
    fresh = fresh_of(job, N_GRID)
    options = options_of(fresh, [*STRATEGIES])
    evaluator = evaluator_of(replace(fresh, curve=job.curve), limit_of(0.0), options)
    grid = np.geomspace(fresh.useful_h / FINEST, fresh.useful_h, N_INTERVALS, endpoint=False)
    rows = []
    for strategy in STRATEGIES:
        never = [np.inf] if evaluator.options[strategy].n_fewest == 0 else []
        evaluated = evaluator.evaluate(strategy, [*grid.tolist(), *never])
        cells = [one for one in job.cells if one.strategy == strategy and one.policy]
        ratio, error = ratio_of(cells)
        surely = ratio + float(stats.norm.ppf(CONFIDENCE)) * error
        for cell in cells:
            (chosen,) = evaluator.evaluate(strategy, [cell.policy.interval_h])
            bound, overhead = limit_of(cell.limit).bound, chosen.cost_fraction
            same, as_measured, known = (
                cheapest(one for one in evaluated if loss_of(one) <= cell.limit)
                for loss_of in (
                    lambda one, bound=bound: bound(one.lost),
                    lambda one, surely=surely: one.lost.mean().mean * surely,
                    lambda one, ratio=ratio: one.lost.mean().mean * ratio,
                )
            )
            row = {"scenario": cell.scenario, "strategy": strategy, "limit": cell.limit}
            row |= {"chosen": point(chosen), "best_of_same_risk": same}
            row |= {"best_of_same_risk_as_measured": as_measured, "best_with_loss_known": known}
            row["chosen_over_best"] = same and finite_or_none(overhead / same["overhead"])
            row["price_of_uncertainty"] = known and finite_or_none(1 - known["overhead"] / overhead)
            rows.append(row)
    return rows


def cheapest(evaluated: Iterable[Evaluated]) -> dict[str, Any] | None:
    within = [one for one in evaluated if one.finished]
    return point(min(within, key=lambda one: one.cost_fraction)) if within else None


def point(one: Evaluated) -> dict[str, Any]:
    return {"saves": one.n_saves, "overhead": one.cost_fraction}


def summary(jobs: list[Job], folder: Path, command: str) -> dict[str, Any]:
    """Every cell, the verdict, and what made them."""
    cells = [row_of(job, cell) for job in jobs for cell in job.cells]
    measured = [one for one in cells if one["measured"] is not None]
    n_below = sum(one["below_limit"] for one in measured)
    used = sum(one["measured_over_limit"] for one in measured) / max(len(measured), 1)
    enough = len(measured) == len(cells) and n_below >= LEAST_KEPT * len(cells)
    choices = [row for job in jobs for row in beside_grid(job)]
    folders = [folder / job.loaded.scenario.name for job in jobs]
    runs = [read_seed(one, FIRST_SEED + at) for one in folders for at in range(MOST_SEEDS)]
    return {
        "command": command,
        "verdict": {
            "cells": len(cells),
            "below_limit": n_below,
            "mean_measured_over_limit": used,
            "known_to_a_tenth": sum(one.known for job in jobs for one in job.cells),
            "kept": enough and used >= LEAST_USED,
        },
        "cells": cells,
        "exhaustive_search": {
            "near_enough": NEAR_ENOUGH,
            "within": sum((row["chosen_over_best"] or np.inf) <= NEAR_ENOUGH for row in choices),
            "cells": choices,
        },
        "manifest": {
            "cprsim": cprsim.__version__,
            "commit": git_state(),
            "blas": description(),
            "confidence": CONFIDENCE,
            "seeds_of_training": f"{FIRST_SEED} on",
            "seed_of_failures": FRESH_SEED,
            "histories_simulated": N_HISTORIES,
            "n_runs": sum(len(one.quality) + (one.twin is not None) for one in runs),
            "cpu_minutes": round(sum(one.cpu_s for one in runs) / 60, 1),
        },
    }


def row_of(job: Job, cell: Cell) -> dict[str, Any]:
    interval_h = np.nan if cell.policy is None else cell.policy.interval_h
    numbers = {
        "limit": cell.limit,
        "interval_h": interval_h,
        "saves": job.experiment.useful_h // interval_h,
        "predicted": cell.predicted,
        "held": cell.held,
        "measured": cell.mean,
        "standard_error": cell.standard_error,
        "predicted_on_fresh_failures": cell.fresh.mean() if cell.drawn else np.nan,
        "measured_over_limit": cell.mean / cell.limit,
    }
    return {
        "scenario": cell.scenario,
        "strategy": cell.strategy,
        **{name: finite_or_none(float(value)) for name, value in numbers.items()},
        "runs": len(cell.off),
        "below_limit": cell.mean <= cell.limit,
    }


CELLS = {  # heading: key, form
    "T_save [h]": ("interval_h", "{:.2f}"),
    "predicted": ("predicted", "{:.5f}"),
    "measured": ("measured", "{:.5f}"),
    "±": ("standard_error", "{:.5f}"),
    "runs": ("runs", "{}"),
    "over limit": ("measured_over_limit", "{:.2f}"),
}
POINT = "{0[overhead]:.2%} ({0[saves]})"
CHOICES = {
    "chosen": ("chosen", POINT),
    "same risk": ("best_of_same_risk", POINT),
    "chosen over it": ("chosen_over_best", "{:.3f}"),
    "same, as measured": ("best_of_same_risk_as_measured", POINT),
    "loss known": ("best_with_loss_known", POINT),
    "price of doubt": ("price_of_uncertainty", "{:.0%}"),
}


def cells_text(document: dict[str, Any]) -> str:
    """A row per cell, and the verdict."""
    verdict = document["verdict"]
    return (
        f"{table(document['cells'], CELLS)}\n\n"
        f"{verdict['below_limit']} of {verdict['cells']} cells are below their limit; measured "
        f"over limit is {verdict['mean_measured_over_limit']:.2f} in the mean: the promise is "
        f"{'kept' if verdict['kept'] else 'NOT kept'}."
    )


def choices_text(document: dict[str, Any]) -> str:
    """A row per cell: overheads (saves) of the choice and of the best on a fine grid."""
    found = document["exhaustive_search"]
    return (
        f"Overhead, share of useful time (saves)\n\n{table(found['cells'], CHOICES)}\n\n"
        f"{found['within']} of {len(found['cells'])} choices cost at most {found['near_enough']} "
        "times the cheapest within the limit on a fine grid of intervals."
    )


def table(rows: list[dict[str, Any]], columns: dict[str, tuple[str, str]]) -> str:
    every = {"limit of AUC": ("limit", "{:.5f}"), **columns}
    names = pd.DataFrame(rows)[["scenario", "strategy"]]
    for heading, (key, form) in every.items():
        names[heading] = [
            NO_NUMBER if row.get(key) is None else form.format(row[key]) for row in rows
        ]
    return names.to_string(index=False)


def own_job(folder: Path, n_workers: int | None) -> Job:
    """The PyTorch model of examples/, with a curve measured as users do."""
    path = folder / "two_tower.json"
    if not path.exists():
        cprsim.measure(OWN_MODEL, OWN_SETS, seeds=N_SEEDS_OWN, workers=n_workers, file=path)
    loaded = load_scenario(Path(OWN_MODEL), [*OWN_SETS, f"accuracy.curve={path}"])
    return job_of(loaded, read_curve(path), N_LIMITS_OWN)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--torch", action="store_true", help="the PyTorch model of examples/")
    arguments.add_argument("--folder", type=Path, help="default: results/promise[-torch]")
    arguments.add_argument("--workers", type=int, default=None)
    arguments.add_argument("--backend", choices=BACKENDS, default="local")
    arguments.add_argument("--address", help="of the scheduler of a dask cluster")
    arguments.add_argument("--budget-min", type=float, default=None)
    arguments.add_argument("--show", action="store_true", help="only show the kept summary")
    asked = arguments.parse_args()
    name = "promise-torch" if asked.torch else "promise"
    folder = (asked.folder or ROOT / "results" / name).absolute()
    if asked.show:
        document = json.loads((folder / "summary.json").read_text("utf-8"))
        print(cells_text(document), choices_text(document), sep="\n\n")
        return
    until = time.time() + 60 * (asked.budget_min or (600 if asked.torch else 90))
    print("selecting intervals, simulating fresh histories", file=sys.stderr)
    if asked.torch:
        os.chdir(ROOT / "examples")  # the folder of the trainer's module, for workers too
        jobs, runs = [own_job(folder, asked.workers)], folder / "runs"
    else:
        scenarios = [load_scenario(ROOT / "scenarios" / f"{one}.yaml") for one in SCENARIOS]
        jobs, runs = [job_of(one, chosen_curve(one)) for one in scenarios], folder
    measure(jobs, runs, Workers(asked.workers, asked.backend, asked.address), until)
    document = summary(jobs, runs, f"make {name}")
    write_whole(folder / "summary.json", json.dumps(document, indent=1) + "\n")
    print(cells_text(document), choices_text(document), sep="\n\n")


if __name__ == "__main__":
    main()
