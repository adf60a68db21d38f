"""The fit gives back what trials were made from, and predicts those that it has not seen."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cprsim.accuracy.curve import Weight
from cprsim.accuracy.curve_file import read_curve, write_curve
from cprsim.errors import ParameterError
from cprsim.job.losses import ALWAYS, RESPONSE_KEYS, Metric
from cprsim.job.records import ShardLoss
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.shared_run import Baseline
from cprsim.training.kernel.trials import Trial, stale_shards
from cprsim.training.measuring.checks import (
    CANNOT_BE_TOLD,
    DOES_NOT_HOLD,
    HOLDS,
    checks_of,
    verdict_of,
)
from cprsim.training.measuring.curve import curve_file, response_of, why_unfit
from cprsim.training.measuring.design import Design
from cprsim.training.measuring.fit import AT, FittedCurve, SeedMean, fit
from cprsim.training.measuring.measure import Measured, MeasureRequest, fitted, with_further
from cprsim.training.measuring.observed import Observed, observed
from cprsim.training.measuring.own_model import quality_of
from cprsim.training.measuring.runs import SeedResult
from tests.measuring.conftest import request_in

N_SERVERS = 8
SLOPE = {key: 0.03 / (1 + i) for i, key in enumerate(RESPONSE_KEYS)}
PHI = {key: 0.0 if key == "partial" else 0.1 * i for i, key in enumerate(RESPONSE_KEYS)}
WEIGHT = Weight(AT, np.array([1.6, 1.4, 1.0, 0.6, 0.3]))  # what is lost late counts for less
EARLY = ShardLoss(
    np.array([0]), np.array([0.054]), np.zeros(1, int), np.array([0.05]), np.array([0.05]),
    np.array([0.125]),
)  # fmt: skip


def loss(trial: Trial) -> float:
    key, stale = trial.saving.strategy, stale_shards([trial], N_SERVERS)
    interval = np.minimum(trial.saving.interval_fraction, stale.progress_h)
    age = (1 - PHI[key]) * stale.since_reload_h + PHI[key] * interval / 2
    return SLOPE[key] * sum((WEIGHT.of(stale.progress_h) * age / N_SERVERS).tolist())


def made(
    n_seeds: int, noise: float, spread: float = 0.0, offset: float = 0.0,
    strategies: tuple[str, ...] = RESPONSE_KEYS,
) -> list[SeedResult]:  # fmt: skip
    """Seeds whose slopes differ by `spread`; every trial loses `offset` besides."""
    rng = np.random.default_rng(7)
    results = []
    for seed in range(n_seeds):
        factor = 1 + spread * rng.standard_normal()
        quality = {
            trial: Quality(
                0.8 - factor * loss(trial) - offset + noise * rng.standard_normal(),
                0.5 + 2 * factor * loss(trial) + offset + noise * rng.standard_normal(),
            )
            for trial in Design(strategies).trials(seed, N_SERVERS)
        }
        results.append(SeedResult(seed, Baseline(Quality(0.8, 0.5), {}), quality, 1.0))
    return results


@cache
def seen_of(n_seeds: int, noise: float = 1e-5, spread: float = 0.0) -> Observed:
    return observed(made(n_seeds, noise, spread), N_SERVERS)


@cache
def fitted_of(n_seeds: int, noise: float = 1e-5, spread: float = 0.0) -> FittedCurve:
    return fit(seen_of(n_seeds, noise, spread), Metric.AUC)


def test_slopes_phi_and_weight_come_back() -> None:
    found, mean = fitted_of(6), WEIGHT.mean()
    for key in RESPONSE_KEYS:
        error = 4 * found.slope(key).standard_error + 0.02 * SLOPE[key] * mean
        assert found.slope(key).mean == pytest.approx(SLOPE[key] * mean, abs=error), key
        assert found.parts[key].interval_share == pytest.approx(PHI[key], abs=0.1), key
    assert found.parts["mfu"].weight.weight == pytest.approx(WEIGHT.weight / mean, abs=0.1)
    assert found.parts["mfu"].intercept == pytest.approx(0.0, abs=1e-5)


def test_an_intercept_is_part_of_every_prediction() -> None:
    fitted = fit(observed(made(6, 1e-5, offset=-4e-4), N_SERVERS), Metric.AUC)
    assert fitted.parts["partial"].intercept == pytest.approx(-4e-4, rel=0.1)
    response = response_of(fitted, "partial")
    first = 4 * len(RESPONSE_KEYS)  # after the scenes of all: single failures under partial
    for trial in Design().trials(99, N_SERVERS)[first : first + 8]:
        losses, interval = stale_shards([trial], N_SERVERS), trial.saving.interval_fraction
        lost = response.predict_losses(losses, np.zeros(1, int), 1.0, interval).loss
        assert lost == pytest.approx([loss(trial) - 4e-4], abs=5e-5)


def test_the_checks_see_what_was_made() -> None:
    checks = checks_of(seen_of(6), fitted_of(6))
    found = [one for one in checks["paired_differences"] if one["other"] == "partial"]
    assert all(one["mean"] + one["half_width_95"] < 0 for one in found)  # partial is the steepest
    assert all(one["smallest_detectable"] > one["half_width_95"] for one in found)
    assert sorted(one["n_failures"] for one in checks["held_out"]) == [3, 3, 6, 6]
    for one in checks["held_out"]:
        assert one["measured_over_predicted"]["mean"] == pytest.approx(1.0, abs=0.05)
        assert one["verdict"] == HOLDS


def test_held_out_histories_do_not_enter_and_are_seen_to_fail() -> None:
    seen = seen_of(6)
    double = {m: np.where(seen.trials["held_out"], 3.0, 1.0) * one for m, one in seen.loss.items()}
    spoilt = replace(seen, loss=double)
    found = fit(spoilt, Metric.AUC)
    np.testing.assert_equal(fitted_of(6).slopes, found.slopes)
    assert {one["verdict"] for one in checks_of(spoilt, found)["held_out"]} == {"does not hold"}


def test_two_seeds_are_too_few() -> None:
    with pytest.raises(ParameterError, match="2 complete seeds are too few"):
        fit(observed(made(2, noise=1e-5), N_SERVERS), Metric.AUC)


def test_no_loss_of_a_stale_shard_is_known_for_sure() -> None:
    for strategy in ("partial", "scar", "mfu+", "round-robin+"):
        response = response_of(fitted_of(3, 3e-3, 0.2), strategy)
        lost = response.predict_losses(EARLY, np.array([0]), 1.0, np.inf)
        assert lost.standard_error[0] > 0, strategy
        assert response.loss[-1] >= 0


@pytest.mark.parametrize(
    ("mean", "error", "verdict"),
    [
        (1.05, 0.03, HOLDS),
        (0.7, 0.3, HOLDS),
        (1.05, 0.6, CANNOT_BE_TOLD),
        (1.5, 0.3, CANNOT_BE_TOLD),
        (1.5, 0.05, DOES_NOT_HOLD),
        (0.5, 0.05, DOES_NOT_HOLD),
    ],
)
def test_whether_held_out_runs_are_predicted_may_not_be_told(
    mean: float, error: float, verdict: str
) -> None:
    assert verdict_of(SeedMean(mean, error, 16)) == verdict


def test_what_makes_a_curve_unfit_for_use_is_said() -> None:
    two, rng = ("partial", "mfu"), np.random.default_rng(1)
    few, seen = (
        observed(made(n_seeds, noise, 0.2, strategies=two), N_SERVERS)
        for n_seeds, noise in ((3, 1e-4), (8, 1e-5))
    )
    noisy = {
        m: one + seen.trials["held_out"].to_numpy() * rng.normal(0, 0.1, len(one))
        for m, one in seen.loss.items()
    }
    reasons = [
        " ".join(why_unfit(Measured((), some, {metric: fit(some, metric) for metric in ALWAYS})))
        for some in (few, seen, replace(seen, loss=noisy))
    ]
    assert "3 seeds are too few" in reasons[0]
    assert reasons[1] == ""
    assert "no held-out group of runs confirms" in reasons[2]


# ----------------------------------------------------------------------- metrics of any name

RECALL = Metric("recall-loss@10")
NOISE = Metric("noise")


@pytest.fixture(scope="module")
def seeds():
    """Twice the loss of AUC under one name, and nothing but noise under another."""
    rng = np.random.default_rng(3)

    def with_others(quality: Quality) -> Quality:
        others = {RECALL: 2.0 * (1.0 - quality.auc), NOISE: 1e-3 * rng.normal()}
        return replace(quality, others=others)

    return [
        replace(
            seed,
            twin=Baseline(with_others(seed.twin.quality), {}),
            quality={trial: with_others(quality) for trial, quality in seed.quality.items()},
        )
        for seed in made(4, noise=1e-5)
    ]


@pytest.fixture
def request_(scenario, tmp_path: Path) -> MeasureRequest:
    return request_in(tmp_path, scenario, metrics=(RECALL, NOISE))


@pytest.mark.long
def test_the_file_holds_it_and_noise_spoils_no_other_metric(
    seeds, request_, tmp_path: Path
) -> None:
    measured = with_further(fitted(seeds, N_SERVERS), request_)
    write_curve(tmp_path / "mine.json", curve_file(measured, request_, "mine", "here"))
    curve = read_curve(tmp_path / "mine.json")
    assert curve.metrics == (Metric.AUC, Metric.LOG_LOSS, RECALL, NOISE)
    of_auc = curve.of("partial", Metric.AUC).loss
    assert curve.of("partial", RECALL).loss == pytest.approx(2 * of_auc, rel=1e-3)
    assert not any("noise" in sentence for sentence in curve.unfit)
    assert curve.why_unfit(RECALL) == curve.unfit
    assert "in noise is not significantly above 0" in curve.why_unfit(NOISE)[-1]


def test_a_metric_that_no_run_reports_is_refused(seeds, request_) -> None:
    with pytest.raises(ParameterError, match="not all runs report `ndcg`; they have auc, log-loss"):
        replace(request_, metrics=(Metric.NDCG,)).further_metrics(observed(seeds, N_SERVERS))


@pytest.mark.parametrize(
    ("reported", "message"),
    [
        ({"auc": 0.7, "log_loss": 0.5, "ne": float("nan")}, "reports `ne`: nan; has it diverged"),
        ({"auc": 0.7, "log_loss": 0.5, "Loss of recall": 1.0}, "is no name of a metric"),
        ({"auc": 0.7}, "`log_loss` is missing"),
    ],
)
def test_what_a_trainer_cannot_report_is_said(reported, message) -> None:
    with pytest.raises(ParameterError, match=message):
        quality_of(reported)
