"""Waits for spares in which other nodes may fail, by the Poisson distribution of nodes away."""

import pytest
from scipy.stats import poisson

from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario

MTBF_H, REPAIR_H = 50.0, 10.0
TEXT = """
job: {useful: 100 h}
cluster: {emb_ps: 8, shard_size: 1 GB}
failures: {kind: job, family: exponential, mtbf: 1 h, clock: wall}
costs: {save: 1 min, load: 1 min}
recovery: [{strategy: cpr, target_pls: 0.1}]
"""


@pytest.mark.parametrize(
    ("n_nodes", "n_spares"), [(8, 0), (8, 1), (8, 3), (8, 1_000), (9_000, 1_700), (9_000, 2_000)]
)
def test_nodes_away_that_fail_alone_are_a_poisson_number(n_nodes: int, n_spares: int) -> None:
    sets = {"emb_ps": n_nodes, "spares": n_spares, "repair": f"{REPAIR_H} h"}
    overrides = [f"cluster.{key}={value}" for key, value in sets.items()]
    overrides.append(f"failures.mtbf={MTBF_H / n_nodes!r} h")
    job = load_scenario("waits.yaml", overrides, text=TEXT)
    away = poisson(REPAIR_H * n_nodes / MTBF_H)  # as many fail in a repair
    waits = sum(
        away.pmf(n_spares + n_missing) * (1 - n_missing / n_nodes)
        for n_missing in range(1, n_nodes)
    )
    expected = waits / away.cdf(n_spares)
    assert assemble(job).facts.waiting_fraction == pytest.approx(expected, rel=1e-9, abs=1e-15)
