"""Failure logs in ``fit`` and in ``run``: what is said of them, and one error for each bad one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cprsim.experiments.assemble import assemble
from cprsim.failures.replay import Replay
from cprsim.scenario.reading import load_scenario
from tests.making import call

SCENARIO = """\
job: {useful: 50 h}
cluster: {emb_ps: 2}
costs: {save: 5 min, load: 3 min, reschedule: 2 min}
recovery: [full]
simulation: {replications: 5}
failures: {kind: trace, format: tidy, file: log.csv, time_unit: h, %s}
"""
ROWS = (
    ("a", 10, 11, "disk"),
    ("b", 30, "", "gpu"),
    ("a", 45, 46, "disk"),
    ("b", 60, 61, "disk"),
    ("a", 85, 86, "gpu"),
    ("b", 85, 87, "gpu"),
)
CLOSED = "1 outage(s) without an end, closed by the next failure of the node"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    rows = [",".join(map(str, row)) for row in (*ROWS, ROWS[0])]
    path.write_text("\n".join(["node,start,end,cause", *rows]) + "\n")
    return path


def replayed(log: Path, keys: str) -> Replay:
    scenario = log.with_name("scenario.yaml")
    scenario.write_text(SCENARIO % keys)
    source = assemble(load_scenario(scenario)).failures
    assert isinstance(source, Replay)
    return source


def test_run_says_what_is_replayed_and_what_was_closed(log: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO % "nodes: 2, period: {from: 0, to: 100}")
    first = call("run", scenario, "--json", "--out", tmp_path / "out")
    assert first.exit_code == 0, first.output
    notes = json.loads(first.stdout)["values"]["log_notes"]
    assert notes[0] == "6 node failure(s) of 2 nodes in 100 h from 0 h on"
    assert CLOSED in notes
    again = call("run", scenario, "--out", tmp_path / "out")  # which finds it again
    assert f"Log: {CLOSED}." in again.stdout


def test_a_scenario_says_the_window_the_nodes_and_the_cause_of_a_tidy_trace(log: Path) -> None:
    outages = replayed(log, "nodes: 7, period: {from: 20, to: 500}, cause: Disk").outages
    assert (outages.n_nodes, outages.window_h, outages.origin) == (7, 480.0, "20 h")
    assert outages.start_h.tolist() == [25, 40]
    assert replayed(log, "period: {to: 500}").outages.window_h == 490.0
    with_repair = replayed(log, "repair: 90 min").outages
    assert with_repair.down_h.tolist() == [1, 1.5, 1, 1, 1, 2]
