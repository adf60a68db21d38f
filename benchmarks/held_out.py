"""Whether a curve predicts runs that took no part in its fit: three models, 24 cells each.

    make held-out       about 25 CPU minutes; killed, it goes on where it was

A cell is a kind of history (how many failures of how many of 8 servers, at what save interval)
under one strategy, run on 40 fresh seeds at times and on servers drawn anew for each. The curve of
16 other seeds predicts the mean loss of the same histories. A cell is held where the 95 % interval
of measured less predicted, both errors counted, holds 0. Runs and summary go to results/held-out.
The PyTorch model needs `pip install 'cprsim[torch]'`, real clicks a folder named by CPRSIM_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from cprsim.accuracy.curve import jackknife_error
from cprsim.failures.sources import stream
from cprsim.files import write_whole
from cprsim.job.losses import ALWAYS, Metric
from cprsim.job.records import pooled
from cprsim.scenario.reading import load_scenario
from cprsim.training.kernel.blas import one_thread
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial
from cprsim.training.measuring.design import Design
from cprsim.training.measuring.fit import fit, predicted
from cprsim.training.measuring.observed import observed
from cprsim.training.measuring.runs import SeedRuns, read_seed, run_seed

ROOT = Path(__file__).resolve().parent.parent
REAL = "kernel.clicks.file=${CPRSIM_DATA}/ctr/criteo-kaggle-137k/train.tsv.xz"
MODELS: dict[str, tuple[str, list[str]]] = {
    "two towers in PyTorch": (
        "examples/two_tower.yaml",
        ["kernel.options={samples: 32000, test: 20000, users: 60, items: 50, batch: 128}"],
    ),
    "DLRM, generated clicks": (
        "scenarios/criteo-kaggle.yaml",
        ["kernel.samples=100000", "kernel.most_rows=500", "kernel.batch=64", "kernel.rate=0.5"],
    ),
    "DLRM, real clicks": (
        "scenarios/criteo-kaggle.yaml",
        ["kernel.optimizer=adagrad", "kernel.rate=0.02", REAL],
    ),
}
STRATEGIES = ("partial", "scar", "mfu", "ssu")
KINDS = ((1, 1, 0.4), (1, 3, 0.2), (2, 4, 0.1), (3, 1, 0.3), (5, 2, 0.15), (8, 4, 0.25))
N_SERVERS, N_CURVE, N_FRESH, FIRST_FRESH = 8, 16, 40, 1001


def cells(seed: int) -> list[Trial]:
    """The trials of a fresh seed: each kind under each strategy, the same failures for all."""
    rng = stream(seed, 0, "held-out")
    found = []
    for n_failures, n_servers, interval in KINDS:
        at = np.sort(rng.random(n_failures)).tolist()
        servers = [sorted(rng.choice(N_SERVERS, n_servers, replace=False).tolist()) for _ in at]
        failures = tuple(map(ShardFailure, at, map(tuple, servers)))
        found += [Trial(Saving(strategy, interval), failures) for strategy in STRATEGIES]
    return found


def run(name: str, folder: Path, part: str) -> None:
    """Run what is missing of a model: its `fresh` seeds, or the seeds of its `curve`."""
    path, overrides = MODELS[name]
    os.chdir(ROOT / "examples")  # where the PyTorch model's module lies
    loaded = load_scenario(ROOT / path, overrides)
    first, n = (FIRST_FRESH, N_FRESH) if part == "fresh" else (1, N_CURVE)
    for seed in range(first, first + n):
        trials = cells(seed) if part == "fresh" else Design(STRATEGIES).trials(seed, N_SERVERS)
        task = SeedRuns(loaded, seed, tuple(trials), folder, count_bytes=False, here=Path.cwd())
        if n_run := run_seed(task):
            print(f"{name}, seed {seed}: {n_run} runs", flush=True)


def judged(folder: Path, metric: Metric) -> list[dict[str, Any]]:
    """An entry per cell: measured and predicted mean loss, and whether they agree."""
    curve = observed([read_seed(folder, seed) for seed in range(1, N_CURVE + 1)], N_SERVERS)
    fresh = range(FIRST_FRESH, FIRST_FRESH + N_FRESH)
    seen = observed([read_seed(folder, seed) for seed in fresh], N_SERVERS)
    with one_thread():
        fitted = fit(curve, metric)
    by_all, *by_each = (predicted(seen, parts) for parts in (fitted.parts, *fitted.without))
    found = []
    for n_failures, n_servers, every in KINDS:
        for strategy in STRATEGIES:
            saving = Saving(strategy, every)
            ours = np.array(
                [
                    (one.saving, len(one.failures), len(one.failures[0].servers))
                    == (saving, n_failures, n_servers)
                    for one in seen.trials["trial"]
                ]
            )
            loss = seen.loss[metric][ours]
            of_curve = float(jackknife_error(np.array([one[ours].mean() for one in by_each])))
            chance = float((loss - by_all[ours]).std(ddof=1)) / np.sqrt(len(loss))
            off = float(loss.mean() - by_all[ours].mean())
            error, degrees = pooled((of_curve**2, len(curve.seeds) - 1), (chance**2, len(loss) - 1))
            found.append(
                {
                    "strategy": strategy,
                    "failures": n_failures,
                    "servers": n_servers,
                    "interval": every,
                    "seeds_of_curve": len(curve.seeds),
                    "seeds": len(loss),
                    "measured": float(loss.mean()),
                    "noise": float(loss.std(ddof=1)) / float(np.sqrt(len(loss))),
                    "predicted": float(by_all[ours].mean()),
                    "error_of_prediction": of_curve,
                    "z": float(off / error),
                    "held": bool(abs(off) <= special.stdtrit(degrees, 0.975) * error),
                }
            )
    return found


def show(models: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    """A row per model and metric, then measured and predicted AUC lost of each cell."""
    every = pd.concat(
        pd.DataFrame(cells).assign(model=name, metric=metric)
        for name, metrics in models.items()
        for metric, cells in metrics.items()
    )
    told = every[every["measured"] > 2 * every["noise"]]
    off = np.log(told["predicted"].clip(lower=1e-9) / told["measured"])
    by = ["model", "metric"]
    rows = every.groupby(by, sort=False).agg(
        seeds_of_curve=("seeds_of_curve", "first"), seeds=("seeds", "first"),
        cells=("held", "size"), held=("held", "sum"),
        rms_z=("z", lambda z: np.sqrt((z**2).mean())),
    )  # fmt: skip
    rows["worst_ratio"] = np.exp(
        off.groupby([told[one] for one in by]).agg(lambda log: log.iloc[log.abs().argmax()])
    )
    print(rows.round(2).to_string(), "\n\nAUC lost in 0.0001, measured / predicted; ! is not held")
    auc = every[every["metric"] == "auc"].copy()
    auc["shown"] = [
        f"{1e4 * m:.1f}±{1e4 * n:.1f}/{1e4 * p:.1f}{'' if held else '!'}"
        for m, n, p, held in auc[["measured", "noise", "predicted", "held"]].itertuples(index=False)
    ]
    kind = ["model", "n", "of 8", "every"]
    auc = auc.rename(columns={"failures": "n", "servers": "of 8", "interval": "every"})
    print(auc.pivot(index=kind, columns="strategy", values="shown")[list(STRATEGIES)].to_string())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--folder", type=Path, default=ROOT / "results" / "held-out")
    arguments.add_argument("--show", action="store_true", help="only show the kept summary")
    asked = arguments.parse_args()
    folder = asked.folder.absolute()
    for name in () if asked.show else MODELS:
        runs = folder / "runs" / name.replace(" ", "-").replace(",", "")
        for part in ("curve", "fresh"):
            run(name, runs, part)
        models = json.loads((folder / "summary.json").read_text("utf-8"))
        models[name] = {metric.value: judged(runs, metric) for metric in ALWAYS}
        write_whole(folder / "summary.json", json.dumps(models, indent=1) + "\n")
    show(json.loads((folder / "summary.json").read_text("utf-8")))


if __name__ == "__main__":
    main()
