"""Compiled and on the SimPy cluster rows agree to 1e-9: drawn failures, scenarios."""

from pathlib import Path

import numpy as np
import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.sources import Start
from cprsim.job.distributions import with_mean
from cprsim.job.records import Clock
from cprsim.simulation.blocks import Block
from cprsim.simulation.strikes import ScopeShares
from tests.making import maker
from tests.recovery.random_policies import dice_of, random_job
from tests.simulators import CLOSE, assert_cluster_agrees, assert_row, by_simpy


@pytest.mark.parametrize("number", range(32))
def test_rows_agree(number: int) -> None:
    """Of any policy; `tests/test_invariants.py` has all sources of failures."""
    job = random_job(dice_of(number, 11))
    n_nodes, n_failures = job.cluster.n_nodes, (1.5, 1.0, 3.0, 2.0)[number % 4]
    lifetime = with_mean("gamma", job.useful_h / n_failures, (0.7, 2.5)[number % 2])
    source = JobClock(lifetime, range(n_nodes), 1 + number % 3, job.clock, Start.FRESH)
    failing = BlockFailures(source, job.cluster, 11 + number, 0, job.useful_h)
    shares = (1.0 / len(job.scopes),) * len(job.scopes)
    reaches = tuple(scope.reach for scope in job.scopes)
    block = Block(failing, ScopeShares(shares, reaches, n_nodes, 3))
    rows, meets = block.run(job, range(25)), block.meets(job)
    row = np.searchsorted(rows.costs.replication, rows.losses.replication)
    for n in range(25):
        of = by_simpy(job, *meets, n)
        assert_row(of, rows.costs, n)
        assert [one.slot for one in of.stale] == rows.losses.slot[row == n].tolist()
    for summed_h, each_h in (
        (rows.stale_h, rows.losses.since_save_h),
        (rows.stale_since_reload_h, rows.losses.since_reload_h),
    ):
        found_h = np.bincount(row, each_h * rows.losses.share, rows.costs.n_replications)
        np.testing.assert_allclose(summed_h, found_h, CLOSE, CLOSE)


# --------------------------------------------------------------------------- scenarios

NOTICED = """\
name: noticed
job: {useful: 48 h, step: 10 s}
cluster: {workers: 8, state: 3 GB, link: 400 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 3 h, role: worker, clock: CLOCK}
scopes:
  - {name: told, share: 0.5, reach: node, detect: 1 min, notice: 40 min}
  - {name: untold, share: 0.5, reach: process, detect: 1 min}
costs: {save: 2 min, load: 4 min, reschedule: 4 min}
recovery: [{strategy: on-notice, options: {every: 2 h}}]
simulation: {seed: 1, replications: 60}
"""
LONG = """\
name: long
job: {useful: 1296 h, step: 10 s}
cluster: {workers: 64, state: 3 GB, link: 400 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 3 h, role: worker}
scopes: [{name: node, share: 1, reach: node, detect: 1 min}]
costs: {save: 10 s, load: 20 s, reschedule: 4 min}
recovery: [{strategy: gemini, options: {remote_every: 3 h}}]
simulation: {seed: 1, replications: 2}
"""


TEXTS = {f"notices on {clock}": (NOTICED.replace("CLOCK", clock), 60) for clock in Clock} | {
    # 400 failures among 1.4 million instants: within 1e-9 of the job two of three would meet
    "a long job that saves each step": (LONG, 2)
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_scenario(name: str, tmp_path: Path) -> None:
    text, n = TEXTS[name]
    assert_cluster_agrees(maker(tmp_path, text)(), n)
