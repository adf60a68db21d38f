"""A log of how many nodes there were under Oobleck, from scenario to speed over time, by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import replay, simulate
from cprsim.results.rows import timeline_rows
from cprsim.scenario.reading import load_scenario
from examples.counts_to_log import main

SCENARIO = """\
job: {useful: 1000 h, horizon: 10 h, step: 15 min}
cluster: {workers: 4, replicas: 4, spares: 0}
failures:
  {kind: trace, file: log.csv, format: tidy, time_unit: h, begins: first, nodes: 4,
   period: {from: 0, to: 10}}
costs: {save: 10 s, load: 0 s, detect: 0 s, reschedule: 0 s}
recovery:
  - {strategy: oobleck, options: {throughput: [8, 6, 4, 2], reconfigure: 15 min, grows: at once}}
simulation: {replications: 4}
"""
COUNTS = "time,nodes\n0,3\n2,4\n5,1\n6,2\n9,4\n10,4\n"
# 3 nodes from 0.25 on at 6/8; one is added at 2; three leave at 5, which takes 4.0625 h back to 4.0
# h; one is back at 6, and two are at 9. Each change stalls the job for a quarter of an hour.
BY_HAND = [
    (0.0, 2.0, 0.25, 1.75 * 0.75),
    (2.0, 5.0, 0.25, 2.75),
    (5.0, 6.0, 0.25, 0.75 / 4 - 0.0625),
    (6.0, 9.0, 0.25, 2.75 / 2),
    (9.0, 10.0, 0.25, 0.75),
]


@pytest.fixture
def scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS, "utf-8")
    main(str(tmp_path / "counts.csv"))
    (tmp_path / "log.csv").write_text(capsys.readouterr().out, "utf-8")
    (tmp_path / "scenario.yaml").write_text(SCENARIO, "utf-8")
    return tmp_path / "scenario.yaml"


@pytest.mark.parametrize("engine", ["simpy", "auto"])
def test_each_change_of_the_number_of_nodes_is_a_reconfiguration(
    scenario: Path, engine: str
) -> None:
    experiment = assemble(load_scenario(scenario, [f"simulation.engine={engine}"]))
    costs = simulate(experiment).strategies[0].costs
    assert costs.useful_h == pytest.approx([sum(row[3] for row in BY_HAND)] * 4)
    assert costs.hours_of("regroup") == pytest.approx([5 * 0.25] * 4)
    assert costs.hours_of("lost") == pytest.approx([0.0625] * 4)


def paces(events: pd.DataFrame) -> list[tuple[float, float, float, float]]:
    """From each stop of a job to the next: from, to, hours of standing still, useful hours."""
    at_h = events["at_h"].to_numpy(dtype=float)
    works = np.isin(events["activity"].to_numpy(dtype=object), ("useful", "lost", "save"))
    progress_h = events["progress_h"].to_numpy(dtype=float)
    frontier_h = np.minimum(np.maximum.accumulate(progress_h), progress_h[-1])
    stops = np.flatnonzero(~works & np.append(True, works[:-1]))
    still_h = np.where(works[:-1], 0.0, np.diff(at_h))
    return [
        (at_h[a], at_h[b], still_h[a:b].sum(), frontier_h[b] - frontier_h[a])
        for a, b in pairwise(np.unique([0, *stops, len(at_h) - 1]).tolist())
        if at_h[b] > at_h[a]
    ]


def test_speed_over_time_is_that_of_the_nodes_that_are_there(scenario: Path) -> None:
    experiment = assemble(load_scenario(scenario))
    logs = replay(experiment, 0)
    measured = paces(timeline_rows(logs, experiment.cluster))
    assert [tuple(pace) for pace in measured] == [pytest.approx(row) for row in BY_HAND]
