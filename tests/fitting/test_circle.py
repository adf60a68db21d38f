"""The circle: a log, its fit, and logs simulated from the fit that look like it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.failures.correlated import CorrelatedNodes, Shocks
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import Lemons
from cprsim.failures.outages import Outages, outages_of, with_lives
from cprsim.failures.sources import Start
from cprsim.failures.traces import read_infinitehbd, read_lanl
from cprsim.fitting import posterior_check
from cprsim.fitting.correlated_fit import fit_correlated
from cprsim.fitting.posterior_check import check_by_simulation
from cprsim.records import Cluster, Holds, Role
from tests.fitting.logs import log_of, write_log
from tests.fitting.test_lives import fleet
from tests.making import call

STATISTICS = ["mean_gap_h", "share_of_zero_gaps", "weekly_dispersion", "concentration"]
N_NODES, WINDOW_H = 60, 4000.0
NODES = CorrelatedNodes(
    Weibull(0.8, 2000.0), Lemons(0.1, 6.0), Shocks(1 / 150, (2, 4), (0.7, 0.3), N_NODES),
    start=Start.FRESH,
)  # fmt: skip
QUICK = ("--time-unit", "h", "--bootstrap", 0)


def simulated(seed: int) -> Outages:
    """Nodes with lemons and shocks."""
    cluster = Cluster((Role("node", N_NODES, Holds.NOTHING),))
    trace = next(NODES.draw(cluster, seed, 0, 1, [WINDOW_H]))
    at_h = np.repeat(trace.at_h, np.diff(trace.first_slot))
    return outages_of(
        trace.slot, at_h, at_h, ("",) * len(at_h), n_nodes=N_NODES, window_h=WINDOW_H,
        origin="0 h", window_given=(True, True),
    )  # fmt: skip


def test_a_simulated_log_looks_like_those_of_its_fit(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", simulated(1))
    asked = ("fit", log, *QUICK, "--from", 0, "--to", WINDOW_H, "--nodes", N_NODES, "--circle")
    rows = json.loads(call(*asked, "--json").stdout)["circle"]
    assert [row["name"] for row in rows] == STATISTICS
    assert (
        sum(row["inside"] for row in rows) >= 3
    )  # 95 % intervals: benchmarks/interval_coverage.py counts
    assert all(row["inside"] == (row["low"] <= row["trace"] <= row["high"]) for row in rows)
    shown = call(*asked).stdout
    assert all(name in shown for name in STATISTICS)


def test_nodes_that_join_and_leave_are_simulated_with_their_dates() -> None:
    log, lives = fleet(7, n_nodes=200)
    known = with_lives(log, lives)
    for one in check_by_simulation(known, fit_correlated(known), n=100):
        if one.name in ("mean_gap_h", "concentration"):
            assert one.inside, one
    for_ever = check_by_simulation(known, replace(fit_correlated(known), lives=None), n=100)
    assert not for_ever[0].inside


@pytest.mark.long
@pytest.mark.parametrize("name", ["infinitehbd", "lanl"])
def test_real_logs_look_like_those_of_their_fits(failure_logs: Path, name: str) -> None:
    if name == "infinitehbd":
        log = read_infinitehbd(failure_logs / "infinitehbd/fault_trace.json", n_nodes=400)
    else:
        file = failure_logs / "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
        log = read_lanl(file, system=2, period=("2000-01-01", "2006-01-01"))
    found = {one.name: one.inside for one in check_by_simulation(log, fit_correlated(log), seed=1)}
    assert found == dict.fromkeys(STATISTICS, True) | {"weekly_dispersion": False}


# ------------------------------------------------------------------------------ where there is none


@pytest.mark.long
def test_a_log_of_ten_days_has_no_weeks_to_compare(tmp_path: Path) -> None:
    at_h = np.cumsum(np.random.default_rng(1).exponential(6.0, 38))
    log = write_log(tmp_path / "log.csv", log_of(at_h, 240.0, np.arange(38) % 5, 5))
    result = call("fit", log, *QUICK, "--circle", "--json")
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)["circle"]}
    weekly = rows.pop("weekly_dispersion")
    assert {weekly[key] for key in ("trace", "mean", "low", "high", "inside")} == {None}
    assert all(isinstance(row["inside"], bool) for row in rows.values())
    table = call("fit", log, *QUICK, "--circle").stdout
    assert "can't be told" in table
    assert "nan" not in table


@pytest.mark.long
def test_a_fit_that_can_not_be_simulated_costs_only_the_circle(tmp_path: Path) -> None:
    at_h = np.repeat(np.arange(12) * 10.0 + np.random.default_rng(2).random(12), 2)
    log = write_log(tmp_path / "log.csv", log_of(at_h, 1e9, np.arange(24) % 2, 2))
    result = call("fit", log, *QUICK, "--circle", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["circle"] == []
    assert "only 0 nodes failed alone" in said["no_circle"]
    assert said["gaps"]["families"]
    table = call("fit", log, *QUICK, "--circle")
    assert table.exit_code == 0
    assert "no circle: nodes that differ could not be fitted to this log" in table.stdout
    assert "failures:" in table.stdout
    assert json.loads(call("fit", log, *QUICK, "--json").stdout)["no_circle"] is None


def test_a_circle_too_large_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posterior_check, "MOST_FAILURES", 100.0)
    with pytest.raises(ParameterError, match="failures, and 40 such logs are needed; at most 100"):
        check_by_simulation(simulated(1), fit_correlated(simulated(1)))
