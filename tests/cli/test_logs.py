"""A failure log in ``run``: what is replayed of it, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from cprsim.scenario.assemble import assemble
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
LOG = """\
node,start,end,cause
a,10,11,disk
b,30,,gpu
a,45,46,disk
b,60,61,disk
a,85,86,gpu
b,85,87,gpu
a,10,11,disk
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)


def written(keys: str) -> Path:
    path = Path("scenario.yaml")
    path.write_text(SCENARIO % keys)
    return path


def outages(keys: str) -> Any:
    return assemble(load_scenario(written(keys))).failures.outages


def test_run_says_what_is_replayed_and_what_was_closed() -> None:
    scenario = written("nodes: 2, period: {from: 0, to: 100}")
    first = call("run", scenario, "--json", "--out", "out")
    assert first.exit_code == 0, first.output
    replayed, *notes = json.loads(first.stdout)["values"]["log_notes"]
    assert replayed == "6 node failures of 2 nodes in 100 h from 0 h on"
    closed = "1 outage without an end, closed by the next failure of the node"
    assert closed in notes
    again = call("run", scenario, "--out", "out")  # which finds it again
    assert f"Log: {closed}." in again.stdout


def test_a_scenario_says_the_window_the_nodes_and_the_cause_of_a_tidy_trace() -> None:
    found = outages("nodes: 7, period: {from: 20, to: 500}, cause: Disk")
    assert (found.n_nodes, found.window_h, found.origin) == (7, 480.0, "20 h")
    assert found.start_h.tolist() == [25, 40]
    assert outages("period: {to: 500}").window_h == 490.0
    assert outages("repair: 90 min").down_h.tolist() == [1, 1.5, 1, 1, 1, 2]
