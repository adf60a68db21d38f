"""What single jobs lose: a quantile of the sample, and how well it is known."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from cprsim.selector.limit import pls_alone, quantile_loss
from cprsim.staleness.expected import Prediction

LOST = np.arange(101.0)[::-1]  # 100 first, 0 last


@pytest.mark.parametrize("risk", [0.5, 0.9])
def test_the_error_is_half_of_what_lies_a_binomial_deviation_to_either_side(risk: float) -> None:
    found = quantile_loss(pls_alone(LOST), risk)
    assert found.mean == pytest.approx(100 * risk)
    assert found.standard_error == pytest.approx(sqrt(101 * risk * (1 - risk)))
    assert found.degrees == pytest.approx(100)


def test_the_error_of_the_curve_is_that_of_the_job_which_is_the_quantile() -> None:
    nowhere = np.zeros(101, dtype=bool)
    found = quantile_loss(Prediction(LOST, LOST / 10, nowhere, 5.0), 0.9)
    assert found.standard_error == pytest.approx(sqrt(101 * 0.9 * 0.1 + 9.0**2))
