"""A metric of any name is measured as AUC and log-loss are, and leaves them as they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.accuracy.curve_file import read_curve, write_curve
from cprsim.errors import ParameterError
from cprsim.job.losses import Metric
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.shared_run import Baseline
from cprsim.training.measuring.curve import curve_file
from cprsim.training.measuring.measure import MeasureRequest, fitted, with_further
from cprsim.training.measuring.observed import observed
from cprsim.training.measuring.own_model import quality_of
from tests.measuring.conftest import request_in
from tests.measuring.test_fit import N_SERVERS, made

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
