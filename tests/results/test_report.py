"""Tables and sentences: what is shown, at every width, and what is left out."""

from __future__ import annotations

from cprsim.experiments.pipeline import Outcome
from cprsim.present.run_sentences import savings, verdicts
from cprsim.recovery.policy import RELOAD
from cprsim.results.identity import Identity
from tests.making import paper_policy
from tests.results import conftest as made


def test_verdicts_say_what_the_numbers_do_not(write):
    never = made.strategy(made.NONE, [1, 1], [0, 0], finished=[False, False])
    partly = made.strategy(made.FULL, [1, 1], [0, 0], finished=[True, False])
    longer = paper_policy("lazy", RELOAD, 11.0, "given")
    strategies = (never, partly, made.strategy(longer, [0, 0], [0, 0]))
    said = list(verdicts(write(outcome=Outcome(made.USEFUL_H, made.CLUSTER, strategies))))
    assert len(said) == 3
    assert said[0].startswith("none never finishes: of 2 replications none was done")
    assert said[1].startswith("full often does not finish: 50.0 % of 2 replications")
    assert said[2] == "lazy never saves: its interval of 11 h is longer than the job."


def test_savings_are_against_a_full_recovery_that_finished(write):
    (said,) = savings(write())
    assert said.startswith("cpr removes 96.0 % of full's overhead")
    stuck = made.strategy(made.FULL, [1, 1], [0, 0], finished=[False, False])
    cpr = made.strategy(made.CPR, [0.1, 0.1], [0, 0])
    outcome = Outcome(made.USEFUL_H, made.CLUSTER, (stuck, cpr))
    assert not list(savings(write(outcome=outcome, identity=Identity("stuck", "stuck", {}))))


def test_a_precision_that_was_not_reached_is_said(write):
    spread = (made.strategy(made.FULL, [1, 2], [0, 0]),)
    for precision, n_said in ((0.01, 1), (100.0, 0)):
        outcome = Outcome(made.USEFUL_H, made.CLUSTER, spread, precision)
        said = list(verdicts(write(outcome=outcome, identity=Identity(f"p{precision}", "p", {}))))
        assert len(said) == n_said
        assert all("not to the 1.00 % asked for" in line for line in said)
