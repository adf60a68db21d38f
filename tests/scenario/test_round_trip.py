"""What a scenario writes about itself reads back to an equal scenario."""

import pytest

from cprsim.scenario.reading import load_scenario
from cprsim.scenario.schema import Scenario, dump_scenario
from cprsim.scenario.yaml_text import read_yaml
from tests.making import SCENARIOS
from tests.scenario.writing import load

LIFETIME = "family: weibull, shape: 0.7, mtbf: 333.3 h"
CHANGES = (
    "job={samples: 7.3e12, throughput: 3333333.3 samples/s}",
    "cluster={trainers: 7, emb_ps: 18, tables: [{rows: 9, dimension: 64, bytes_per_value: 2}]}",
    "cluster={emb_ps: 18, shard_size: 0.1 MiB, spares: 3, others: {reader: 2}, "
    "repair: {family: lognormal, mean: 5.9 h, median: 1 h}}",
    f"failures={{kind: job, {LIFETIME}, role: any, clock: uptime, start: stationary}}",
    f"failures={{kind: node, roles: {{trainer: {{{LIFETIME}}}}}}}",
    "failures={kind: job, family: piecewise, ages: [0 h, 0.3 d], "
    "hazards: [0.1 failures/h, 7 failures/year]}",
    "failures={kind: correlated, mtbf: 77.7 d, shape: 0.7, frailty: {shape: 0.01}, "
    "lemons: {share: 0.3 %, factor: 5.5}, "
    "shocks: {every: 9 d, sizes: {2: 0.01}, nodes: 40}, watched: 1e-7 d}",
    "failures={kind: injected, at: [3 h, 0.3333333 h], servers: [[0], [2, 1]], clock: wall}",
    "costs.save={stall: 0.1 ms, background: {family: gamma, mean: 1 min, shape: 2}, fails: 1 %}",
    "costs.load=transfer",
    "recovery=[none, {strategy: full, interval: 0.7 d, costs: {save: {stall: 1 s}}}, "
    "{strategy: cpr, target_pls: 0.05, interval: cpr-undivided}]",
    "simulation={precision: 0.7 %, at_most: 300}",
    *(
        "sync={algorithm: fr-easgd, iteration: 36 ms, dense_size: 8 MB, servers: 2, "
        f"server_bandwidth: 8 Gbit/s, {more}}}"
        for more in ("every: 5", "every: 15 s, shadow_cost: 3 %", "every: 5, elastic: 0.3")
    ),
    "storage={bandwidth: 33.3 GB/s, per_server: 25 Gbit/s}",
    "sweep={over: {costs.load: '1 min:9 min:lin3', cluster.emb_ps: [4, 8]}}",
    *(
        f'name="{name}"'
        for name in ("4e9", "12", "1.5", "no", "null", "true", "2000-01-01", "0x1F")
    ),
)


def read_back(text: str) -> Scenario:
    return Scenario.model_validate(read_yaml(text, "dumped")[0])


def assert_reads_back(written: Scenario) -> None:
    text = dump_scenario(written)
    assert read_back(text) == written
    assert dump_scenario(read_back(text)) == text


@pytest.mark.parametrize("change", CHANGES)
def test_a_scenario_reads_back_from_what_it_writes(change: str) -> None:
    assert_reads_back(load(change).scenario)


def test_every_shipped_scenario_reads_back_from_what_it_writes() -> None:
    for path in SCENARIOS.glob("*.yaml"):
        if "CPRSIM_DATA" not in path.read_text("utf-8"):
            assert_reads_back(load_scenario(path).scenario)
