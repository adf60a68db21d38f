"""Fits of the real logs, to the digits that two independent computations printed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cprsim.failures.traces import read_infinitehbd, read_lanl
from cprsim.fitting.families import FAMILIES, Fit, fit
from cprsim.fitting.lifetimes import Lifetimes, gaps, repair_times, uptimes

LANL_FILE = "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
HBD_FILE = "infinitehbd/fault_trace.json"
DAY, MINUTE = 24.0, 1 / 60


def fits(lifetimes: Lifetimes) -> dict[str, Fit]:
    return {name: fit(family, lifetimes) for name, family in FAMILIES.items()}


def log_likelihood(fitted: Fit, unit_h: float = 1.0) -> str:
    """With times in another unit, the density of each observed time changes by it."""
    return f"{fitted.log_likelihood + fitted.n_observed * math.log(unit_h):.1f}"


def shape(fitted: Fit, digits: int = 3) -> tuple[str, str]:
    estimate = fitted.parameter("shape")
    return f"{estimate.mean:.{digits}f}", f"{estimate.standard_error:.{digits}f}"


def test_lanl_system_2_all_years(failure_logs: Path) -> None:
    lifetimes = gaps(read_lanl(failure_logs / LANL_FILE, system=2))
    assert (lifetimes.n, lifetimes.n_zero) == (5378, 1694)
    fitted = fits(lifetimes)
    assert {name: log_likelihood(one) for name, one in fitted.items()} == {
        "exponential": "-19594.8",
        "weibull": "-19088.7",
        "gamma": "-19171.0",
        "lognormal": "-19402.6",
    }
    assert shape(fitted["weibull"]) == ("0.740", "0.008")
    assert shape(fitted["gamma"]) == ("0.641", "0.010")


@pytest.mark.parametrize(
    ("period", "weibull"),
    [
        (("2000-01-01", "2006-01-01"), ("0.825", "0.011")),  # from expected information: .012
        ((None, "2000-01-01"), ("0.663", "0.011")),
    ],
)
def test_lanl_system_2_by_period(
    failure_logs: Path, period: tuple[str | None, str], weibull: tuple[str, str]
) -> None:
    lifetimes = gaps(read_lanl(failure_logs / LANL_FILE, system=2, period=period))
    assert shape(fit(FAMILIES["weibull"], lifetimes)) == weibull


def test_lanl_node_22(failure_logs: Path) -> None:
    outages = read_lanl(failure_logs / LANL_FILE, system=2, period=("2000-01-01", "2006-01-01"))
    lifetimes = gaps(outages.where(outages.node == outages.node_names.index("2/22")))
    assert (lifetimes.n + lifetimes.n_zero, lifetimes.n_zero) == (191, 0)
    fitted = fits(lifetimes)
    assert shape(fitted["weibull"]) == ("0.735", "0.041")
    # likelihood ratio of one parameter: 3.84 would do
    gain = fitted["weibull"].log_likelihood - fitted["exponential"].log_likelihood
    assert 2 * gain > 30


def test_lanl_repairs(failure_logs: Path) -> None:
    lifetimes = repair_times(read_lanl(failure_logs / LANL_FILE))
    assert lifetimes.n_observed == 23_392
    fitted = fits(lifetimes)
    assert max(fitted, key=lambda name: fitted[name].log_likelihood) == "lognormal"
    assert round(float(log_likelihood(fitted["lognormal"], MINUTE))) == -138_207


def test_infinitehbd_gaps(failure_logs: Path) -> None:
    lifetimes = gaps(read_infinitehbd(failure_logs / HBD_FILE, n_nodes=400))
    assert (lifetimes.n, lifetimes.n_zero) == (527, 54)
    fitted = fits(lifetimes)
    assert {name: log_likelihood(one) for name, one in fitted.items()} == {
        "exponential": "-1978.4",
        "weibull": "-1860.6",
        "gamma": "-1856.2",
        "lognormal": "-1942.6",
    }
    assert shape(fitted["gamma"]) == ("0.490", "0.025")
    assert f"{fitted['gamma'].parameter('scale_h').mean:.1f}" == "32.1"
    assert f"{fitted['weibull'].parameter('shape').mean:.3f}" == "0.624"


def test_infinitehbd_uptimes(failure_logs: Path) -> None:
    lifetimes = uptimes(read_infinitehbd(failure_logs / HBD_FILE, n_nodes=400))
    assert (lifetimes.n_observed, lifetimes.n - lifetimes.n_observed) == (582, 399)
    assert f"{lifetimes.total_h / DAY:.0f}" == "136361"
    fitted = fits(lifetimes)
    assert {name: log_likelihood(one, DAY) for name, one in fitted.items()} == {
        "exponential": "-3757.7",
        "weibull": "-3295.4",
        "gamma": "-3277.7",
        "lognormal": "-3342.8",
    }
    weibull = fitted["weibull"]
    assert shape(weibull) == ("0.388", "0.015")
    assert f"{weibull.parameter('shape').clustered_error:.3f}" == "0.020"
    assert f"{weibull.parameter('scale_h').mean / DAY:.0f}" == "329"
    assert shape(fitted["gamma"]) == ("0.326", "0.014")
    assert f"{fitted['gamma'].parameter('scale_h').mean / DAY:.0f}" == "1457"
