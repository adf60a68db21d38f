"""A failure log in ``run``: what is replayed of it, and what is said of it."""

import json
from pathlib import Path

import pytest

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


def test_run_says_what_is_replayed_and_what_was_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    scenario = Path("scenario.yaml")
    scenario.write_text(SCENARIO % "nodes: 2, period: {from: 0, to: 100}")
    first = call("run", scenario, "--json", "--out", "out")
    assert first.exit_code == 0, first.output
    replayed, *notes = json.loads(first.stdout)["values"]["log_notes"]
    assert replayed == "6 node failures of 2 nodes in 100 h from 0 h on"
    closed = "1 outage without an end, closed by the next failure of the node"
    assert closed in notes
    again = call("run", scenario, "--out", "out")  # which finds it again
    assert f"Log: {closed}." in again.stdout
