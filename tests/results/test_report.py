"""Tables and sentences: what is shown, at every width, and what is left out."""

from __future__ import annotations

import io
from dataclasses import replace
from math import inf, nan

import pytest
from rich.console import Console

from cprsim.experiments.pipeline import Outcome
from cprsim.present.comparison import differences_table
from cprsim.present.run import strategies_frame
from cprsim.present.run_sentences import savings, verdicts
from cprsim.present.terminal import show
from cprsim.records import SubSaves
from cprsim.recovery.policy import RELOAD
from cprsim.results.compare import compare
from cprsim.results.identity import Identity
from cprsim.results.words import hours, saves, significant, with_interval
from tests.making import paper_policy


def printed(blocks, width=200, terminal=False):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
    show(console, blocks)
    return out.getvalue()


def test_verdicts_say_what_the_numbers_do_not(write, made):
    never = made.strategy(made.none, [1, 1], [0, 0], finished=[False, False])
    partly = made.strategy(made.full, [1, 1], [0, 0], finished=[True, False])
    longer = paper_policy("lazy", RELOAD, 11.0, "given")
    strategies = (never, partly, made.strategy(longer, [0, 0], [0, 0]))
    said = list(verdicts(write(outcome=Outcome(made.useful_h, made.cluster, strategies))))
    assert len(said) == 3
    assert said[0].startswith("none never finishes: of 2 replications none was done")
    assert said[1].startswith("full often does not finish: 50.0 % of 2 replications")
    assert said[2] == "lazy never saves: its interval of 11 h is longer than the job."


def test_savings_are_against_full_recovery(write):
    (said,) = savings(write())
    assert said.startswith("cpr removes 96.0 % of full's overhead")


def test_a_full_recovery_that_never_finished_is_no_yardstick(write, made):
    stuck = made.strategy(made.full, [1, 1], [0, 0], finished=[False, False])
    cpr = made.strategy(made.cpr, [0.1, 0.1], [0, 0])
    assert list(savings(write(outcome=Outcome(made.useful_h, made.cluster, (stuck, cpr))))) == []


def test_a_frame_has_every_quantity_with_its_interval(write):
    full, cpr = strategies_frame(write()).to_dict("records")
    assert full["overhead_fraction"] == pytest.approx(0.25)
    assert full["ettr"] == pytest.approx(0.8, abs=0.01)
    assert cpr["pls"] == pytest.approx(0.1)
    assert cpr["pls"] < cpr["pls_high"]
    assert (cpr["interval_h"], cpr["decision"]) == (8.0, "partial")


def test_a_comparison_shows_both_means_and_the_difference(write, made):
    cheaper = made.strategy(made.full, [0.5, 0.5, 0.5], [0.5, 1.5, 2.5])
    b = write(
        outcome=Outcome(made.useful_h, made.cluster, (cheaper,)), identity=Identity("b", "b", {})
    )
    text = printed([differences_table(compare(write(), b))])
    row = next(line for line in text.splitlines() if "overhead, %" in line)
    assert row.split("time")[1].split() == ["25.0", "20.0", "-5.00"]  # exact
    assert "PLS" not in text  # zero in both


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1e-12, "0"),
        (0.0004, "0.0004"),
        (1.434, "1.43"),
        (9.996, "10.0"),
        (99.96, "100"),
        (-5.0, "-5.00"),
        (1661.1, "1,661"),
        (nan, "–"),
    ],
)
def test_numbers_have_about_three_digits(value, text):
    assert significant(value) == text


def test_intervals_have_the_digits_of_their_value():
    assert with_interval(10.23, 0.613) == "10.2 ± 0.6"
    assert with_interval(6.75, 0.0031) == "6.7500 ± 0.0031"
    assert with_interval(6.75, 0.0045) == "6.750 ± 0.004"
    assert with_interval(1661.1, 1234.5) == "1,661 ± 1,234"
    assert with_interval(5.0, nan) == "5.00"
    assert with_interval(5.0, 0.0) == "5.00"  # exact: no interval


def test_times_have_the_unit_that_suits_them():
    assert [hours(h) for h in (0, 30 / 3600, 0.094, 2.049, 1200, nan)] == [
        "0 h",
        "30 s",
        "5.64 min",
        "2.05 h",
        "1,200 h",
        "–",
    ]


def test_how_often_a_policy_saves_in_words():
    whole = paper_policy("partial", RELOAD, 2.05, "given")
    assert saves(whole, 50.0) == "every 2.05 h"
    assert saves(replace(whole, interval_h=inf), 50.0) == "no saves"
    assert saves(replace(whole, interval_h=60.0), 50.0) == "60 h: no saves"
    assert saves(replace(whole, interval_h=50.0), 50.0) == "50 h: no saves"
    by_priority = replace(whole, sub_saves=SubSaves("mfu"))
    assert saves(by_priority, 50.0) == "every 2.05 h"
    lazy = replace(by_priority, interval_h=60.0)
    assert saves(lazy, 50.0) == "12.5 % of the rows every 7.5 h"
    assert saves(replace(lazy, interval_h=50.0), 50.0).endswith("every 6.25 h")
    assert saves(replace(lazy, interval_h=600.0), 50.0) == "600 h: no saves"


def test_a_precision_that_was_not_reached_is_said(made, write):
    spread = (made.strategy(made.full, [1, 2], [0, 0]),)
    for precision, n_said in ((0.01, 1), (100.0, 0), (None, 0)):
        outcome = Outcome(made.useful_h, made.cluster, spread, precision)
        said = list(verdicts(write(outcome=outcome, identity=Identity(f"p{precision}", "p", {}))))
        assert len(said) == n_said
        assert all("not to the 1.00 % asked for" in line for line in said)
