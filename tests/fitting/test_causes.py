"""Causes that compete: fits of one, which the others censor."""

import numpy as np
import pytest

from cprsim.failures.outages import Outages, outages_of
from cprsim.logs.fit.correlated_fit import fit_correlated
from cprsim.logs.fit.families import WEIBULL, fit
from cprsim.logs.fit.goodness import rank
from cprsim.logs.fit.lifetimes import gaps, repair_times, uptimes
from tests.fitting.logs import outages

WINDOW_H = 8760.0


def competing(seed: int, n_nodes: int = 30) -> Outages:
    """Disks with Weibull up-times (3.0, 100 h) beside networks with exponential ones of 60 h.

    Whatever is repaired, the node is new after it.
    """
    rng = np.random.default_rng(seed)
    shape = (n_nodes, 400)
    disk_h, network_h = 100 * rng.weibull(3.0, shape), rng.exponential(60.0, shape)
    at_h = np.cumsum(np.minimum(disk_h, network_h), axis=1)
    node, inside = np.repeat(np.arange(n_nodes), 400), (at_h < WINDOW_H).ravel()
    cause = np.where(disk_h < network_h, "disk", "network").ravel()
    return outages_of(
        node[inside], at_h.ravel()[inside], at_h.ravel()[inside], tuple(cause[inside].tolist()),
        n_nodes=n_nodes, window_h=WINDOW_H, origin="0 h",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "shape", "scale_h"), [("disk", 3.0, 100.0), ("network", 1.0, 60.0)]
)
def test_the_outages_of_other_causes_censor(cause: str, shape: float, scale_h: float) -> None:
    log = competing(1).choosing(cause)
    fitted = fit(WEIBULL, uptimes(log))
    for name, truth in (("shape", shape), ("scale_h", scale_h)):
        number = fitted.by_name[name]
        assert number.low < truth < number.high < 1.1 * number.low
    alike = fit_correlated(log).forms[0].by_name
    assert alike["shape"].mean == pytest.approx(shape, rel=0.07)
    assert alike["scale_h"].mean == pytest.approx(scale_h, rel=0.05)


def test_gaps_repairs_and_groups_are_of_the_cause_alone() -> None:
    log = outages(
        (0, 10, 12, "disk"), (1, 10, 13, "network"), (0, 30, 34, "network"), (1, 50, 55, "disk"),
        (2, 50, 56, "disk"), n_nodes=3,
    ).choosing("disk")  # fmt: skip
    assert gaps(log).duration_h.tolist() == [40.0]
    assert gaps(log).n_zero == 1
    assert sorted(repair_times(log).duration_h.tolist()) == [2.0, 5.0, 6.0]
    lives = uptimes(log)
    rows = zip(
        lives.unit, lives.duration_h, lives.observed, lives.competed, lives.limit_h, strict=True
    )
    assert list(rows) == [
        (0, 10.0, True, False, 100.0),  # ends by a disk
        (0, 18.0, False, True, 18.0),  # would have gone on but for the network
        (0, 66.0, False, False, 66.0),  # nobody looked any more
        (1, 10.0, False, True, 10.0),
        (1, 37.0, True, False, 87.0),
        (1, 45.0, False, False, 45.0),
        (2, 50.0, True, False, 100.0),
        (2, 44.0, False, False, 44.0),
    ]


def test_the_true_family_is_not_rejected_for_what_competes() -> None:
    p_values = []
    for seed in range(6):
        lives = uptimes(competing(10 + seed, n_nodes=4).choosing("disk"))
        p_values.append(rank(lives, n_bootstrap=39, seed=seed, families=["weibull"]).best.p_value)
    assert 0.2 < np.mean(p_values) < 0.8
