"""A log of how many nodes there were under Oobleck, from scenario to hours, by hand."""

from pathlib import Path

import pytest

from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from examples.counts_to_log import main
from tests.simulators import assert_cluster_agrees

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
USEFUL_H = 1.75 * 0.75 + 2.75 + (0.75 / 4 - 0.0625) + 2.75 / 2 + 0.75


@pytest.fixture
def scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS, "utf-8")
    main(str(tmp_path / "counts.csv"))
    (tmp_path / "log.csv").write_text(capsys.readouterr().out, "utf-8")
    (tmp_path / "scenario.yaml").write_text(SCENARIO, "utf-8")
    return tmp_path / "scenario.yaml"


def test_each_change_of_the_number_of_nodes_is_a_reconfiguration(scenario: Path) -> None:
    experiment = assemble(load_scenario(scenario))
    assert_cluster_agrees(experiment, 4)
    costs = simulate(experiment).strategies[0].costs
    assert costs.useful_h == pytest.approx([USEFUL_H] * 4)
    assert costs.hours_of("regroup") == pytest.approx([5 * 0.25] * 4)
    assert costs.hours_of("lost") == pytest.approx([0.0625] * 4)
