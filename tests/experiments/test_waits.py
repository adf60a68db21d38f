"""Waits for spares in which other nodes may fail, by the Poisson distribution of nodes away."""

from __future__ import annotations

import pytest
from scipy.stats import poisson

from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario

N_NODES, MTBF_H, REPAIR_H = 8, 50.0, 10.0
TEXT = f"""
job: {{useful: 100 h}}
cluster: {{emb_ps: {N_NODES}, shard_size: 1 GB, repair: {REPAIR_H} h}}
failures: {{kind: job, family: exponential, mtbf: {MTBF_H / N_NODES} h, clock: wall}}
costs: {{save: 1 min, load: 1 min}}
recovery: [{{strategy: cpr, target_pls: 0.1}}]
"""


@pytest.mark.parametrize("n_spares", [0, 1, 3, 1_000])
def test_nodes_away_that_fail_alone_are_a_poisson_number(n_spares: int) -> None:
    job = load_scenario("waits.yaml", [f"cluster.spares={n_spares}"], text=TEXT)
    away = poisson(REPAIR_H * N_NODES / MTBF_H)  # as many fail in a repair
    waits = sum(
        away.pmf(n_spares + n_missing) * (1 - n_missing / N_NODES)
        for n_missing in range(1, N_NODES)
    )
    expected = waits / away.cdf(n_spares)
    assert assemble(job).facts.waiting_fraction == pytest.approx(expected, rel=1e-9, abs=1e-15)
