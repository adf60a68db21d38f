"""Check-N-Run's rule, against a store that follows it save by save and all other periods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.analytic.systems import (
    consecutive_store_fraction,
    increment_fraction,
    increments_before_whole,
    intermittent_save_fraction,
)
from cprsim.errors import ParameterError

FIRST, GROWTH = 0.26, 0.28  # Check-N-Run's fit, secondary


def saves(first: float, growth: float, n_saves: int) -> list[float]:
    """Sizes of a store's saves, which is whole again when that pays by the rule."""
    sizes: list[float] = []
    since_whole: list[float] = []
    for _ in range(n_saves):
        n_increments = len(since_whole) - 1
        whole_pays = not since_whole or (
            n_increments > 0 and sum(since_whole) <= len(since_whole) * since_whole[-1]
        )
        if whole_pays:
            since_whole = [1.0]
        else:
            since_whole.append(min(1.0, first * len(since_whole) ** growth))
        sizes.append(since_whole[-1])
    return sizes


def test_a_store_that_follows_the_rule_is_whole_again_after_eight_increments() -> None:
    sizes = saves(FIRST, GROWTH, 9 * 20)
    assert [i for i, size in enumerate(sizes) if size == 1.0] == list(range(0, 180, 9))
    assert increments_before_whole(FIRST, GROWTH) == 8
    mean = sum(sizes) / len(sizes)
    assert mean == pytest.approx(0.4515, abs=5e-5)
    assert intermittent_save_fraction(FIRST, GROWTH) == pytest.approx(mean, rel=1e-12)


@given(st.floats(0.05, 0.9), st.floats(0.05, 1.5))
def test_a_store_of_other_growth_follows_the_rule_too(first: float, growth: float) -> None:
    n = increments_before_whole(first, growth)
    sizes = saves(first, growth, n + 2)
    since_whole, next_save = sizes[1:-1], sizes[-1]
    assert len(since_whole) == n
    assert next_save == 1.0
    found = [increment_fraction(i, first, growth) for i in range(1, n + 1)]
    assert found == pytest.approx(since_whole)
    mean = sum(sizes[:-1]) / (n + 1)
    assert intermittent_save_fraction(first, growth) == pytest.approx(mean)


def test_the_rule_ends_one_save_after_the_best_period() -> None:
    """Of all fixed periods, one with an increment less writes least; the rule is 0.4 % above."""
    means = {
        n: (1 + sum(FIRST * i**GROWTH for i in range(1, n + 1))) / (n + 1) for n in range(1, 60)
    }
    best = min(means, key=means.__getitem__)
    assert best == increments_before_whole(FIRST, GROWTH) - 1
    rule = intermittent_save_fraction(FIRST, GROWTH)
    assert means[best] < rule < 1.005 * means[best]


def test_consecutive_increments_take_up_nearly_four_models_after_eleven() -> None:
    stored = 1.0
    for _ in range(11):
        stored += FIRST
    assert stored == pytest.approx(3.86)
    assert consecutive_store_fraction(11, FIRST) == pytest.approx(stored)
    assert consecutive_store_fraction(0, FIRST) == 1.0


def test_increments_that_do_not_grow_are_never_replaced() -> None:
    with pytest.raises(ParameterError):
        increments_before_whole(FIRST, 0.0)
    assert increments_before_whole(1.0, 0.0) == 1


def test_sizes_that_can_not_be_are_refused() -> None:
    with pytest.raises(ParameterError):
        increment_fraction(0, FIRST, GROWTH)
    with pytest.raises(ParameterError):
        increment_fraction(1, 1.1, GROWTH)
    with pytest.raises(ParameterError):
        intermittent_save_fraction(FIRST, -0.1)
    with pytest.raises(ParameterError):
        consecutive_store_fraction(-1, FIRST)
