"""Expected result of a measurement, from one run without failures before it.

Its AUC is compared with that of two simple predictors: the base rate, whose AUC is 1/2, and a
logistic regression on the same clicks. A model that hardly learned has little accuracy to lose.

A user's trainer has to follow the protocol: its run continues from its copied state a second time,
and is made and trained once more from the start. Equal runs that do not end equal are noise in
every loss that is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy import optimize, sparse, special, stats

from cprsim.accuracy.curve import FEWEST_SEEDS_TO_USE
from cprsim.errors import ParameterError
from cprsim.job.records import HIGH, Floats, Ints
from cprsim.training.kernel.clicks.records import Clicks
from cprsim.training.kernel.metrics import Quality, quality
from cprsim.training.measuring.own_model import OwnModel, quality_of
from cprsim.training.measuring.protocol import OwnTable, Predictions
from cprsim.training.proxy_model import ProxyModel

BASE_AUC = 0.5  # of the base rate
LEAST_GAIN = 0.05  # of AUC over the base rate: below it a model has hardly learned
LEAST_SHARE = 0.5  # of what logistic regression gains
FEW_CLICKS = 1000  # in the test: below it a loss of AUC drowns in what single clicks do
RIDGE = 1.0  # of logistic regression: its weights are standard normal beforehand
MOST_TRAINED = 300_000  # clicks that it is trained on, the last ones
MOST_ITERATIONS = 100
SEED_SPREAD = 0.3  # of a loss, from seed to seed: 0.2 to 0.25 in measurements so far, and W's error
TRIAL_NOISE = 3e-4  # of the AUC of one run against its twin, and the clicks that it was seen at
NOISE_CLICKS = 11_000
TYPICAL_LOSS = 2e-3  # of one of `N_TRIALS` trials, likewise
N_TRIALS = 10  # of plain partial recovery in each seed
N_TRIED = 8  # rows of each table that are written and read back
ROWS_COMPARED_AT_ONCE = 1 << 16  # rows compared at once


@dataclass(frozen=True, slots=True)
class Expected:
    """One run without failures, compared with logistic regression, and the precision to expect."""

    auc: float
    log_loss: float
    logistic_auc: float | None = None  # None, as below: unknown for a user's trainer
    n_test_clicks: int | None = None
    noise: float = 0.0  # of AUC, between runs that should be equal
    log_loss_noise: float = 0.0  # likewise

    @property
    def hardly_learned(self) -> bool:
        """Whether there is little accuracy that stale shards could take."""
        gain = self.auc - BASE_AUC
        easy = 0.0 if self.logistic_auc is None else self.logistic_auc - BASE_AUC
        return gain < max(LEAST_GAIN, LEAST_SHARE * easy)

    def warnings(self, precision: float) -> Iterator[str]:
        """Reasons against measuring this model."""
        if self.noise or self.log_loss_noise:
            quiet = replace(self, noise=0.0).seeds_for(precision)
            yield (
                f"equal runs do not end equal: AUC differs by {self.noise:.2g}, log-loss by "
                f"{self.log_loss_noise:.2g}. The precision takes about {self.seeds_for(precision)} "
                f"seeds, {quiet} without this noise; deterministic algorithms and seeded loaders "
                "would help"
            )
        if self.hardly_learned:
            simple = self.logistic_auc
            compared = "" if simple is None else f", where logistic regression reaches {simple:.3f}"
            yield (
                f"the model has hardly learned: AUC {self.auc:.3f}{compared}. Its losses say "
                "little of a model that has, and its curve is not fit for use; more "
                "kernel.samples, a higher kernel.rate or a smaller kernel.batch would help"
            )
        if self.n_test_clicks is not None and self.n_test_clicks < FEW_CLICKS:
            yield (
                f"{self.n_test_clicks:,} clicks in the test are few: single clicks move the AUC as "
                "much as stale shards do; more kernel.samples would help"
            )

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


def expect(stand_in: ProxyModel) -> Expected:
    """Train one run without failures, and logistic regression."""
    model = stand_in.trainer()
    model.run()
    twin = model.evaluate()
    simple = logistic(stand_in.train, stand_in.test)
    n_clicks = int(stand_in.test.label.sum())
    return Expected(twin.auc, twin.log_loss, simple.auc, n_clicks)


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
    solution = optimize.minimize(
        cost, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_ITERATIONS}
    )
    return quality(test.label, _features(test) @ solution.x)


def _features(clicks: Clicks) -> sparse.csr_matrix:
    """(n, n_rows + 13 + 1): one-hot rows, integers, and a constant."""
    n, n_tables = clicks.rows.shape
    starts = np.arange(0, n * n_tables + 1, n_tables)
    one_hot = sparse.csr_matrix(
        (np.ones(n * n_tables), clicks.rows.ravel(), starts), shape=(n, clicks.tables.n_rows)
    )
    dense = np.column_stack([clicks.integers, np.ones(n)])
    return sparse.csr_matrix(sparse.hstack([one_hot, sparse.csr_matrix(dense)]))


# --------------------------------------------------------------------------- a user's trainer


def check_trainer(model: OwnModel, again: OwnModel) -> Expected:
    """Try a trainer; `again` is the same, made anew. Noise: the most by which equal runs differ."""
    for name, table in model.trainer.tables.items():
        _require_rows(name, table)
    half = model.on_grid(model.n_samples / 2)
    _require_noted(model, half)
    state = model.state()
    model.run()
    evaluated = model.trainer.evaluate()
    first = quality_of(evaluated)
    model.restore(state)
    model.run()
    forked = model.evaluate()
    again.run()
    second = again.evaluate()
    if first == second != forked:
        raise ParameterError(
            f"the trainer's state is not whole: put back to sample {half} it ends at AUC "
            f"{forked.auc:.6f}, and at {first.auc:.6f} without; `state` has to copy "
            "everything that decides the rest of the run (weights, optimiser, position, randomness)"
        )
    repeated = (forked, second)
    n_clicks = (
        int(np.asarray(evaluated.label).sum()) if isinstance(evaluated, Predictions) else None
    )
    return Expected(
        first.auc,
        first.log_loss,
        n_test_clicks=n_clicks,
        noise=max(abs(quality.auc - first.auc) for quality in repeated),
        log_loss_noise=max(abs(quality.log_loss - first.log_loss) for quality in repeated),
    )


def _require_rows(name: str, table: OwnTable) -> None:
    """Check that rows are read back as they were written, twice."""
    n = min(N_TRIED, table.n_rows)
    rows: Ints = np.unique(np.linspace(0, table.n_rows - 1, n).astype(np.int64))
    before = [np.array(part) for part in table.get_rows(rows)]
    if not before or any(len(part) != len(rows) for part in before):
        shapes = [part.shape for part in before]
        raise ParameterError(f"table {name!r}: get_rows gave {shapes} for {len(rows)} rows")
    written = [part[::-1] + np.ones(1, part.dtype) for part in before]
    table.set_rows(rows, written)
    after = [np.asarray(part) for part in table.get_rows(rows)]
    table.set_rows(rows, before)
    back = [np.asarray(part) for part in table.get_rows(rows)]
    for expected, read in ((written, after), (before, back)):
        if not all(map(np.array_equal, expected, read)):
            raise ParameterError(f"table {name!r}: get_rows does not give what set_rows wrote")


def _require_noted(model: OwnModel, until: int) -> None:
    """Train on, and check that every row that moved was noted."""
    before = model.weights.copy()
    model.run(until)
    for number, name in enumerate(model.trainer.tables):
        of = model.layout.of(number)
        for first in range(of.start, of.stop, ROWS_COMPARED_AT_ONCE):
            rows = np.arange(first, min(first + ROWS_COMPARED_AT_ONCE, of.stop))
            pairs = zip(before.read(rows), model.weights.read(rows), strict=True)
            moved = np.zeros(len(rows), bool)
            for old, new in pairs:
                moved |= (old != new).reshape(len(rows), -1).any(axis=1)
            unnoted = moved & (model.changed[rows] == 0)
            if unnoted.any():
                row = int(rows[unnoted][0]) - of.start
                raise ParameterError(
                    f"table {name!r}: row {row} moved, and no batch noted that it was looked up; "
                    "where a step moves other rows too, `moves_only_accessed` has to be False"
                )
