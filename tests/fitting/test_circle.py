"""The circle: a log, its fit, and logs simulated from the fit that look like it."""

from dataclasses import replace
from pathlib import Path

import pytest

from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.frailty import Frailty, Shocks
from cprsim.failures.outages import Outages
from cprsim.failures.sources import Start
from cprsim.job.distributions import Weibull
from cprsim.logs.fit.correlated_fit import fit_correlated
from tests.failures.tidy import read_infinitehbd, read_lanl
from tests.fitting.logs import log_drawn
from tests.fitting.posterior_check import Portrait, check_by_simulation

N_NODES, WINDOW_H = 60, 4000.0
NODES = CorrelatedNodes(
    Weibull(0.8, 2000.0), Frailty(0.1, 6.0), Shocks(1 / 150, (2, 4), (0.7, 0.3), N_NODES),
    start=Start.FRESH,
)  # fmt: skip


def simulated(seed: int) -> Outages:
    """Nodes with lemons and shocks."""
    return log_drawn(NODES, N_NODES, WINDOW_H, seed)


def test_a_simulated_log_looks_like_those_of_its_fit() -> None:
    fitted = fit_correlated(log := simulated(1))
    # 95 % intervals: benchmarks/interval_coverage.py counts
    assert sum(map(bool, check_by_simulation(log, fitted).values())) >= 3
    short = replace(log.where(log.start_h < 240), window_h=240.0)  # has no weeks to compare
    assert check_by_simulation(short, fitted, n=20)["weekly_dispersion"] is None


@pytest.mark.long
@pytest.mark.parametrize("name", ["infinitehbd", "lanl"])
def test_real_logs_look_like_those_of_their_fits(failure_logs: Path, name: str) -> None:
    if name == "infinitehbd":
        log = read_infinitehbd(failure_logs / "infinitehbd/fault_trace.json", n_nodes=400)
    else:
        file = failure_logs / "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
        log = read_lanl(file, system=2, period=("2000-01-01", "2006-01-01"))
    found = check_by_simulation(log, fit_correlated(log), seed=1)
    assert found == dict.fromkeys(Portrait._fields, True) | {"weekly_dispersion": False}
