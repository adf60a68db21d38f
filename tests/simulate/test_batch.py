"""The common case, abreast, gives the rows of the general loop up to rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Constant, with_mean
from cprsim.records import Clock, RecoveryPolicy, Storage, SubSaves, Transfer
from cprsim.recovery.policy import Reach, Scope, Stage, StageKind, Tax
from cprsim.simulate import blocks
from cprsim.simulate.blocks import BlockDraws
from cprsim.simulate.engines import FAST
from cprsim.simulate.fast.params import params_of
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures
from tests.simulate.agreeing import CLOSE, assert_same, compiled_ways
from tests.simulate.building import FULL, NONE, PARTIAL, JobSetting, policy, ran, simulated
from tests.simulate.building import setting as make
from tests.simulate.test_agreement import HOW, INTERVALS_H, N_SCENARIOS, USEFUL_H, job, source


def assert_rows_of_the_general_loop(
    setting: JobSetting, how: RecoveryPolicy, failures: BlockFailures, keep_losses: bool
) -> None:
    assert params_of(simulated(setting, how)) is not None
    ours, theirs = compiled_ways(setting, how, failures, 500, keep_losses=keep_losses)
    assert_same(ours.costs, theirs.costs)
    assert_same(ours.losses, theirs.losses)
    assert bool(len(ours.losses.slot)) == bool(keep_losses and ours.stale_h.any())
    np.testing.assert_allclose(ours.stale_h, theirs.stale_h, rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(ours.stale_net_h, theirs.stale_net_h, rtol=CLOSE, atol=CLOSE)
    assert ours.engines == theirs.engines


def strategy_of(number: int) -> RecoveryPolicy:
    return policy(HOW[number % len(HOW)], INTERVALS_H[number % len(INTERVALS_H)])


COMMON = [
    number
    for number in range(N_SCENARIOS)
    if params_of(simulated(job(number), strategy_of(number))) is not None
]


@pytest.mark.parametrize("number", COMMON)
@pytest.mark.parametrize("keep_losses", [True, False])
def test_rows_are_those_of_the_general_loop(number: int, keep_losses: bool) -> None:
    setting, how = job(number), strategy_of(number)
    failing = source(number, setting.cluster, setting.clock)
    failures = BlockFailures(failing, setting.cluster, number, 0, USEFUL_H)
    assert_rows_of_the_general_loop(setting, how, failures, keep_losses)


def test_common_is_where_nothing_varies_and_saves_do_no_more_than_stall() -> None:
    for number in range(N_SCENARIOS):
        costs, how = job(number).costs, strategy_of(number)
        saves = how.on_failure is not NONE and how.save_interval_h < float("inf")
        loads = how.on_failure is not NONE
        asked = [costs.detect, costs.reschedule]
        asked += [costs.save_stall] if saves else []
        asked += [costs.load] if loads else []
        same = all(isinstance(cost, Constant | Transfer) for cost in asked)
        behind = saves and costs.save_background is not None
        assert (number in COMMON) == (same and not behind), number
    assert len(COMMON) > N_SCENARIOS / 2


def without(system: Any, **changed: Any) -> Any:
    """A changed capture."""
    return replace(system, captures=(replace(system.captures[0], **changed),))


LINK = Storage(8e9, 4e9, 1e9)
SCOPES = (Scope("node", Reach.NODE, Constant(0.1)), Scope("rack", Reach.RACK, Constant(0.1)))
UNCOMMON = {
    "spares": lambda one: replace(one, cluster=replace(one.cluster, n_spares=3)),
    "horizon": lambda one: replace(one, horizon_h=30.0),
    "scopes": lambda one: replace(one, scopes=SCOPES),
    "no node needed": lambda one: replace(one, scopes=(replace(one.scopes[0], needs_node=False),)),
    "notice": lambda one: replace(one, scopes=(replace(one.scopes[0], notice_h=0.1),)),
    "varied detection": lambda one: replace(
        one, scopes=(replace(one.scopes[0], detect=with_mean("gamma", 0.1, 2.0)),)
    ),
    "background": lambda one: changed(one, without(one.policy, background=Constant(0.1))),
    "failing saves": lambda one: changed(one, without(one.policy, p_fail=0.1)),
    "corrupt saves": lambda one: changed(
        one,
        replace(
            one.policy, tiers=(replace(one.policy.tiers[0], p_corrupt=0.1), *one.policy.tiers[1:])
        ),
    ),
    "tax": lambda one: changed(one, replace(one.policy, tax=Tax(compute=0.1))),
    "another first rule": lambda one: changed(
        one,
        replace(
            one.policy,
            rules=(replace(one.policy.rules[0], scopes=("node",)), *one.policy.rules),
        ),
    ),
    "nobody waits for nodes": lambda one: with_stages(
        one, lambda stages: (stage for stage in stages if stage.kind is not StageKind.WAIT)
    ),
    "work goes on beside recoveries": lambda one: with_stages(
        one, lambda stages: (replace(stage, blocks=False) for stage in stages)
    ),
    "loads with a cost of their own": lambda one: with_stages(
        one, lambda stages: (*stages[:-1], replace(stages[-1], cost=Constant(0.1)))
    ),
    "work done again faster": lambda one: changed(
        one,
        replace(
            one.policy,
            rules=tuple(replace(rule, replay_speed=2.0) for rule in one.policy.rules),
        ),
    ),
}


def changed(one: SimulatedJob, system: Any) -> SimulatedJob:
    return replace(one, policy=system)


def with_stages(
    one: SimulatedJob, stages_of: Callable[[tuple[Stage, ...]], Iterable[Stage]]
) -> SimulatedJob:
    rules = [replace(rule, stages=tuple(stages_of(rule.stages))) for rule in one.policy.rules]
    return changed(one, replace(one.policy, rules=tuple(rules)))


@pytest.mark.parametrize("what", UNCOMMON)
@pytest.mark.parametrize("how", [FULL, PARTIAL])
def test_what_the_loop_of_the_common_case_does_not_know_is_left_to_the_other(
    what: str, how: Any
) -> None:
    one = simulated(make(save_h=0.1, load_h=0.2, n_trainers=2), policy(how, 2.0))
    assert params_of(one) is not None
    assert params_of(UNCOMMON[what](one)) is None


@pytest.mark.parametrize("clock", list(Clock))
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("keep_losses", [True, False])
@pytest.mark.parametrize("nodes", [(3, 0), (3, 3), (1, 1)])
def test_rows_where_failures_strike_recoveries_and_shards_again(
    clock: Clock, together: int, keep_losses: bool, nodes: tuple[int, int]
) -> None:
    setting = make(
        USEFUL_H, clock=clock, n_emb_ps=nodes[0], n_trainers=nodes[1],
        save_h=0.05, load_h=0.2, detect_h=0.05, reschedule_h=0.1,
    )  # fmt: skip
    failing = JobClock(
        with_mean("gamma", 0.5, 0.7), range(setting.cluster.n_nodes), min(together, sum(nodes)),
        clock,
    )  # fmt: skip
    failures = BlockFailures(failing, setting.cluster, 3, 0, USEFUL_H)
    assert_rows_of_the_general_loop(setting, policy(PARTIAL, 0.9), failures, keep_losses)


@pytest.mark.parametrize("parts", [2, 5])
def test_rows_where_sub_saves_make_a_whole_one(parts: int) -> None:
    setting = make(USEFUL_H, n_emb_ps=4, save_h=0.05, load_h=0.1, detect_h=0.05)
    failing = JobClock(with_mean("gamma", 0.7, 0.7), range(4), 1, setting.clock)
    failures = BlockFailures(failing, setting.cluster, 3, 0, USEFUL_H)
    how = replace(policy(PARTIAL, 1.1), sub_saves=SubSaves("mfu", fraction=1 / parts))
    assert_rows_of_the_general_loop(setting, how, failures, False)


@pytest.fixture
def only_abreast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else runs anything."""

    def nobody(*_: object) -> None:
        pytest.fail("not abreast")

    monkeypatch.setattr(blocks._Block, "_run_any", nobody)
    monkeypatch.setattr(blocks, "by_events", nobody)


@pytest.mark.usefixtures("only_abreast")
def test_all_rows_of_a_common_job_are_done_abreast() -> None:
    setting = job(0)
    failures = BlockFailures(
        source(0, setting.cluster, setting.clock), setting.cluster, 5, 0, USEFUL_H
    )
    rows = ran(setting, strategy_of(0), failures, range(failures.n_replications))
    assert rows.engines == {FAST}


@pytest.mark.parametrize("how", [FULL, PARTIAL])
def test_a_save_that_commits_as_a_failure_strikes_is_there(how: Any) -> None:
    """At 2.4 h, but for rounding; the job is at 2.2 h."""
    one = simulated(make(4.4, save_h=0.1, detect_h=0.3), policy(how, 1.1))
    assert params_of(one) is not None
    failing = GivenFailures(((ScopedFailure(2.4, (0,), 0, (1.0,)),),))
    found = blocks.run_block(one, failing, BlockDraws(one, 0, 0, 1, range(1)), range(1))
    assert found.costs.wall_h == pytest.approx([4.4 + 4 * 0.1 + 0.3])
    assert found.stale_h == pytest.approx([0.0])


def test_a_save_that_commits_where_the_draws_end_is_no_doubt(
    request: pytest.FixtureRequest,
) -> None:
    setting = make(USEFUL_H, n_emb_ps=4, save_h=0.125, load_h=0.1)
    failing = JobClock(with_mean("gamma", 9.0, 0.7), range(4), 1, setting.clock)
    failures = BlockFailures(failing, setting.cluster, 3, 0, USEFUL_H)
    how = policy(PARTIAL, 0.25)
    plan = params_of(simulated(setting, how))
    assert plan is not None
    assert failures.strikes(1).until_h == 20 * plan.period_h
    assert_rows_of_the_general_loop(setting, how, failures, False)
    request.getfixturevalue("only_abreast")
    assert ran(setting, how, failures, range(500), keep_losses=False).engines == {FAST}


def test_few_replications_out_of_the_ordinary_are_left_to_simpy_and_many_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All trainers at once take the shards with them: not of the common case."""
    setting = make(USEFUL_H, n_emb_ps=2, n_trainers=1, save_h=0.05, load_h=0.1)
    failing = JobClock(with_mean("gamma", 4.0, 0.7), range(3), 1, setting.clock)
    failures = BlockFailures(failing, setting.cluster, 3, 0, USEFUL_H)
    how = policy(PARTIAL, 0.9)
    few = ran(setting, how, failures, range(20))
    many = ran(setting, how, failures, range(400))
    assert few.engines == {"simpy", FAST}
    assert many.engines == {FAST}
    assert_same(few.costs, ran(setting, how, failures, range(20), simpy_alone=True).costs)
    np.testing.assert_allclose(few.costs.wall_h, many.costs.wall_h[:20], rtol=CLOSE)
