"""Real clicks: the DLRM beside logistic regression, on a log in Criteo's format.

Both see the same features: a row per frequent category value, standardised logarithms of the
integers; logistic regression also a flag where an integer is missing. Everything is tuned on the
sixth seventh of the log, trained on the five before; then trained on six, and tested once on the
seventh. Prints numbers only; no click leaves the file that it came in.

    CPRSIM_DATA=... python benchmarks/criteo.py     # reads $CPRSIM_DATA/ctr/criteo-kaggle-137k
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from cprsim.kernel.clicks.criteo import read_log
from cprsim.kernel.clicks.encoding import vocabulary_encoding
from cprsim.kernel.clicks.records import Clicks, RawClicks
from cprsim.kernel.metrics import Quality, auc, quality
from cprsim.kernel.shape import ModelShape
from cprsim.kernel.training import ProxyTrainer, TrainingPlan

LOG = Path("ctr/criteo-kaggle-137k/train.tsv.xz")
SEEDS = (1, 2, 3, 4, 5)
RATES = (0.01, 0.02, 0.03)
LEAST_COUNTS = (2, 3, 5)
PENALTIES = (0.02, 0.05, 0.1, 0.2)  # scikit-learn's C
N_RESAMPLES = 1000
SINGLE_RUN = Quality(auc=0.755, log_loss=0.492)  # what one run has to reach


@dataclass(frozen=True)
class Days:
    """The log cut by time: what is trained on, and what it is judged by."""

    train: Clicks
    judged: Clicks
    missing: tuple[np.ndarray, np.ndarray]  # flags of the integers, of both

    @classmethod
    def cut(cls, raw: RawClicks, at: int, end: int, least_count: int) -> Days:
        """Train on the first `at` lines, judge by those up to `end`."""
        encoding = vocabulary_encoding(raw[:at], least_count)
        flags = np.isnan(raw.integers)
        train, judged = encoding.encode(raw[:at]), encoding.encode(raw[at:end])
        return cls(train, judged, (flags[:at], flags[at:end]))


def dlrm(days: Days, rate: float, seed: int) -> np.ndarray:
    """Logits (n,) of the judged clicks, after one pass of Adagrad."""
    plan = TrainingPlan(batch=128, rate=rate, optimizer="adagrad", seed=seed)
    trainer = ProxyTrainer(ModelShape(days.train.tables), days.train, plan)
    trainer.initialise()
    trainer.run()
    return trainer.predict(days.judged)


def one_hot(clicks: Clicks, missing: np.ndarray) -> sparse.csr_matrix:
    """Features of logistic regression (n, rows + 26)."""
    n, n_tables = clicks.rows.shape
    starts = np.arange(0, n * n_tables + 1, n_tables)
    ones = np.ones(n * n_tables, np.float32)
    rows = (ones, clicks.rows.reshape(-1), starts)
    categories = sparse.csr_matrix(rows, shape=(n, clicks.tables.n_rows))
    return sparse.hstack([categories, clicks.integers, missing.astype(np.float32)], format="csr")


def logistic_regression(days: Days, penalty: float) -> np.ndarray:
    """Logits (n,) of the judged clicks."""
    fitted = LogisticRegression(C=penalty, solver="liblinear", random_state=1)
    fitted.fit(one_hot(days.train, days.missing[0]), days.train.label)
    return fitted.decision_function(one_hot(days.judged, days.missing[1]))


def mean_prediction(logits: list[np.ndarray]) -> np.ndarray:
    """Log odds (n,) of the mean probability of several models."""
    p = np.mean([1 / (1 + np.exp(-z.astype(np.float64))) for z in logits], axis=0)
    return np.log(p / (1 - p))


def bootstrap(label: np.ndarray, ahead: np.ndarray, behind: np.ndarray) -> tuple[float, float]:
    """95 % interval of AUC(ahead) - AUC(behind) over resampled clicks, the same for both."""
    rng = np.random.default_rng(1)
    differences = []
    for _ in range(N_RESAMPLES):
        some = rng.integers(0, len(label), len(label))
        differences.append(auc(label[some], ahead[some]) - auc(label[some], behind[some]))
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def show(name: str, value: Quality) -> None:
    print(f"  {name:44} AUC {value.auc:.4f}   log-loss {value.log_loss:.4f}", flush=True)


def tune(raw: RawClicks, five: int, six: int) -> tuple[tuple[int, float], tuple[int, float]]:
    """(least count, rate) of the DLRM and (least count, C), both by log-loss on the sixth day."""
    print("tuned on the sixth day:")
    ours, theirs = {}, {}
    for least_count in LEAST_COUNTS:
        days = Days.cut(raw, five, six, least_count)
        for rate in RATES:
            result = quality(days.judged.label, dlrm(days, rate, seed=1))
            ours[least_count, rate] = result.log_loss
            show(f"DLRM, least count {least_count}, rate {rate:g}", result)
        for penalty in PENALTIES:
            result = quality(days.judged.label, logistic_regression(days, penalty))
            theirs[least_count, penalty] = result.log_loss
            show(f"logistic regression, least count {least_count}, C {penalty:g}", result)
    return min(ours, key=ours.__getitem__), min(theirs, key=theirs.__getitem__)


def main() -> None:
    if "CPRSIM_DATA" not in os.environ:
        sys.exit(f"CPRSIM_DATA is not set: the folder that holds {LOG}")
    raw, _ = read_log(Path(os.environ["CPRSIM_DATA"]) / LOG)
    five, six = int(len(raw) * 5 / 7), int(len(raw) * 6 / 7)
    (our_count, rate), (their_count, penalty) = tune(raw, five, six)

    print("tested on the seventh, once:")
    days = Days.cut(raw, six, len(raw), our_count)
    label = days.judged.label
    logits = []
    for seed in SEEDS:
        start = time.process_time()
        logits.append(dlrm(days, rate, seed))
        seconds = time.process_time() - start
        show(f"DLRM, seed {seed} ({seconds:.1f} CPU seconds)", quality(label, logits[-1]))
    linear = logistic_regression(Days.cut(raw, six, len(raw), their_count), penalty)
    mean = mean_prediction(logits)
    singles, beside = [quality(label, z) for z in logits], quality(label, linear)
    show(f"logistic regression, C {penalty:g}", beside)
    show(f"DLRM, mean of {len(SEEDS)} seeds' predictions", quality(label, mean))
    low, high = bootstrap(label, mean, linear)
    ahead = auc(label, mean) - beside.auc
    print(
        f"mean of seeds ahead by {ahead:+.4f} AUC, 95 % paired bootstrap [{low:+.4f}, {high:+.4f}]"
    )
    worst = min(single.auc for single in singles), max(single.log_loss for single in singles)
    print(
        f"each single run: AUC at least {worst[0]:.4f} (wanted {SINGLE_RUN.auc}), log-loss at most "
        f"{worst[1]:.4f} (wanted {SINGLE_RUN.log_loss}), behind logistic regression by at most "
        f"{beside.auc - worst[0]:.4f} (wanted 0.005)"
    )


if __name__ == "__main__":
    main()
