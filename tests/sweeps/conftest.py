"""A small scenario to sweep, in the folder that the test works in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cprsim.commands.sweep.points import Point, points_of
from cprsim.scenario.reading import load_scenario
from tests.making import small_scenario

SCENARIO = small_scenario(
    "none, full, {strategy: partial, interval: young}, {strategy: cpr, target_pls: 0.1}",
    mtbf="30 h",
)

Points = Callable[..., tuple[Point, ...]]


@pytest.fixture
def scenario(scenario: Path) -> Path:
    scenario.write_text(SCENARIO, "utf-8")
    return scenario


@pytest.fixture
def points(scenario: Path) -> Points:
    """The points of the small scenario over some axes."""

    def of(*over: str, overrides: tuple[str, ...] = ()) -> tuple[Point, ...]:
        return points_of(load_scenario(scenario, overrides, over))

    return of
