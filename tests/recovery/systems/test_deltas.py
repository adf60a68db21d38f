"""Incremental saves: what is written and read, by the rule and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.failures.distributions import Constant
from cprsim.recovery.systems.deltas import (
    bits_for,
    increment_fraction,
    increments_before_whole,
    mean_fractions,
)
from tests.recovery.systems.by_hand import (
    LOAD_H,
    NODE,
    PERSIST_H,
    SNAPSHOT_H,
    approx,
    facts,
    planned,
    spent,
)

SIZES = [0.26 * i**0.28 for i in range(1, 9)]  # the 8 increments between two whole saves


def test_intermittent_increments_write_what_the_rule_says_and_read_one_of_them() -> None:
    written, read = mean_fractions("intermittent", 0.26, 0.28, 1000)
    assert written == approx((1 + sum(SIZES)) / 9)
    assert written == pytest.approx(0.4515, abs=5e-5)
    assert read == approx(1 + sum(SIZES) / 9)


def test_a_short_job_ends_before_the_next_whole_save() -> None:
    written, _ = mean_fractions("intermittent", 0.26, 0.28, 3)
    assert written == approx((1 + SIZES[0] + SIZES[1]) / 3)
    assert mean_fractions("one-shot", 0.26, 0.28, 1) == (1.0, 1.0)


def test_a_restore_of_consecutive_increments_reads_all_of_them() -> None:
    written, read = mean_fractions("consecutive", 0.25, 0.0, 5)
    assert written == approx((1 + 4 * 0.25) / 5)
    assert read == approx(1 + 0.25 * (0 + 1 + 2 + 3 + 4) / 5)


def test_one_shot_increments_go_on_growing() -> None:
    written, read = mean_fractions("one-shot", 0.5, 1.0, 4)  # .5, then whole
    assert (written, read) == (approx((1 + 0.5 + 1 + 1) / 4), approx(1 + 2.5 / 4))


@pytest.mark.parametrize(("restores", "bits"), [(0, 2), (1, 2), (2, 3), (3, 3), (20, 4), (21, 8)])
def test_more_restores_take_more_bits(restores: float, bits: int) -> None:
    assert bits_for(restores) == bits


def test_check_n_run_writes_and_reads_by_its_rule_and_its_bits() -> None:
    policy = planned("check-n-run", bits=8)  # each half hour, as its paper
    (capture,) = policy.captures
    assert capture.every_h == 0.5
    assert capture.stall == Constant(SNAPSHOT_H)
    assert capture.background.mean_h == approx((1 + sum(SIZES)) / 9 * 8 / 32 * PERSIST_H)
    hours = spent(policy, (0.96, (0,), NODE))
    assert hours["load"] == approx((1 + sum(SIZES) / 9) * 8 / 32 * LOAD_H)


def test_bits_follow_from_the_failures_expected() -> None:
    few, many = (planned("check-n-run", facts(mtbf_h=m)).captures[0] for m in (16.0, 0.5))
    assert many.background.mean_h == approx(4 * few.background.mean_h)  # 8 bits and 2


def test_incrcp_writes_increments_and_reads_each_row_once() -> None:
    policy = planned("incrcp", every=4.0, first=0.25)
    hours = spent(policy, (4.125 + 0.25 * PERSIST_H + 0.125, (0,), NODE))
    assert hours["lost"] == approx(0.25 * PERSIST_H + 0.125)
    assert hours["load"] == approx(LOAD_H)


def test_ssdc_writes_what_lies_above_the_threshold() -> None:
    (capture,) = planned("ssdc", fraction=0.125).captures
    assert capture.background == Constant(0.125 * PERSIST_H)


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


@given(st.floats(0.05, 0.9), st.floats(0.05, 1.5))
def test_a_store_that_follows_the_rule_is_whole_again_when_it_says(
    first: float, growth: float
) -> None:
    n = increments_before_whole(first, growth)
    sizes = saves(first, growth, n + 2)
    assert sizes[-1] == 1.0
    assert [increment_fraction(i, first, growth) for i in range(1, n + 1)] == approx(sizes[1:-1])
    written, _ = mean_fractions("intermittent", first, growth, 2 * n + 2)
    assert written == approx(sum(sizes[:-1]) / (n + 1))
