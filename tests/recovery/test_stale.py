"""Stale shards of a recovery system: their rows, what prices them, and what the kernel replays."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from cprsim import pipeline
from cprsim.assemble import Experiment, assemble
from cprsim.kernel.replay import moments
from cprsim.records import OnFailure, ShardLoss
from cprsim.recovery.classic import as_system
from cprsim.scenario import load_scenario
from cprsim.staleness.strategies import strategy_key


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """Partial recovery twice: as the engines know it, and as a system."""
    changes = ["failures.role=any", "failures.mtbf=3 h", "simulation.replications=200"]
    made = assemble(load_scenario("scenarios/quickstart.yaml", changes))
    partial = next(policy for policy in made.policies if policy.name == "partial")
    system = replace(
        partial,
        name="system",
        on_failure=OnFailure.BY_RULES,
        system=as_system(partial, made.costs, made.cluster),
    )
    return replace(made, policies=(partial, system))


def test_each_shard_that_goes_back_has_its_row(experiment: Experiment) -> None:
    partial, system = (one.losses for one in pipeline.simulate(experiment).strategies)
    assert len(partial.slot) > 300
    for column in fields(ShardLoss):
        np.testing.assert_allclose(
            getattr(system, column.name), getattr(partial, column.name), rtol=1e-9, atol=1e-9
        )


def test_a_staleness_curve_prices_them_like_those_of_partial_recovery(
    experiment: Experiment,
) -> None:
    partial, system = experiment.policies
    assert strategy_key(system) == strategy_key(partial)
    everybody = replace(system, system=replace(system.system, rules=system.system.rules[:0]))
    assert strategy_key(everybody) is None


def test_the_kernel_does_to_the_model_what_it_does_under_partial_recovery(
    experiment: Experiment,
) -> None:
    for replication in range(5):
        logs = pipeline.replay(experiment, replication)
        known, found = (list(moments(logs[name])) for name in ("partial", "system"))
        assert [(one.kind, one.slots) for one in found] == [(one.kind, one.slots) for one in known]
        np.testing.assert_allclose(
            [one.progress_h for one in found], [one.progress_h for one in known], atol=1e-9
        )
