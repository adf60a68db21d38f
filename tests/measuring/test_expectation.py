"""What is said before a measurement: the model beside its baselines, and what to expect."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cprsim.measuring.expectation import Expected, expect
from cprsim.measuring.runs import setting_of
from cprsim.scenario.reading import load_scenario
from tests.making import call

pytestmark = pytest.mark.long

LEARNED = Expected(0.755, 0.52, 0.76, 11_000)


def test_a_model_that_guesses_has_hardly_learned() -> None:
    assert not LEARNED.hardly_learned
    assert not list(LEARNED.warnings(0.2))
    guesses = replace(LEARNED, auc=0.51)
    assert guesses.hardly_learned
    (warning,) = guesses.warnings(0.2)
    assert "hardly learned: AUC 0.510" in warning
    assert "kernel.samples" in warning
    assert replace(LEARNED, auc=0.6).hardly_learned  # logistic regression gains far more


def test_what_is_expected_stands_in_the_curve_and_warnings_come_first(scenario: Path) -> None:
    small = "kernel.samples=2000"
    before = expect(setting_of(load_scenario(scenario, [small]), 1))
    out = scenario.with_name("curve.json")
    options = f"--strategy partial --seeds 3 --workers 1 --out {out} --set {small}"
    called = call("measure", scenario, *options.split())
    assert called.exit_code == 0, called.output
    expected = json.loads(out.read_text("utf-8"))["manifest"]["expected"]
    assert expected["auc"] == pytest.approx(before.auc)
    assert expected["n_test_clicks"] == before.n_test_clicks
    assert "clicks in the test are few" in called.stderr
    assert "NOT FIT FOR USE" in called.stdout
