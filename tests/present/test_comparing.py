"""Runs beside each other: their differences, paired where they met the same failures."""

from __future__ import annotations

import pytest

import cprsim
from cprsim.present.answer import Answer
from tests.making import small_scenario


@pytest.fixture(scope="module")
def first() -> Answer:
    return cprsim.run(small_scenario())


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
    key = changed[0].partition("=")[0] if changed else None
    assert answer.frames["inputs"]["key"].tolist() == [key] * bool(key)
    found = answer.frames["differences"].dropna(subset=["a", "b", "difference"])
    assert (found["difference"] - (found["b"] - found["a"])).abs().max() < 1e-9
    assert (found["difference_low"] <= found["difference"] + 1e-12).all()
    same = answer.frames["differences"]["difference"].dropna() == 0
    assert same.all() == paired
