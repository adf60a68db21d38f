"""Work lost to a failure, against a job that does its steps, and one that tries its saves."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.errors import ParameterError
from tests import closed_forms
from tests.analytic.sampling import assert_mean, draws

STEP_H, N_STEPS, RATE = 0.25, 40, 0.5


def hours_added(rng: np.random.Generator, *, to_the_end: bool) -> list[float]:
    """What each failure of one job adds, from the hours at which its step ends with and without."""
    useful_h = N_STEPS * STEP_H
    added = []
    for strike_h in rng.uniform(0.0, useful_h, rng.poisson(RATE * useful_h)):  # first-time work
        starts_h = np.floor(strike_h / STEP_H) * STEP_H
        starts_again_h = starts_h + STEP_H if to_the_end else strike_h
        added.append(starts_again_h + STEP_H - (starts_h + STEP_H))
    return added


def test_a_step_that_is_retried_loses_half_of_it() -> None:
    rng = draws("step/retried")
    found = [hours for _ in range(2000) for hours in hours_added(rng, to_the_end=False)]
    assert_mean(found, closed_forms.retried_step_loss_h(STEP_H))


def test_a_step_that_is_undone_and_redone_loses_all_of_it() -> None:
    rng = draws("step/redone")
    found = [hours for _ in range(50) for hours in hours_added(rng, to_the_end=True)]
    assert found == pytest.approx([closed_forms.redone_step_loss_h(STEP_H)] * len(found))


@pytest.mark.parametrize("p_corrupt", [0.0, 0.1, 0.5])
def test_corrupt_saves_cost_what_a_job_that_tries_them_loses(p_corrupt: float) -> None:
    rng, interval_h, n_saves = draws(f"corrupt/{p_corrupt}"), 1.5, 400
    skipped, lost_h = [], []
    for strike_h in rng.uniform(n_saves - 100, n_saves, 10_000) * interval_h:
        save = int(strike_h // interval_h)
        tried = 0
        while rng.random() < p_corrupt:
            save, tried = save - 1, tried + 1
        assert save > 0
        skipped.append(tried)
        lost_h.append(strike_h - save * interval_h)
    assert_mean(skipped, closed_forms.generations_skipped(p_corrupt))
    assert_mean(lost_h, closed_forms.corrupt_saves_loss_h(interval_h, p_corrupt))


def test_shares_outside_their_range_are_refused() -> None:
    for p_corrupt in (-0.1, 1.0, 1.5):
        with pytest.raises(ParameterError):
            closed_forms.generations_skipped(p_corrupt)
    with pytest.raises(ParameterError):
        closed_forms.corrupt_saves_loss_h(-1.0, 0.1)
    with pytest.raises(ParameterError):
        closed_forms.retried_step_loss_h(-1.0)
    with pytest.raises(ParameterError):
        closed_forms.redone_step_loss_h(float("inf"))
