"""The curves that come with the program: sound, of the scenarios that they are named for."""

from __future__ import annotations

import pytest

from cprsim.curves.choosing import chosen_curve, shipped, shipped_names
from cprsim.recovery.losses import ALWAYS
from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_curve_says_what_made_it_and_stale_shards_cost(name: str) -> None:
    curve = shipped(name)
    assert curve.command.startswith("cprsim measure ")
    assert curve.n_samples == 300_000 * 6 // 7  # of the run: a seventh of the clicks is the test
    for metric in ALWAYS:
        partial = curve.of("partial", metric)
        assert partial.loss[-1] > 3 * partial.standard_error[-1] > 0
        for strategy in ("mfu", "ssu", "scar", "round-robin"):
            assert 0 < curve.of(strategy, metric).loss[-1] < 1.5 * partial.loss[-1]


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
