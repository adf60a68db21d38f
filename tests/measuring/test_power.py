"""So many seeds tell a loss from nothing as often as was promised."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cprsim.errors import ParameterError
from cprsim.measuring.power import seeds_for

N_TIMES = 20_000


def told(n_seeds: int, limit: float, spread: float) -> float:
    """Share of simulated measurements whose t-test tells the loss, which is known, from 0."""
    drawn = np.random.default_rng(7).normal(limit, spread, (N_TIMES, n_seeds))
    found = stats.ttest_1samp(drawn, 0.0, axis=1, alternative="greater")
    return float((found.pvalue < 0.05).mean())


@pytest.mark.parametrize("power", [0.8, 0.9])
@pytest.mark.parametrize("spread", [2e-4, 5e-4, 9e-4])
def test_simulated_measurements_have_the_power_and_no_fewer_seeds_do(power, spread) -> None:
    n_seeds, off = seeds_for(5e-4, power, spread), 4 * (power * (1 - power) / N_TIMES) ** 0.5
    assert told(n_seeds, 5e-4, spread) >= power - off
    assert told(n_seeds - 1, 5e-4, spread) < power + off or n_seeds == 2


def test_more_is_needed_for_a_smaller_loss_and_what_drowns_is_refused() -> None:
    assert seeds_for(1e-4, 0.9, 5e-4) > 10 * seeds_for(5e-4, 0.9, 5e-4)
    with pytest.raises(ParameterError, match="drowns in the scatter"):
        seeds_for(1e-9, 0.9, 1e-3)
