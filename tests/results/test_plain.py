"""What is read back from a results folder equals what was written, whatever it is."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.codec import decode, encode, number_from, plain_number
from cprsim.records import SubSaves
from cprsim.results import load_result
from cprsim.results.run import Recovered
from tests.generated import comparable, policies


def as_file(plain):
    """Through the text of a file."""
    return json.loads(json.dumps(plain, allow_nan=False))


@given(policies, st.booleans())
def test_a_strategy_is_read_back_as_it_was_written(policy, gave_up):
    again = decode(Recovered, as_file(encode(Recovered(policy, gave_up))))
    assert comparable(again) == comparable(Recovered(policy, gave_up))


@pytest.mark.parametrize("value", [nan, inf, -inf, 0.1])
def test_the_numbers_that_json_lacks(value):
    assert comparable(number_from(as_file(plain_number(value)))) == comparable(value)


def test_a_result_keeps_its_sub_saves(write, outcome):
    full, cpr = outcome.strategies
    sub_saves = SubSaves("mfu", 0.25, 0.01, n_large_tables=3)
    policy = replace(cpr.policy, sub_saves=sub_saves, interval_h=inf)
    made = write(outcome=replace(outcome, strategies=(full, replace(cpr, policy=policy))))
    assert load_result(made.path).policies == (full.policy, policy)
