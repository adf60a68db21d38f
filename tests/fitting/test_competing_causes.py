"""One cause among others: their outages censor, and what is not known stays unknown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cprsim.failures.outages import Outages, outages_of
from cprsim.fitting.correlated_fit import fit_correlated
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.goodness import rank
from cprsim.fitting.lifetimes import FirstUptime, gaps, repair_times, uptimes
from tests.fitting.logs import write_log
from tests.making import call

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


def test_the_outages_of_other_causes_censor(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", competing(1))
    options = ("--time-unit", "h", "--from", 0, "--to", WINDOW_H, "--bootstrap", 0, "--json")
    said = json.loads(call("fit", log, *options, "--cause", "disk").stdout)
    weibull = next(one for one in said["uptimes"]["families"] if one["name"] == "weibull")
    shape, scale = (weibull["parameters"][name] for name in ("shape", "scale_h"))
    assert shape["low"] < 3.0 < shape["high"]
    assert scale["low"] < 100.0 < scale["high"]
    assert shape["high"] - shape["low"] < 0.3
    assert said["observation"]["cause"] == "disk"
    assert "# only causes with 'disk'; other outages censor up-times" in said["fragment"]
    shape, scale = fit(FAMILIES["weibull"], uptimes(competing(2).choosing("network"))).parameters
    assert shape.low < 1.0 < shape.high
    assert scale.low < 60.0 < scale.high


def test_gaps_repairs_and_groups_are_of_the_cause_alone() -> None:
    outages = outages_of(
        np.array([0, 1, 0, 1, 2]),
        np.array([10.0, 10.0, 30.0, 50.0, 50.0]),
        np.array([12.0, 13.0, 34.0, 55.0, 56.0]),
        ("disk", "network", "network", "disk", "disk"),
        n_nodes=3,
        window_h=100.0,
        origin="0 h",
    ).choosing("disk")
    assert gaps(outages).duration_h.tolist() == [40.0]
    assert gaps(outages).n_zero == 1
    assert sorted(repair_times(outages).duration_h.tolist()) == [2.0, 5.0, 6.0]
    lives = uptimes(outages, FirstUptime.NEW)
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
    print(p_values)
    assert 0.2 < np.mean(p_values) < 0.8


def test_nodes_that_differ_are_fitted_to_the_cause_alone() -> None:
    one = fit_correlated(competing(3).choosing("disk")).forms[0]
    assert one.lifetime.shape == pytest.approx(3.0, abs=0.2)
    assert one.lifetime.scale_h == pytest.approx(100.0, rel=0.05)
