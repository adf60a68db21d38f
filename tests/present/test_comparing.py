"""Several results beside each other: runs by their differences, others by what each says."""

from __future__ import annotations

from pathlib import Path

import pytest

import cprsim
from cprsim.curves.choosing import shipped_path
from tests.making import small_scenario
from tests.present.conftest import REPRODUCTION, made_selection


def test_two_runs_are_compared_and_the_inputs_that_differ_listed(results) -> None:
    answer = cprsim.report(results.first, results.second)
    inputs = answer.frames["inputs"]
    assert inputs.to_dict("list") == {"key": ["simulation.seed"], "A": ["1"], "B": ["2"]}
    found = answer.frames["differences"].query("quantity == 'overhead_fraction'")
    (full,) = found.query("strategy == 'full'").to_dict("records")
    assert full["difference"] == pytest.approx(full["b"] - full["a"])
    assert full["difference_low"] < full["difference"] < full["difference_high"]
    assert answer.values["paired"] == {"B": False}
    assert "Inputs that differ: simulation.seed: 1, 2." in answer.document.remarks
    assert [part.title[:3] for part in answer.document.parts] == ["A: ", "B: "]


@pytest.mark.parametrize("changed", ["simulation.seed=2", "failures.mtbf=20 h", "job.useful=30 h"])
def test_runs_that_met_other_failures_are_not_paired(changed: str) -> None:
    runs = [cprsim.run(small_scenario(), sets) for sets in ((), [changed])]
    assert cprsim.report(*runs).values["paired"] == {"B": False}


def test_a_run_beside_itself_is_paired(results) -> None:
    answer = cprsim.report(results.first, results.first)
    assert answer.values["paired"] == {"B": True}
    assert (answer.frames["differences"]["difference"].dropna() == 0).all()


@pytest.mark.parametrize("kind", ["sweep", "selection", "reproduction", "curve"])
def test_results_of_several_kinds_say_what_each_says(results, tmp_path: Path, kind: str) -> None:
    other = {
        "sweep": lambda: results.sweep,
        "selection": lambda: made_selection(tmp_path),
        "reproduction": lambda: REPRODUCTION / "systems",
        "curve": lambda: shipped_path("criteo-kaggle-linear"),
    }[kind]()
    answer = cprsim.report(results.first, other)
    assert answer.frames.keys() == {"inputs"}
    assert [said[:3] for said in answer.document.answer] == ["A: ", "B: "]
