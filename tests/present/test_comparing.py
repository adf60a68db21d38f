"""Runs beside each other: their differences, paired where they met the same failures."""

from __future__ import annotations

import pytest

import cprsim
from cprsim.present.answer import Answer
from tests.making import small_scenario


@pytest.fixture(scope="module")
def first() -> Answer:
    return cprsim.run(small_scenario())


def test_two_runs_are_compared_and_the_inputs_that_differ_listed(first: Answer) -> None:
    answer = cprsim.report(first, cprsim.run(small_scenario(), seed=2))
    inputs = answer.frames["inputs"]
    assert inputs.to_dict("list") == {"key": ["simulation.seed"], "A": ["1"], "B": ["2"]}
    found = answer.frames["differences"].query("quantity == 'overhead_fraction'")
    (full,) = found.query("strategy == 'full'").to_dict("records")
    assert full["difference"] == pytest.approx(full["b"] - full["a"])
    assert full["difference_low"] < full["difference"] < full["difference_high"]
    assert "Inputs that differ: simulation.seed: 1, 2." in answer.document.remarks
    assert [part.title[:3] for part in answer.document.parts] == ["A: ", "B: "]


@pytest.mark.parametrize(
    ("changed", "paired"),
    [
        ([], True),
        (["simulation.seed=2"], False),
        (["failures.mtbf=20 h"], False),
        (["job.useful=30 h"], False),
    ],
)
def test_runs_are_paired_where_they_met_the_same_failures(
    first: Answer, changed: list[str], paired: bool
) -> None:
    answer = cprsim.report(first, cprsim.run(small_scenario(), changed))
    assert answer.values["paired"] == {"B": paired}
    same = answer.frames["differences"]["difference"].dropna() == 0
    assert same.all() == paired
