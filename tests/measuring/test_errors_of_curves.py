"""The error of a curve is that of all that was fitted: weights, phi, slopes and the bend."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cprsim.measuring.checks import AddingUp, AdditivityVerdict, Checks, SeedMean
from cprsim.measuring.curve import response_of, why_unfit
from cprsim.measuring.fit import Fitted, Slopes, fit
from cprsim.measuring.measure import Measured
from cprsim.measuring.observed import Observed, observed
from cprsim.measuring.shape import AT, STALENESS, Noise, Shape, Singles, estimate
from cprsim.present.measure import _all_in_all
from cprsim.records import ShardLoss
from cprsim.staleness import ALWAYS, FEWEST_SEEDS_TO_USE, Metric, Prediction, jackknife_error
from tests.measuring.test_fit import N_SERVERS, made

EARLY = ShardLoss(
    np.array([0]), np.array([0.054]), np.zeros(1, int), np.array([0.05]), np.array([0.05]),
    np.array([0.125]),
)  # fmt: skip


@cache
def seen_of(n_seeds: int, noise: float, checks: bool = False) -> Observed:
    return observed(made(n_seeds, noise=noise, spread=0.2, checks=checks), N_SERVERS)


@cache
def noisy() -> Fitted:
    """Three seeds whose losses drown in noise: nothing can be told of the weights."""
    return fit(seen_of(3, 3e-3), Metric.AUC)


def early_loss(fitted: Fitted, strategy: str = "partial") -> Prediction:
    """Of one server that fails at 5.4 % of the run, never saved."""
    response = response_of(fitted, strategy, 0.4)
    return response.predict_losses(EARLY, np.array([0]), 1.0, np.inf)


def test_weights_are_positive_however_noisy_the_trials() -> None:
    weight = noisy().shape.weight
    assert (weight > 0).all()
    assert weight.max() < 6


def test_weights_stay_near_one_where_the_trials_do_not_tell() -> None:
    assert noisy().shape.weight == pytest.approx(np.ones((len(AT), len(STALENESS))), abs=0.9)


def test_no_loss_of_a_stale_shard_is_nothing_for_sure() -> None:
    for strategy in ("partial", "scar", "mfu+", "round-robin+"):
        lost = early_loss(noisy(), strategy)
        assert lost.loss[0] >= 0
        assert lost.standard_error[0] > 0, strategy


def test_the_error_holds_that_of_the_weights() -> None:
    seen = observed(made(4, noise=1e-3), N_SERVERS)
    free = fit(seen, Metric.AUC)
    told = fit(seen, Metric.AUC, free.shape)  # as if W and phi were known
    assert early_loss(told).loss == pytest.approx(early_loss(free).loss)
    assert early_loss(free).standard_error[0] > 1.5 * early_loss(told).standard_error[0]


def test_every_replicate_leaves_one_seed_out() -> None:
    seen = seen_of(4, 2e-4)
    fitted = fit(seen, Metric.AUC)
    assert len(fitted.replicates) == 4
    for number, one in enumerate(fitted.replicates):
        others = np.delete(np.arange(4), number)
        assert one.slopes.n_seeds == 3
        assert one.slopes.by_seed == pytest.approx(fitted.slopes.by_seed[others], rel=0.5)
        assert not np.array_equal(one.shape.weight, fitted.shape.weight)
    without = seen.without(1)
    assert without.seeds == (0, 2, 3)
    assert [t for t, g in zip(seen.trials, seen.seed, strict=True) if g != 1] == list(
        without.trials
    )


def test_the_error_of_a_mean_is_the_spread_of_its_replicates() -> None:
    values = np.array([0.9, 1.0, 1.4])
    by_hand = np.sqrt(2 / 3 * ((values - values.mean()) ** 2).sum())
    assert jackknife_error(values) == pytest.approx(by_hand)


def test_a_line_neither_falls_nor_goes_below_nothing() -> None:
    slopes = Slopes(("partial",), np.array([[0.02], [0.03], [0.025]]), np.zeros(3))
    shape = Shape(np.ones((len(AT), len(STALENESS))), {"partial": 0.0})
    one = Fitted(Metric.AUC, shape, slopes, Noise(0.0, 0.0), ())
    up = np.array([0.0, 0.0004, -0.00043, 0.001])  # at 0.041 it fell, by 140 clicks
    pls = np.array([0.0, 0.027, 0.041, 0.1])

    class Falling(Fitted):
        def line(self, strategy: str, most: float) -> tuple[np.ndarray, np.ndarray]:
            return pls, self.slopes.mean(strategy) / 0.025 * up

    others = [Falling(*_parts(replace(one, slopes=_without(slopes, i)))) for i in range(3)]
    fitted = Falling(*_parts(replace(one, replicates=tuple(others))))
    _, loss, error = fitted.monotone_line("partial", 0.1)
    assert (np.diff(loss) >= 0).all()
    assert (loss >= 0).all()
    assert (error[1:] > 0).all()


def _parts(one: Fitted) -> tuple[object, ...]:
    names = ("metric", "shape", "slopes", "noise", "joint", "replicates")
    return tuple(getattr(one, name) for name in names)


def _without(slopes: Slopes, seed: int) -> Slopes:
    others = np.delete(slopes.by_seed, seed, axis=0)
    return Slopes(slopes.strategies, others, np.zeros(len(others)))


# --------------------------------------------------------------------------- verdicts


def adding_up(mean: float, error: float) -> AddingUp:
    ratio = SeedMean(mean, error, 16)
    return AddingUp("partial", 8, 0.4, 0.4, ratio, ratio)


@pytest.mark.parametrize(
    ("mean", "error", "verdict"),
    [
        (1.05, 0.03, AdditivityVerdict.HOLDS),
        (0.9, 0.03, AdditivityVerdict.HOLDS),
        (1.05, 0.1, AdditivityVerdict.UNKNOWN),
        (1.5, 0.2, AdditivityVerdict.UNKNOWN),
        (-261.0, 12_023.0, AdditivityVerdict.UNKNOWN),
        (1.5, 0.05, AdditivityVerdict.FAILS),
        (0.5, 0.05, AdditivityVerdict.FAILS),
        (-0.5, 0.1, AdditivityVerdict.FAILS),
    ],
)
def test_whether_losses_add_up_may_not_be_told(
    mean: float, error: float, verdict: AdditivityVerdict
) -> None:
    assert adding_up(mean, error).verdict is verdict


@pytest.mark.parametrize(
    ("rows", "fails_from", "said"),
    [
        ([adding_up(1.0, 0.01)], None, "holds to within 20% at every PLS tried"),
        ([adding_up(1.0, 0.01), adding_up(-261, 12_023)], None, "cannot be told for 1 of 2 kinds"),
        ([adding_up(1.5, 0.05)], 0.4, "does not hold from PLS 0.40 on"),
        ([], None, "cannot be told"),
    ],
)
def test_what_cannot_be_told_is_not_said_to_hold(
    rows: list[AddingUp], fails_from: float | None, said: str
) -> None:
    one = SeedMean(0.9, 0.01, 3)
    checks = Checks(one, one, (), tuple(rows), 0.4, fails_from)
    assert said in _all_in_all(checks)


def measured(n_seeds: int, noise: float) -> Measured:
    seen = seen_of(n_seeds, noise, checks=True)
    fitted = {metric: fit(seen, metric) for metric in ALWAYS}
    return Measured((), seen, fitted)


def test_a_curve_of_few_seeds_is_not_fit_for_use() -> None:
    (reason,) = why_unfit(measured(3, 1e-4))
    assert f"3 seeds are too few: intervals were seen to be right from {FEWEST_SEEDS_TO_USE}" in (
        reason
    )


def test_a_curve_that_tells_nothing_is_not_fit_for_use() -> None:
    reasons = why_unfit(measured(3, 3e-2))
    assert any("cannot be told from nothing" in one for one in reasons)


def test_errors_are_as_large_as_what_trials_miss_early_and_late() -> None:
    seen = seen_of(8, 0.0)
    at = np.array([trial.failures[0].at_fraction for trial in seen.trials])
    rng = np.random.default_rng(3)
    noise = 5e-4 * np.exp(-4.0 * at) * rng.standard_normal(len(at))
    noisy_seen = replace(seen, loss={m: loss + noise for m, loss in seen.loss.items()})
    singles = Singles.of(noisy_seen, Metric.AUC)
    scale = estimate(singles).errors.scale
    own = noise[~seen.held_back] / scale
    early, late = (
        np.sqrt(np.mean(own[some] ** 2)) for some in (singles.at < 0.2, singles.at > 0.8)
    )
    assert 1 / 3 < early / late < 3
