"""What a measurement becomes: a file that reads back as it was fitted."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import cprsim
from cprsim.accuracy.curve_file import read_curve, write_curve
from cprsim.job.losses import Metric
from cprsim.training.measuring.checks import checks_of
from cprsim.training.measuring.curve import curve_file
from cprsim.training.measuring.fit import SeedMean


@pytest.fixture
def path(whole, tmp_path: Path) -> Path:
    request, measured = whole
    write_curve(tmp_path / "small.json", curve_file(measured, request, "small", "here"))
    return tmp_path / "small.json"


def test_the_curve_reads_back_as_it_was_measured(whole, path: Path) -> None:
    curve, measured = read_curve(path), whole[1]
    assert curve.manifest["seeds"] == [1, 2, 3]
    assert curve.manifest["n_runs"] == sum(len(one.quality) + 1 for one in measured.results)
    fitted = measured.fitted[Metric.AUC]
    response = curve.of("mfu", Metric.AUC)
    assert response.pls.tolist() == [0.0, fitted.most_weighted_pls]
    slope = max(fitted.slope("mfu").mean, 0.0)
    assert response.loss[1] == pytest.approx(slope * fitted.most_weighted_pls)
    assert response.intercept == fitted.parts["mfu"].intercept
    slopes = [one["mfu"].slope for one in fitted.without]
    assert [one.slope for one in response.replicates] == pytest.approx(slopes, rel=1e-5)
    assert response.degrees == 2
    assert response.settings.tracker == "mfu"


def test_a_read_curve_says_what_was_fitted(whole, path: Path) -> None:
    read, measured = cprsim.read(path), whole[1]
    fitted = measured.fitted[Metric.AUC]
    part, slope = fitted.parts["partial"], fitted.slope("partial")
    of = {name: frame[frame["metric"] == "auc"] for name, frame in read.frames.items()}
    row = of["strategies"].set_index("strategy").loc["partial"]
    assert row["loss_per_pls"] == pytest.approx(part.slope)
    half = stats.t(2).ppf(0.975) * slope.standard_error
    assert row["loss_per_pls_high"] == pytest.approx(part.slope + half)
    assert row["n_seeds"] == 3
    losses = of["losses"].set_index(["strategy", "pls"]).loc["partial"]
    assert losses.loc[0.1, "loss"] == pytest.approx(0.1 * part.slope + part.intercept, rel=1e-4)
    assert losses["extrapolated"].tolist() == [pls > row["most_pls"] for pls in losses.index]
    weights = of["weights"].set_index("strategy").loc["partial"]
    np.testing.assert_allclose(weights["weight"], part.weight.weight, rtol=1e-5)
    checks = checks_of(measured.observed, fitted)
    ratio = SeedMean(**checks["held_out"][0]["measured_over_predicted"])
    held_out = of["held_out"].iloc[0]
    assert held_out["measured_over_predicted_low"] == pytest.approx(ratio.mean - ratio.half_width)
    assert not read.values["fit_for_use"]
    assert "3 seeds are too few" in read.values["unfit"][0]
    assert list(read.figures) == ["staleness"]
