"""Stale shards of a recovery system: their rows, what prices them, and what the kernel replays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.kernel.replay import moments
from cprsim.records import EventKind, in_order
from cprsim.scenario import load_scenario
from cprsim.staleness.strategies import strategy_key
from tests.simulate.agreeing import assert_same
from tests.simulate.folding import shard_loss


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """Partial recovery twice: as a strategy, and as a system of its own name."""
    changes = ["failures.role=any", "failures.mtbf=3 h", "simulation.replications=200"]
    made = assemble(load_scenario("scenarios/quickstart.yaml", changes))
    partial = next(policy for policy in made.policies if policy.name == "partial")
    system = replace(partial, name="system", is_strategy=False)
    return replace(made, policies=(partial, system))


def test_each_shard_that_goes_back_has_its_row(experiment: Experiment) -> None:
    partial, system = (one.losses for one in pipeline.simulate(experiment).strategies)
    simpy = pipeline.simulate(replace(experiment, engine="simpy")).strategies[1].losses
    assert len(partial.slot) > 300
    for found in (system, simpy):
        assert_same(found, partial)


def test_event_logs_tell_the_same_of_each_shard_that_goes_back(experiment: Experiment) -> None:
    losses = pipeline.simulate(experiment).strategies[1].losses
    for replication in range(20):
        log = pipeline.replay(experiment, replication)["system"]
        mine = np.flatnonzero(losses.replication == replication)
        assert_same(shard_loss(log, experiment.cluster.n_emb_ps), in_order(losses, mine))


def test_a_staleness_curve_prices_them_like_those_of_partial_recovery(
    experiment: Experiment,
) -> None:
    partial, system = experiment.policies
    assert strategy_key(system) == strategy_key(partial)
    everybody = replace(system, rules=())
    assert strategy_key(everybody) is None


def test_the_kernel_does_to_the_model_what_it_does_under_partial_recovery(
    experiment: Experiment,
) -> None:
    losses = pipeline.simulate(experiment).strategies[1].losses
    slots = experiment.cluster.replica_slots
    for replication in range(5):
        logs = pipeline.replay(experiment, replication)
        known, found = (list(moments(logs[name], slots)) for name in ("partial", "system"))
        lost = [slot for one in found if one.kind is EventKind.REVERTED for slot in one.slots]
        assert lost == losses.slot[losses.replication == replication].tolist()
        assert [(one.kind, one.slots) for one in found] == [(one.kind, one.slots) for one in known]
        np.testing.assert_allclose(
            [one.progress_h for one in found], [one.progress_h for one in known], atol=1e-9
        )
