"""Failures of several scopes, against the processes laid over one another."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.errors import ParameterError
from tests import closed_forms
from tests.analytic.sampling import assert_mean, draws

MTBFS_H = (20.0, 50.0, 90.0)


def gaps_h() -> np.ndarray:
    """Hours between the failures of all scopes, each with its own renewal process."""
    rng, horizon_h = draws("scopes"), 4_000_000.0
    instants = []
    for mtbf_h in MTBFS_H:
        lives_h = rng.exponential(mtbf_h, int(1.2 * horizon_h / mtbf_h))
        instants.append(np.cumsum(lives_h))
        assert instants[-1][-1] > horizon_h
    merged = np.sort(np.concatenate(instants))
    return np.diff(merged[merged < horizon_h])


def test_failures_of_all_scopes_have_the_merged_mtbf() -> None:
    assert_mean(gaps_h(), closed_forms.merged_mtbf_h(MTBFS_H))


def test_failures_of_all_scopes_are_one_poisson_process() -> None:
    gaps, mtbf_h = gaps_h(), closed_forms.merged_mtbf_h(MTBFS_H)
    assert_mean(gaps**2, 2 * mtbf_h**2)
    assert_mean(gaps > 2 * mtbf_h, float(np.exp(-2.0)))
    assert_mean((gaps[1:] - gaps.mean()) * (gaps[:-1] - gaps.mean()), 0.0)


def test_scopes_without_an_mtbf_are_refused() -> None:
    for mtbfs_h in ([], [0.0], [20.0, -1.0]):
        with pytest.raises(ParameterError):
            closed_forms.merged_mtbf_h(mtbfs_h)
