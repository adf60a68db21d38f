"""What is said before a measurement: the model beside its baselines, and what to expect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cprsim.scenario.reading import load_scenario
from cprsim.training.measuring.expectation import Expected, expect
from cprsim.training.measuring.runs import setting_of

LEARNED = Expected(0.755, 0.52, 0.76, 11_000)


def test_a_model_that_guesses_has_hardly_learned() -> None:
    assert not LEARNED.hardly_learned
    assert not list(LEARNED.warnings(0.2))
    guesses = replace(LEARNED, auc=0.51, n_test_clicks=900)
    assert guesses.hardly_learned
    learned, few = guesses.warnings(0.2)
    assert "hardly learned: AUC 0.510, where logistic regression reaches 0.760" in learned
    assert "900 clicks in the test are few" in few
    assert replace(LEARNED, auc=0.6).hardly_learned  # logistic regression gains far more


def test_one_run_without_failures_stands_beside_logistic_regression(scenario: Path) -> None:
    stand_in = setting_of(load_scenario(scenario, ["kernel.samples=4000"]), 1)
    model, expected = stand_in.trainer(), expect(stand_in)
    model.run()
    assert expected.auc == model.evaluate().auc
    assert expected.n_test_clicks == stand_in.test.label.sum()
    assert 0.6 < expected.logistic_auc < 0.9
