"""Plan a staleness curve: seeds for a precision, losses of longer jobs, runs on another cluster.

    python plan_a_measurement.py seeds PILOT.json --loss 0.0002
    python plan_a_measurement.py length SHORT.json MIDDLE.json LONG.json --samples 4e9
    python plan_a_measurement.py plan PLAN.csv --seeds 8 --shards 8
    python plan_a_measurement.py curve PLAN.csv CURVE.csv

PILOT, SHORT, MIDDLE and LONG are curves of `cprsim measure`, those of `length` on the same seeds.
Each row of a plan is one run, whose results go into the columns `auc` and `twin_auc` (the same
run without failures); `cprsim.torch.FailureInjector` makes its failures in a loop of your own.
CURVE.csv is a curve for `accuracy: {curve: CURVE.csv}`.
"""

from __future__ import annotations

import argparse
from math import sqrt

import numpy as np
import pandas as pd
from scipy import stats

import cprsim

AT_PLS = 0.01  # portion of lost samples whose loss `seeds` is about
LEVEL = 0.95  # of the one-sided test, as in `cprsim select`
FEWEST_SEEDS = 8  # of a curve for use


def power(n_seeds: int, loss: float, spread: float) -> float:
    """Probability that the mean over the seeds of a true loss is distinguished from 0."""
    threshold = stats.t.ppf(LEVEL, n_seeds - 1)
    return float(stats.nct.sf(threshold, n_seeds - 1, loss * sqrt(n_seeds) / spread))


def seeds(pilot: str, loss: float) -> None:
    """Say how many seeds distinguish a loss of AUC from 0, by the scatter of a pilot's seeds."""
    frames = cprsim.read(pilot).frames
    n = int(frames["strategies"].query("strategy == 'partial' and metric == 'auc'").n_seeds.iloc[0])
    at = f"strategy == 'partial' and metric == 'auc' and pls == {AT_PLS}"
    found = frames["losses"].query(at).iloc[0]
    error = (found.loss_high - found.loss) / stats.t.ppf(0.975, n - 1)
    spread = error * sqrt(n)
    print(f"Losing {AT_PLS:.0%} of the samples: seeds scatter by {spread:.2g} of AUC.")
    for wanted in (0.8, 0.9, 0.95):
        enough = (k for k in range(FEWEST_SEEDS, 10_000) if power(k, loss, spread) >= wanted)
        print(f"{next(enough, 'more than 10,000')} seeds find {loss:g} in {wanted:.0%} of cases.")


def length(curves: list[str], n_samples: float) -> None:
    """Say by what factor losses grow at another length, and whether the power law holds."""
    values = [cprsim.read(path).values for path in curves]
    at = np.log([one["manifest"]["n_samples"] for one in values])
    slopes = np.array([one["checks"]["auc"]["slopes"]["partial"]["by_seed"] for one in values])
    n = slopes.shape[1]
    without = (slopes.sum(axis=1, keepdims=True) - slopes) / (n - 1)  # each seed left out
    logs, mean = np.log(without), np.log(slopes.mean(axis=1))
    near, far = np.diff(at)
    off = [one[2] - one[1] - far / near * (one[1] - one[0]) for one in (mean, logs)]
    error = sqrt((n - 1) / n * float(np.square(off[1] - off[1].mean()).sum()))
    half = stats.t.ppf(0.975, n - 1) * error
    low, ratio, high = np.exp([off[0] - half, off[0], off[0] + half])
    print(f"The longest over the law of the shorter two: {ratio:.2f} ({low:.2f} to {high:.2f}).")
    if not low <= 1 <= high or high > 2 * ratio:
        print("The power law is not confirmed: measure longer runs.")
        return
    exponent = np.polyfit(at, mean, 1)[0]
    factor = float(np.exp(exponent * (np.log(n_samples) - at[-1])))
    print(f"Losses at {n_samples:,.0f} samples are {factor:.2f} times those of {curves[-1]}.")


def plan(path: str, n_seeds: int, n_shards: int) -> None:
    """Write runs of 1 to 4 failures each, at random times, of random shards, whole saves."""
    rng, rows = np.random.default_rng(1), []
    for seed in range(1, n_seeds + 1):
        for n_failures in (1, 1, 1, 2, 2, 4):
            interval = 0.05 * 12 ** rng.random()  # 5 % to 60 % of the run
            at = np.sort(rng.random(n_failures))
            shards = rng.integers(n_shards, size=n_failures)
            lost, last = 0.0, dict[int, float]()
            for when, shard in zip(at, shards, strict=True):
                lost += when - max(when // interval * interval, last.get(shard, 0.0))
                last[shard] = when
            rows.append(
                {"seed": seed, "interval": interval, "failed_at": " ".join(map(str, at)),
                 "shards": " ".join(map(str, shards)), "pls": lost / n_shards,
                 "auc": None, "twin_auc": None}
            )  # fmt: skip
    pd.DataFrame(rows).to_csv(path, index=False)


def curve(path: str, to: str) -> None:
    """Fit a line through 0 to the results of each seed, and write the mean of the lines."""
    runs = pd.read_csv(path).dropna(subset=["auc", "twin_auc"])
    runs["product"] = (runs.twin_auc - runs.auc) * runs.pls
    runs["square"] = runs.pls**2
    sums = runs.groupby("seed")[["product", "square"]].sum()
    slope, most = sums["product"] / sums["square"], runs.pls.max()
    row = {"strategy": "partial", "metric": "auc", "pls": most, "loss": most * slope.mean(),
           "standard_error": most * slope.sem()}  # fmt: skip
    pd.DataFrame([row]).to_csv(to, index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["seeds", "length", "plan", "curve"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--loss", type=float, default=2e-4, help="of AUC, to find")
    parser.add_argument("--samples", type=float, help="that the job trains on")
    parser.add_argument("--seeds", type=int, default=FEWEST_SEEDS)
    parser.add_argument("--shards", type=int, default=8)
    said = parser.parse_args()
    if said.what == "seeds":
        seeds(said.files[0], said.loss)
    elif said.what == "length":
        length(said.files, said.samples)
    elif said.what == "plan":
        plan(said.files[0], said.seeds, said.shards)
    else:
        curve(*said.files)
