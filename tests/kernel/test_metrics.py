from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from cprsim.kernel.metrics import auc, log_loss

samples = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), st.integers(-4, 4)), min_size=2, max_size=40
).filter(lambda pairs: 0 < sum(label for label, _ in pairs) < len(pairs))


def test_auc_at_its_limits():
    label = np.array([0, 0, 1, 1])
    assert auc(label, np.array([1, 2, 3, 4])) == 1.0
    assert auc(label, np.array([4, 3, 2, 1])) == 0.0
    assert auc(label, np.zeros(4)) == 0.5


@pytest.mark.parametrize("label", [[0, 0], [1, 1]])
def test_auc_of_one_class_is_an_error(label):
    with pytest.raises(ParameterError, match="clicks and non-clicks"):
        auc(np.array(label), np.array([0.1, 0.2]))


@given(samples)
def test_auc_counts_pairs_and_ties_half(pairs):
    clicked = [score for label, score in pairs if label]
    others = [score for label, score in pairs if not label]
    wins = sum((c > o) + 0.5 * (c == o) for c in clicked for o in others)
    label, score = np.array(pairs).T
    assert auc(label, score) == pytest.approx(wins / (len(clicked) * len(others)))


def test_log_loss_of_even_odds_is_a_bit():
    assert log_loss(np.array([0.0, 1.0]), np.zeros(2)) == pytest.approx(np.log(2))


def test_log_loss_of_certainty_is_finite():
    assert log_loss(np.array([1.0, 0.0]), np.array([1000.0, 1000.0])) == pytest.approx(500.0)
