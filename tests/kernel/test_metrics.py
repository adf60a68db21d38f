import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from cprsim.training.kernel.metrics import auc, log_loss, ndcg, quality

samples = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), st.integers(-4, 4)), min_size=2, max_size=40
).filter(lambda pairs: 0 < sum(label for label, _ in pairs) < len(pairs))


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


def test_log_loss_of_certainty_is_finite():
    assert log_loss(np.array([1.0, 0.0]), np.array([1000.0, 1000.0])) == pytest.approx(500.0)


def test_the_base_rate_as_a_prediction_has_an_entropy_and_a_calibration_of_1():
    label = np.array([0.0, 0.0, 0.0, 1.0])
    found = quality(label, np.full(4, np.log(1 / 3)))
    assert found.others == pytest.approx({"ne": 1.0, "calibration": 1.0})


def test_ndcg_of_two_lists_worked_out_by_hand():
    label, group = np.array([1, 0, 0, 1, 1, 0]), np.array([7, 7, 3, 3, 3, 9])
    score = np.array([0.1, 0.9, 0.8, 0.7, 0.6, 0.5])
    second = (1 / np.log2(3) + 1 / np.log2(4)) / (1 + 1 / np.log2(3))
    assert ndcg(label, score, group) == pytest.approx((1 / np.log2(3) + second) / 2)
    assert ndcg(label, label.astype(float), group) == 1.0
    with pytest.raises(ParameterError, match="holds a click"):
        ndcg(np.zeros(6), score, group)
