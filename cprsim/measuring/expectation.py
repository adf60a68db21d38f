"""What a measurement can be expected to give, from one run without failures before it.

Its AUC stands beside what costs nothing to reach: the base rate, whose AUC is 1/2, and a logistic
regression on the same clicks. What hardly learned has little to lose, and its curve would say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import optimize, sparse, special, stats

from cprsim.kernel.clicks.records import Clicks
from cprsim.kernel.metrics import Quality, quality
from cprsim.kernel.shared_run import Baseline, Setting, run_trials
from cprsim.records import HIGH, Floats
from cprsim.staleness import FEWEST_SEEDS_TO_USE

BASE_AUC = 0.5  # of the base rate
LEAST_GAIN = 0.05  # of AUC over the base rate: below it a model has hardly learned
LEAST_SHARE = 0.5  # of what logistic regression gains
FEW_CLICKS = 1000  # in the test: below it a loss of AUC drowns in what single clicks do
RIDGE = 1.0  # of logistic regression: its weights are standard normal beforehand
MOST_TRAINED = 300_000  # clicks that it is trained on, the last ones
MOST_STEPS = 100
SEED_SPREAD = 0.3  # of a loss, from seed to seed: 0.2 to 0.25 in measurements so far, and W's error
TRIAL_NOISE = 3e-4  # of the AUC of one run against its twin, and the clicks that it was seen at
NOISE_CLICKS = 11_000
TYPICAL_LOSS = 2e-3  # of one of `N_TRIALS` trials, likewise
N_TRIALS = 10  # of plain partial recovery in each seed


@dataclass(frozen=True, slots=True)
class Expected:
    """One run without failures beside its baselines, and what so many seeds will bring."""

    auc: float
    log_loss: float
    base_rate_auc: float
    base_rate_log_loss: float | None  # None, as below: not known of a trainer of one's own
    logistic_auc: float | None
    logistic_log_loss: float | None
    n_test: int | None
    n_test_clicks: int | None
    noise: float = 0.0  # of AUC, between runs that should be equal

    @property
    def hardly_learned(self) -> bool:
        """Whether there is little accuracy that stale shards could take."""
        gain = self.auc - self.base_rate_auc
        easy = 0.0 if self.logistic_auc is None else self.logistic_auc - self.base_rate_auc
        return gain < max(LEAST_GAIN, LEAST_SHARE * easy)

    @property
    def few_clicks(self) -> bool:
        """Whether the test is too small for losses as small as those of stale shards."""
        return self.n_test_clicks is not None and self.n_test_clicks < FEW_CLICKS

    def relative_error(self, n_seeds: int) -> float:
        """Standard error of a predicted loss over the loss, roughly, under plain recovery.

        Assumes what measurements so far showed: losses differ by a quarter from seed to seed, and
        one trial of 0.002 of AUC is off by 0.0003 where 11,000 clicks test it, by more in
        proportion to the root of their number where fewer do.
        """
        n_clicks = NOISE_CLICKS if self.n_test_clicks is None else max(self.n_test_clicks, 1)
        noise = float(np.hypot(TRIAL_NOISE * sqrt(NOISE_CLICKS / n_clicks), self.noise))
        return float(np.hypot(SEED_SPREAD, noise / TYPICAL_LOSS / sqrt(N_TRIALS)) / sqrt(n_seeds))

    def half_width(self, n_seeds: int) -> float:
        """Half-width of the 95 % interval of a predicted loss over the loss, likewise."""
        return float(stats.t.ppf(HIGH, n_seeds - 1)) * self.relative_error(n_seeds)

    def seeds_for(self, precision: float) -> int:
        """Seeds whose standard error is that share of the loss, and that suffice for use."""
        return max(FEWEST_SEEDS_TO_USE, int(np.ceil((self.relative_error(1) / precision) ** 2)))


def expect(setting: Setting) -> Expected:
    """Train one run without failures and its baselines."""
    twin = next(one for one in run_trials(setting, [], []) if isinstance(one, Baseline))
    base, simple = base_rate(setting.train, setting.test), logistic(setting.train, setting.test)
    return Expected(
        auc=twin.quality.auc,
        log_loss=twin.quality.log_loss,
        base_rate_auc=base.auc,
        base_rate_log_loss=base.log_loss,
        logistic_auc=simple.auc,
        logistic_log_loss=simple.log_loss,
        n_test=len(setting.test),
        n_test_clicks=int(setting.test.label.sum()),
    )


def base_rate(train: Clicks, test: Clicks) -> Quality:
    """What the share of clicks alone predicts."""
    logit = special.logit(float(train.label.mean()))
    return Quality(BASE_AUC, quality(test.label, np.full(len(test), logit)).log_loss)


def logistic(train: Clicks, test: Clicks) -> Quality:
    """Logistic regression on rows and integers, with a ridge, trained by L-BFGS."""
    recent = train[max(len(train) - MOST_TRAINED, 0) :]
    features, label = _features(recent), np.asarray(recent.label, float)

    def cost(weights: Floats) -> tuple[float, Floats]:
        logit = features @ weights
        loss = float(np.logaddexp(0.0, logit).sum() - label @ logit)
        slope = features.T @ (special.expit(logit) - label)
        return loss + 0.5 * RIDGE * float(weights @ weights), slope + RIDGE * weights

    start = np.zeros(features.shape[1])
    found = optimize.minimize(
        cost, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS}
    )
    return quality(test.label, _features(test) @ found.x)


def _features(clicks: Clicks) -> sparse.csr_matrix:
    """(n, n_rows + 13 + 1): one-hot rows, integers, and a constant."""
    n, n_tables = clicks.rows.shape
    starts = np.arange(0, n * n_tables + 1, n_tables)
    one_hot = sparse.csr_matrix(
        (np.ones(n * n_tables), clicks.rows.ravel(), starts), shape=(n, clicks.tables.n_rows)
    )
    dense = np.column_stack([clicks.integers, np.ones(n)])
    return sparse.csr_matrix(sparse.hstack([one_hot, sparse.csr_matrix(dense)]))
