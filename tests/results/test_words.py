"""Numbers as people read them: the digits suit the interval, wherever an estimate is shown."""

from __future__ import annotations

import io
from math import inf, nan

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cprsim.estimate import Estimate
from cprsim.plots.chart import Chart, Panel, Series
from cprsim.present.charts import chart_blocks
from cprsim.present.comparison import differences_table
from cprsim.present.document import Table
from cprsim.present.run_sentences import spread_in_percent
from cprsim.present.terminal import show_table
from cprsim.results.words import (
    ends,
    portion,
    suited,
    ten_thousandths,
    with_ends,
    with_interval,
)


def test_a_small_estimate_keeps_the_digits_of_its_interval():
    assert with_ends(0.0025, 0.0021, 0.0029) == "0.0025 (0.0021 to 0.0029, 95 % interval)"
    assert suited(0.0025, 0.0021, 0.0029) == ("0.0025", "0.0021", "0.0029")
    assert suited(0.0025, 0.00238, 0.00262) == ("0.00250", "0.00238", "0.00262")
    assert with_interval(0.0025, 0.0004) == "0.0025 ± 0.0004"
    assert ends(0.0021, 0.0029) == "0.0021 to 0.0029"


def test_an_estimate_that_was_shown_well_is_shown_as_before():
    assert suited(8.71, 8.37, 9.05) == ("8.71", "8.37", "9.05")
    assert suited(212.3, 180.1, 244.5) == ("212", "180", "244")
    assert suited(25.0, 0.2, 49.8) == ("25.0", "0.2", "49.8")
    assert suited(1661.1, 426.6, 2895.6) == ("1,661", "427", "2,896")


def test_three_digits_do_where_the_interval_is_wide():
    shown = {9.126: "9.13", 9.994: "9.99", 9.996: "10.0", 99.94: "99.9", 99.96: "100"}
    assert {value: suited(value, 0.0, 2 * value)[0] for value in shown} == shown


def test_what_has_no_interval_is_shown_alone():
    assert with_ends(0.0025, nan, nan) == "0.003"
    assert with_ends(nan, nan, nan, "%") == "–"
    assert ends(nan, nan) == "–"
    assert suited(5.0, 5.0, 5.0) == ("5.00", "5.00", "5.00")
    assert suited(5.0, -inf, inf) == ("5.00", "-inf", "inf")


def test_a_small_portion_is_not_shown_as_nothing():
    shown = {0.1: "0.1000", 0.0: "0.0000", 3.2e-5: "3e-05", nan: "–"}
    assert {value: portion(value) for value in shown} == shown


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6))
def test_no_digit_of_the_half_width_is_lost(value, half):
    shown, low, high = (
        float(text.replace(",", "")) for text in suited(value, value - half, value + half)
    )
    if half > 1e-6 * abs(value):
        assert (high - low) / 2 == pytest.approx(half, rel=0.51)
        assert shown == pytest.approx(value, abs=0.51 * half)


def test_a_loss_of_accuracy_is_told_in_ten_thousandths():
    assert ten_thousandths(0.00027, 0.00008) == "2.70 ± 0.80"
    assert ten_thousandths(0.12345678, 0.0000005) == "1,234.568 ± 0.005"
    assert ten_thousandths(0.5, 0.123445) == "5,000 ± 1,234"
    assert ten_thousandths(0.0, 0.0) == "0"


def test_charts_of_the_page_keep_the_digits():
    one = Series("ours", (1.0,), (0.0025,), (0.0021,), (0.0029,))
    *_, table = chart_blocks(Chart("t", "s", (Panel("p", "x", "y", (one,)),)))
    assert isinstance(table, Table)
    assert table.rows == [["ours", "1.00", "0.0025", "0.0021 to 0.0029"]]


def test_shares_on_the_page_keep_the_digits():
    shown = spread_in_percent(Estimate(0.000025, 0.000021, 0.000029, 100))
    assert shown == "0.0025 % (0.0021 to 0.0029 %, 95 % interval)"


def test_a_comparison_keeps_the_digits():
    row = {"strategy": "full", "quantity": "saves_h", "n": 9}
    numbers = {"a": 0.0125, "b": 0.0150, "difference": 0.0025, "low": 0.0021, "high": 0.0029}
    table = pd.DataFrame([{**row, "quantity": "overhead_h", **numbers}])
    out = io.StringIO()
    show_table(Console(file=out, width=100), differences_table(table))
    assert out.getvalue().splitlines()[-1].split() == (
        ["full", "overhead,", "h", "0.0125", "0.0150", "0.0025", "0.0021", "to", "0.0029"]
    )
