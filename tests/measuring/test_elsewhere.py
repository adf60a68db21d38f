"""Runs made elsewhere become the curve that they would be as our own."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from cprsim.curves.curve_file import read_curve
from cprsim.errors import CurveError
from cprsim.kernel.trials import stale_shards
from cprsim.measuring.design import Design
from cprsim.measuring.elsewhere import PLANNED, RESULTS, plan, read_runs, write_plan
from cprsim.measuring.measure import fitted_to
from cprsim.staleness.names import ALWAYS, Metric
from tests.making import call
from tests.measuring.conftest import DESIGN

HEAD = ",".join((*PLANNED, *RESULTS))


def table_of(measured, request, path: Path) -> Path:
    """Our own runs, as somebody else would write them down."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*PLANNED, *RESULTS])
        writer.writeheader()
        for one in measured.results:
            for planned in plan(DESIGN, [one.seed], request.n_servers):
                trial = next(t for t in one.quality if same(t, planned.trial))
                run, twin = one.quality[trial], one.twin.quality
                results = (run.auc, twin.auc, run.log_loss, twin.log_loss)
                writer.writerow(planned.cells() | dict(zip(RESULTS, results, strict=True)))
    return path


def same(one, other) -> bool:
    return one.saving.strategy == other.saving.strategy and one.failures == other.failures


@pytest.mark.long
def test_our_own_runs_as_a_table_give_our_own_curve(whole, tmp_path: Path) -> None:
    request, measured = whole
    read = read_runs(table_of(measured, request, tmp_path / "runs.csv"))
    again = fitted_to(read.results(), read.observed())
    assert len(again.seen.trials) == len(measured.seen.trials)
    np.testing.assert_allclose(sorted(again.seen.pls), sorted(measured.seen.pls), atol=1e-5)
    for metric in ALWAYS:
        slopes = measured.fitted[metric].slopes
        for strategy in slopes.strategies:
            mean, error = slopes.mean(strategy), slopes.standard_error(strategy)
            anew = again.fitted[metric].slopes
            assert anew.mean(strategy) == pytest.approx(mean, abs=0.01 * error)
            assert anew.standard_error(strategy) == pytest.approx(error, rel=0.01)


def test_a_plan_is_a_table_that_waits_for_results(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    runs = plan(Design(), [1, 2], 8)
    write_plan(path, runs)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (4 * 9 + 8 + 2 * 2)
    assert read_runs_or_error(path) == "strategy"  # no run is finished
    for run in runs:
        lost = [(at, net) for at, net, _, _ in run.lost()]
        ours = [(one.at_fraction, one.since_reload) for one in stale_shards(run.trial)]
        np.testing.assert_allclose(lost, ours, atol=1e-12)


def read_runs_or_error(path: Path) -> str:
    with pytest.raises(CurveError) as error:
        read_runs(path)
    return error.value.problems[0].key


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        ("1,partial,0.2,0.5,9,0.1,4,0.7,0.8,,", "shards", "no whole number from 0 to 3"),
        ("1,partial,0.2,0.5;0.2,1;1,0.1;0.1,4,0.7,0.8,,", "failed_at", "is not in order"),
        ("1,partial,0.2,0.5,1,0.6,4,0.7,0.8,,", "staleness", "more than was trained"),
        ("1,partial,0.2,0.5,1 1,0.1,4,0.7,0.8,,", "shards", "one twice"),
        ("1,partial,0.2,0.5;0.6,1,0.1;0.1,4,0.7,0.8,,", "shards", "1 failures, `failed_at` has 2"),
        ("1,lru,0.2,0.5,1,0.1,4,0.7,0.8,,", "strategy", "is not known"),
        ("1,mfu,,0.5,1,0.1,4,0.7,0.8,,", "interval", "is missing"),
        ("1,partial,0.2,0.5,1,0.1,4,0.7,,,", "twin_auc", "is not a number"),
        ("1,partial,0.2,0.5,1,0.1,4,70,0.8,,", "auc", "between 0 and 1"),
        ("x,partial,0.2,0.5,1,0.1,4,0.7,0.8,,", "seed", "no whole number"),
        ("1,partial,0.2,0.5,1,0.1,4,0.7,0.8,,", "seed", "1 finished runs; .* 3 at least"),
    ],
)
def test_a_wrong_row_is_named(row: str, column: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD}\n{row}\n")
    with pytest.raises(CurveError, match=rf"runs\.csv(:2)?: {column}: .*{message}"):
        read_runs(path)


def test_the_command_plans_and_fits(whole, scenario, tmp_path: Path) -> None:
    request, measured = whole
    planned = call("measure", scenario, "--plan", tmp_path / "plan.csv", "--seeds", 3)
    assert planned.exit_code == 0, planned.output
    path = table_of(measured, request, tmp_path / "runs.csv")
    lines = path.read_text().splitlines()
    unfinished = ",".join(lines[1].split(",")[:7]) + ",,,,"
    path.write_text("\n".join([*lines, unfinished]) + "\n")
    fitted = call("measure", scenario, "--runs", path, "--out", tmp_path / "curve.json")
    assert fitted.exit_code == 0, fitted.output
    assert "1 of 43 rows" in " ".join(fitted.stderr.split())
    curve = read_curve(tmp_path / "curve.json")
    assert curve.kernel["runs"] == "runs.csv"
    slope = curve.curve("here").of("partial", Metric.AUC)
    assert slope is not None
    assert slope.degrees == 2
    assert curve.unfit  # three seeds are too few


def test_auc_of_single_failures_under_plain_recovery_is_enough(whole, scenario, tmp_path) -> None:
    path = table_of(whole[1], whole[0], tmp_path / "all.csv")
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["strategy"] == "partial"]
    kept = [column for column in (*PLANNED, "auc", "twin_auc") if column not in ("strategy",)]
    with (tmp_path / "few.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, kept, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row for row in rows if ";" not in row["failed_at"])
    fitted = call("measure", scenario, "--runs", tmp_path / "few.csv", "--out", tmp_path / "c.json")
    assert fitted.exit_code == 0, fitted.output
    curve = read_curve(tmp_path / "c.json").curve("here")
    assert curve.of("partial", Metric.AUC) is not None
    assert curve.of("partial", Metric.LOG_LOSS) is None
