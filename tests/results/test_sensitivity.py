"""How unknown inputs are drawn together to see how often a decision holds."""

from __future__ import annotations

from math import floor, log
from typing import Any

import numpy as np
import pytest

from cprsim.results.sensitivity import N_DRAWS, sensitivity
from cprsim.scenario.job import Values


@pytest.fixture
def drawn():
    """The joint draws of one unknown input."""

    def draws_of(*written: Any, unit: str = "") -> list[Any]:
        asked = []

        def costs_of(all_changes):
            asked.append([changes["key"] for changes in all_changes])
            return {"a": np.ones(len(all_changes)), "b": np.full(len(all_changes), 2.0)}

        numbers = tuple(float(str(one).removesuffix(unit)) for one in written)
        unknown = {"key": Values(written, numbers, unit)}
        found = sensitivity(unknown, "a", costs_of, 1)
        assert (found.share, found.n_draws, dict(found.others)) == (1.0, N_DRAWS, {})
        assert asked[0] == list(written)
        return asked[1]

    return draws_of


def hours(drawn: list[str]) -> list[float]:
    assert all(one.endswith(" h") for one in drawn)
    return [float(one.removesuffix(" h")) for one in drawn]


def test_one_draw_lies_in_each_part_of_the_way_between_the_ends(drawn) -> None:
    shares = [(value - 10) / 30 for value in hours(drawn("10 h", "20 h", "40 h", unit="h"))]
    assert sorted(floor(N_DRAWS * share) for share in shares) == list(range(N_DRAWS))


@pytest.mark.parametrize("times", [5, 100])
def test_where_the_ends_are_far_apart_the_parts_are_factors(drawn, times: int) -> None:
    found = hours(drawn("2 h", f"{2 * times} h", unit="h"))
    shares = [log(value / 2) / log(times) for value in found]
    assert sorted(floor(N_DRAWS * share) for share in shares) == list(range(N_DRAWS))


def test_what_counts_is_drawn_as_whole_numbers(drawn) -> None:
    found = drawn(4, 6, 8)
    assert all(isinstance(value, int) for value in found)
    assert set(found) == {4, 5, 6, 7, 8}
