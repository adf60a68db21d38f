"""The curves that come with the program: sound, of the scenarios that they are named for."""

from __future__ import annotations

import pytest

from cprsim.scenario.curves import chosen_curve
from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS


@pytest.mark.parametrize("name", ["criteo-kaggle", "criteo-terabyte"])
@pytest.mark.parametrize(
    ("schedule", "overrides"),
    [("linear", []), ("constant", ["kernel.schedule=constant", "kernel.rate=0.1"])],
)
def test_the_scenarios_of_the_paper_have_their_curves(
    name: str, schedule: str, overrides: list[str]
) -> None:
    """At a rate that falls to 0, and at the paper's constant one."""
    curve = chosen_curve(load_scenario(SCENARIOS / f"{name}.yaml", overrides))
    assert curve.name == f"{name}-{schedule}"
    assert curve.notes == ()
