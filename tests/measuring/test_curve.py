"""What a measurement becomes: a file that reads back, a figure, a table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import cprsim
from cprsim.cli.measure_command import command_of
from cprsim.curves import read_curve, write_curve
from cprsim.measuring.curve import curve_file, typical_loss
from cprsim.plots.save import save_figure
from cprsim.plots.staleness import staleness_figure
from cprsim.present.measure import measured_blocks
from cprsim.present.terminal import show
from cprsim.results.words import with_ends
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


def test_the_figure_shows_every_trial(whole, tmp_path: Path) -> None:
    _, measured = whole
    figure = staleness_figure(measured, "small")
    left, right = figure.axes
    assert [axes.get_xlabel() for axes in (left, right)] == [
        "weighted PLS [portion of samples]"
    ] * 2
    points, _ = measured.points(Metric.AUC, "partial")
    assert len(left.lines[0].get_xdata()) == len(points) == 3 * (4 + 2)
    styles = [line.get_linestyle() for line in left.lines if line.get_label() in ("partial", "mfu")]
    assert len(set(styles)) == 2  # told apart without colour
    assert any("(recalled)" in text.get_text() for text in figure.texts)
    assert all(path.stat().st_size > 1000 for path in save_figure(figure, tmp_path / "figure"))


def test_the_table_says_what_is_known(whole) -> None:
    _, measured = whole
    text = io.StringIO()
    show(Console(file=text, width=200), measured_blocks(measured))
    shown = text.getvalue()
    slopes = measured.fitted[Metric.AUC].slopes
    assert shown.startswith("NOT FIT FOR USE: 3 seeds are too few")  # the verdict first
    assert f"{slopes.mean('partial'):.4f} ± " in shown
    assert "Runs held out of the fit" in shown
    assert "CPU minutes" in shown
    lost = typical_loss(measured, Metric.AUC)
    low, high = lost.interval()
    assert f"costs under partial recovery {with_ends(lost.mean, low, high)} of AUC" in shown


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


def test_what_was_written_is_json(whole, tmp_path: Path) -> None:
    request, measured = whole
    path = tmp_path / "small.json"
    write_curve(path, curve_file(measured, request, "small", "cprsim measure small.yaml"))
    checks = json.loads(path.read_text())["checks"]
    assert checks["bytes_written"]["by_strategy"]["partial"] > 0
    assert {one["strategy"] for one in checks["auc"]["paired_differences"]} == {"mfu"}


def test_the_command_in_the_file_leaves_out_where_it_ran() -> None:
    local = "measure s.yaml --workers 2 --seeds 8"
    cluster = "measure --backend=dask --address tcp://host:1 s.yaml --seeds 8 --workers=4"
    for arguments in (local, cluster):
        assert command_of(arguments.split()) == "cprsim measure s.yaml --seeds 8"


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
