"""What a measurement becomes: a file that reads back, a figure, a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.curves import read_curve, write_curve
from cprsim.measuring.curve import curve_file
from cprsim.staleness import Metric
from tests.making import call


def test_the_curve_reads_back_as_it_was_measured(whole, tmp_path: Path) -> None:
    request, measured = whole
    path = tmp_path / "small.json"
    write_curve(path, curve_file(measured, request, "small", "cprsim measure small.yaml"))
    curve = read_curve(path)
    assert curve.manifest["seeds"] == [1, 2, 3]
    assert curve.manifest["n_runs"] == sum(len(one.quality) + 1 for one in measured.results)
    fitted = measured.fitted[Metric.AUC]
    response = curve.curve("here").of("mfu", Metric.AUC)
    assert response is not None
    assert response.pls.tolist() == [0.0, fitted.most_weighted_pls]
    slope = max(fitted.slopes.mean("mfu"), 0.0)
    assert response.loss[1] == pytest.approx(slope * fitted.most_weighted_pls)
    assert response.intercept == fitted.parts["mfu"].intercept
    assert [one.slope for one in response.replicates] == pytest.approx(
        [one["mfu"].slope for one in fitted.without], rel=1e-5
    )
    assert response.degrees == 2
    assert response.settings is not None
    assert response.settings.tracker == "mfu"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--budget", "5", "--budget: '5' has no unit"),
        ("--budget", "0 s", "--budget: must be positive"),
        ("--precision", "fine", "--precision: 'fine' is not a share"),
        ("--seeds", "2", "greater than or equal to 3"),
    ],
)
def test_bad_options_are_refused(scenario: Path, option: str, value: str, message: str) -> None:
    called = call("measure", str(scenario), option, value)
    assert called.exit_code == 2
    assert message in called.output
    assert not list(scenario.parent.glob("*.runs"))


def test_a_call_predicts_the_loss_of_given_failures(whole, tmp_path: Path) -> None:
    request, measured = whole
    path = tmp_path / "small.json"
    write_curve(path, curve_file(measured, request, "small", "here"))
    curve = cprsim.Curve.read(path)
    found = curve.loss_of([(0.5, 1), (0.9, (0, 2))], save_every=0.2, n_servers=4)
    part = measured.fitted[Metric.AUC].parts["partial"]
    w = part.weight.of(np.array([0.5, 0.9]))
    lost = (w[0] * 0.1 + 2 * w[1] * 0.1) / 4
    auc = found[found["metric"] == "auc"].iloc[0]
    assert auc["loss"] == pytest.approx(part.slope * lost + part.intercept, rel=1e-4)
    assert auc["low"] < auc["loss"] < auc["high"]
    with pytest.raises(cprsim.CprsimError, match="not scar"):
        curve.loss_of([(0.5, 1)], save_every=0.2, strategy="scar")
    with pytest.raises(cprsim.CprsimError, match="0 to 3"):
        curve.loss_of([(0.5, 4)], save_every=0.2, n_servers=4)


@pytest.mark.parametrize(
    ("names", "message"), [("mfu", "`partial` is missing"), ("lru", "is none")]
)
def test_strategies_are_named_and_partial_is_among_them(scenario, tmp_path, names, message) -> None:
    called = call("measure", scenario, "--strategies", names, "--plan", tmp_path / "plan.csv")
    assert called.exit_code == 2
    assert message in called.output
    called = call("measure", scenario, "--strategies", "partial, mfu", "--plan", tmp_path / "p.csv")
    assert called.exit_code == 0
    lines = (tmp_path / "p.csv").read_text().splitlines()[1:]
    assert {line.split(",")[1] for line in lines} == {"partial", "mfu"}
