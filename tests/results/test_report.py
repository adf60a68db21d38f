"""Tables and sentences: what is shown, at every width, and what is left out."""

from __future__ import annotations

import pytest

from cprsim.experiments.pipeline import Outcome
from cprsim.present.comparison import differences_table
from cprsim.present.run import strategies_frame
from cprsim.present.run_sentences import savings, verdicts
from cprsim.recovery.policy import RELOAD
from cprsim.results.compare import compare
from cprsim.results.identity import Identity
from tests.making import paper_policy
from tests.results.conftest import printed


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


def test_a_precision_that_was_not_reached_is_said(made, write):
    spread = (made.strategy(made.full, [1, 2], [0, 0]),)
    for precision, n_said in ((0.01, 1), (100.0, 0), (None, 0)):
        outcome = Outcome(made.useful_h, made.cluster, spread, precision)
        said = list(verdicts(write(outcome=outcome, identity=Identity(f"p{precision}", "p", {}))))
        assert len(said) == n_said
        assert all("not to the 1.00 % asked for" in line for line in said)
