"""So many seeds tell a loss from nothing as often as was promised."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cprsim.curves import read_curve
from cprsim.curves.choosing import shipped_path
from cprsim.errors import ParameterError
from cprsim.measuring.design import Design
from cprsim.measuring.power import planned, seeds_for, spread_of
from cprsim.staleness import Metric

N_TIMES = 20_000
SHIPPED = shipped_path("criteo-kaggle-linear")


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


def test_the_shipped_curve_tells_the_scatter_of_its_seeds() -> None:
    curve = read_curve(SHIPPED)
    _, n_pilot = spread_of(curve, Metric.AUC)
    by_seed = curve.checks["auc"]["slopes"]["partial"]["by_seed"]
    assert n_pilot == len(by_seed) >= 8
    found = planned(curve, Metric.AUC, 2e-5, 0.9, Design(), 8)
    assert found.n_seeds >= 8
    assert found.n_runs % found.n_seeds == 0


def test_a_metric_that_the_pilot_did_not_measure_is_refused() -> None:
    with pytest.raises(ParameterError, match="does not tell how NE scatters"):
        spread_of(read_curve(SHIPPED), Metric.NE)
