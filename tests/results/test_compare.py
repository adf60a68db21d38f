"""Differences between two results."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cprsim.errors import ParameterError
from cprsim.experiments.pipeline import Outcome
from cprsim.results.compare import compare, same_failures, welch
from cprsim.results.identity import Identity

OTHER = {"command": [], "seed": 2, "failures_digest": "other"}


@pytest.fixture
def cheaper(made):
    """The made-up outcome with half an hour less of lost work everywhere."""
    full = made.strategy(made.full, [0.5, 0.5, 0.5], [0.5, 1.5, 2.5])
    return Outcome(made.useful_h, made.cluster, (full,))


def overhead(table):
    return table[table["quantity"] == "overhead_fraction"].iloc[0]


def test_results_with_the_same_failures_are_paired(write, cheaper):
    a, b = write(), write(outcome=cheaper, identity=Identity("b", "b", {}))
    assert same_failures(a, b)
    row = overhead(compare(a, b))
    assert row["difference"] == pytest.approx(-0.05)
    width = row["difference_high"] - row["difference_low"]
    assert width == pytest.approx(0, abs=1e-12)  # the same in every pair


def test_results_with_other_failures_are_independent_samples(write, cheaper):
    a, b = write(), write(outcome=cheaper, identity=Identity("b", "b", {}), about=OTHER)
    assert not same_failures(a, b)
    row = overhead(compare(a, b))
    assert row["difference"] == pytest.approx(-0.05)
    # equal variances 0.1^2 and sizes 3: t(0.975, 4) * 0.1 * sqrt(2 / 3)
    half_width = row["difference_high"] - row["difference"]
    assert half_width == pytest.approx(2.7764451 * 0.1 * (2 / 3) ** 0.5)


def test_pairing_uses_the_replications_that_both_have(write, made):
    longer = made.strategy(made.full, [0.5] * 4, [0.5, 1.5, 2.5, 99.0])
    b = write(
        outcome=Outcome(made.useful_h, made.cluster, (longer,)), identity=Identity("b", "b", {})
    )
    row = overhead(compare(write(), b))
    assert row["difference"] == pytest.approx(-0.05)
    assert row["n"] == 3


def test_results_without_a_common_strategy_are_refused(write, outcome):
    full, cpr = outcome.strategies
    a = write(outcome=replace(outcome, strategies=(full,)), identity=Identity("a", "a", {}))
    b = write(outcome=replace(outcome, strategies=(cpr,)), identity=Identity("b", "b", {}))
    with pytest.raises(ParameterError, match=r"A has full; B has cpr"):
        compare(a, b)


def test_unfinished_replications_have_no_difference(write, made):
    stuck = made.strategy(made.full, [1, 1, 1], [0, 0, 0], finished=[True, False, True])
    b = write(
        outcome=Outcome(made.useful_h, made.cluster, (stuck,)),
        identity=Identity("b", "b", {}),
        started=datetime.now(UTC),
    )
    assert np.isnan(overhead(compare(write(), b))["difference"])


samples = st.lists(st.floats(-100, 100), min_size=2, max_size=30).map(np.array)


@given(samples, samples)
def test_welchs_interval_is_scipys(a, b):
    if np.ptp(a) > 1e-3 and np.ptp(b) > 1e-3:
        interval = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        assert welch(a, b).triple[1:] == pytest.approx((interval.low, interval.high), abs=1e-9)
