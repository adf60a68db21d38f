"""What a curve makes of an outcome: columns, means, differences, the folder, what is said."""

from __future__ import annotations

import io
from dataclasses import replace
from math import isnan, sqrt

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from cprsim.curves import CurveFile, write_curve
from cprsim.page.content import Table, Words
from cprsim.page.run import chapter_of_run
from cprsim.records import SubSaves
from cprsim.report.accuracy_sentences import accuracy_sentences
from cprsim.report.as_json import run_as_json
from cprsim.report.compare_table import print_comparison
from cprsim.report.run_report import print_run
from cprsim.results import Identity, compare, differences, load_result, summarise
from cprsim.results.metrics import spreads
from cprsim.results.rows import replication_rows
from cprsim.staleness import Metric, Response

# The fixture's cpr loses net PLS 0.15, 0 and 0.05 in its three replications.
LINES = (
    Response.linear("partial", Metric.AUC, (0.02, 0.002), 0.1, degrees=4.0),
    Response.linear("mfu", Metric.AUC, (0.01, 0.001), 0.5, settings=SubSaves("mfu")),
)
FILE = CurveFile("lines", LINES, kernel={"samples": 1000}, command="cprsim measure lines.yaml")
LOSSES = np.array([0.003, 0.0, 0.001])


@pytest.fixture
def priced(outcome, made):
    """The outcome of `outcome`, with a curve and a strategy that saves by priority."""
    full, cpr = outcome.strategies
    policy = replace(made.cpr, name="cpr-mfu", sub_saves=SubSaves("mfu"))
    strategies = (full, cpr, replace(cpr, policy=policy))
    return replace(outcome, strategies=strategies, curve=FILE.curve("by hand", ("Take care.",)))


@pytest.fixture
def written(write, priced, logbook, tmp_path):
    """The priced outcome in its folder; parts can be exchanged."""

    def _written(name="lines", **changed):
        path = tmp_path / f"{name}.json"
        write_curve(path, replace(FILE, name=name))
        logs = replace(logbook, logs=logbook.logs | {"cpr-mfu": logbook.logs["cpr"]})
        parts = {"outcome": priced, "logbook": logs, "curve_path": path} | changed
        return write(**parts)

    return _written


def text_of(show, *arguments, width=200) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    show(console, *arguments)
    return out.getvalue()


def test_losses_are_the_curves_at_net_pls(priced):
    rows = replication_rows(priced).set_index("strategy")
    assert rows.loc["cpr", "auc_loss"].to_numpy() == pytest.approx(LOSSES)
    assert rows.loc["cpr", "auc_loss_se"].to_numpy() == pytest.approx(LOSSES / 10)
    assert rows.loc["cpr-mfu", "auc_loss"].to_numpy() == pytest.approx(LOSSES / 2)
    assert rows.loc["cpr", "beyond_measured"].tolist() == [1, 0, 0]
    assert rows.loc["cpr-mfu", "beyond_measured"].tolist() == [0, 0, 0]
    assert rows.loc["full", "auc_loss"].tolist() == [0, 0, 0]
    assert rows.loc["cpr", "log_loss_rise"].isna().all()  # was not measured
    assert rows.loc["full", "log_loss_rise"].tolist() == [0, 0, 0]


def test_the_interval_holds_both_errors(priced):
    found = spreads(summarise(priced))["cpr"]["auc_loss"]
    mean, curve = LOSSES.mean(), LOSSES.mean() / 10
    simulated = LOSSES.var(ddof=1) / 3
    error = sqrt(simulated + curve**2)
    degrees = error**4 / (simulated**2 / 2 + curve**4 / 4)
    assert found.mean == pytest.approx(mean)
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, degrees) * error)


def test_without_a_curve_only_what_loses_nothing_is_known(outcome):
    found = spreads(summarise(outcome))
    assert (found["full"]["auc_loss"].low, found["full"]["auc_loss"].high) == (0, 0)
    assert isnan(found["cpr"]["auc_loss"].mean)
    assert isnan(found["cpr"]["beyond_measured"].mean)


def test_a_difference_of_two_responses_holds_both_their_errors(priced):
    table = differences(replication_rows(priced), 6, "cpr").set_index(["strategy", "quantity"])
    found = table.loc[("cpr-mfu", "auc_loss")]
    values, n = -LOSSES / 2, 3
    curves = [(LOSSES.mean() / 10) ** 2, (LOSSES.mean() / 20) ** 2]
    simulated = values.var(ddof=1) / n
    error = sqrt(simulated + sum(curves))
    degrees = error**4 / (simulated**2 / 2 + curves[0] ** 2 / 4)
    assert found["mean"] == pytest.approx(values.mean())
    assert found["high"] - found["mean"] == pytest.approx(stats.t.ppf(0.975, degrees) * error)


def test_losses_by_the_same_response_err_together(priced):
    twice = replace(priced.strategies[1], policy=replace(priced.strategies[1].policy, name="again"))
    both = replace(priced, strategies=(priced.strategies[1], twice))
    table = differences(replication_rows(both), 6, "cpr").set_index("quantity")
    assert table.loc["auc_loss", ["mean", "low", "high"]].tolist() == [0, 0, 0]


def test_the_folder_keeps_the_curve_and_names_it(written):
    result = written()
    assert (result.path / "curve.json").read_bytes()
    found = load_result(result.path)
    assert found.curve == result.curve
    assert (found.curve.name, found.curve.file) == ("lines", "curve.json")
    assert found.curve.sha256 == found.manifest["files"]["curve.json"]["sha256"]


def test_a_folder_without_columns_of_accuracy_reads_as_unknown(write, outcome, tmp_path):
    from cprsim.results.accuracy_rows import COLUMNS, with_accuracy_columns

    old = with_accuracy_columns(replication_rows(outcome).drop(columns=list(COLUMNS)))
    assert old["auc_loss"].isna().all()
    assert set(COLUMNS) <= set(old)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_shows_the_loss_at_every_width(written, width):
    text = text_of(print_run, written(), width=width)
    lines = text.splitlines()
    shown = [line for line in lines if not line.startswith(("results", "figure"))]
    assert max(len(line.rstrip()) for line in shown) <= width
    assert "AUC loss" in text
    assert "13.3 ±" in text  # 0.00133


def test_what_is_said_of_the_accuracy(written):
    assert accuracy_sentences(written()) == [
        "AUC loss by the staleness curve lines (by hand); its error is in the interval.",
        "Take care.",
        "cpr: 33.3 % of its jobs lose more than was measured; their loss is extrapolated.",
    ]


def test_settings_that_were_not_measured_are_said(written, priced):
    other = SubSaves("mfu", fraction=0.5)
    policy = replace(priced.strategies[2].policy, sub_saves=other)
    strategies = (*priced.strategies[:2], replace(priced.strategies[2], policy=policy))
    said = accuracy_sentences(written(outcome=replace(priced, strategies=strategies)))
    assert said[2] == (
        "cpr-mfu: lines does not say what it loses: it was measured with sub-saves of 12.5 % of 7 "
        "large tables, here they are of 50 % of 7 large tables."
    )


@pytest.mark.parametrize(
    ("responses", "why"),
    [
        (LINES[1:], "it has no response of `partial` in AUC; it has: mfu"),
        (
            (Response.linear("partial", Metric.LOG_LOSS, (0.02, 0.002), 0.1),),
            "the response of `partial` is in log-loss alone, not in AUC",
        ),
    ],
)
@pytest.mark.parametrize("width", [70, 200])
def test_a_curve_that_prices_nothing_is_not_said_to_be_in_an_interval(
    written, priced, responses, why, width
):
    curve = replace(FILE, responses=responses).curve("by hand", ("Take care.",))
    result = written(outcome=replace(priced, strategies=priced.strategies[:2], curve=curve))
    said = accuracy_sentences(result)
    assert said == [
        "There is no AUC loss to show: the staleness curve lines (by hand) prices no strategy that "
        "finished every job.",
        "Take care.",
        f"cpr: lines does not say what it loses: {why}.",
    ]
    assert run_as_json(result)["accuracy"] == said
    assert run_as_json(result)["curve"]["unpriced"] == {"cpr": why}
    text = " ".join(text_of(print_run, result, width=width).split())
    assert "in the interval" not in text
    assert "×10⁻⁴" not in text
    assert why in text
    table = next(block for block in blocks_of(result) if isinstance(block, Table))
    assert "AUC" not in table.caption + str(table.columns)
    assert said[0] in next(b for b in blocks_of(result) if isinstance(b, Words)).paragraphs


def blocks_of(result):
    """What the page shows of costs."""
    return chapter_of_run(result).sections[0].blocks


def test_a_loss_of_exactly_nothing_keeps_its_column(written, priced):
    nothing = replace(LINES[0], loss=np.zeros(2), standard_error=np.zeros(2))
    curve = replace(FILE, responses=(nothing,)).curve("by hand")
    result = written(outcome=replace(priced, strategies=priced.strategies[:2], curve=curve))
    assert "in the interval" in accuracy_sentences(result)[0]
    assert "×10⁻⁴" in text_of(print_run, result)


def test_a_strategy_that_does_not_finish_has_no_loss_and_no_error_in_an_interval(written, priced):
    full, cpr, _ = priced.strategies
    costs = replace(cpr.costs, finished=np.array([True, False, True]))
    result = written(outcome=replace(priced, strategies=(full, replace(cpr, costs=costs))))
    assert "There is no AUC loss to show" in accuracy_sentences(result)[0]
    assert "×10⁻⁴" not in text_of(print_run, result)


def test_without_a_curve_it_is_said_how_to_get_one(write, outcome, made):
    (said,) = accuracy_sentences(write())
    assert "cprsim measure" in said
    alone = replace(outcome, strategies=outcome.strategies[:1])
    assert accuracy_sentences(write(outcome=alone, identity=Identity("f", "f", {}))) == []
    assert "AUC loss" not in text_of(print_run, write())


def test_scripts_get_losses_with_intervals_and_the_curve(written):
    found = run_as_json(written())
    by_name = {one["name"]: one for one in found["strategies"]}
    assert found["curve"]["name"] == "lines"
    assert by_name["full"]["auc_loss"] == 0
    assert by_name["cpr"]["auc_loss"] == pytest.approx(0.004 / 3)
    assert by_name["cpr"]["log_loss_rise"] is None
    assert by_name["cpr"]["intervals"]["auc_loss"]["low"] < by_name["cpr"]["auc_loss"]
    assert run_as_json(written())["accuracy"][1] == "Take care."


def test_results_by_one_curve_are_compared_closer_than_by_two(written):
    one = written(identity=Identity("one", "1", {}))
    again = written(identity=Identity("again", "2", {}))
    other = written("others", identity=Identity("other", "3", {}))

    def interval(a, b):
        table = compare(a, b).set_index(["strategy", "quantity"])
        found = table.loc[("cpr", "auc_loss")]
        return found["difference"], found["high"] - found["low"]

    assert interval(one, again) == (0, 0)
    difference, width = interval(one, other)
    error = sqrt(2) * LOSSES.mean() / 10
    assert difference == 0
    assert width == pytest.approx(2 * stats.t.ppf(0.975, 8) * error)  # 4 degrees and 4
    text = text_of(print_comparison, compare(one, other))
    assert "AUC loss, ×10⁻⁴" in text
    assert "log-loss rise" not in text  # known to nobody
