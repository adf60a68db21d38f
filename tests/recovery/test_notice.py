"""Saves on notice: worked out by hand, and the same in both engines and the naive interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Constant, Exponential
from cprsim.records import Clock, Cluster, Holds, Role
from cprsim.recovery.policy import (
    Capture,
    Medium,
    Outside,
    Policy,
    Reach,
    Reverts,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tier,
)
from cprsim.simulate import cluster
from cprsim.simulate.blocks import BlockDraws, run_block
from cprsim.simulate.job import NOTICE, ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures, ScopedBlock, ScopeShares
from tests.recovery import naive
from tests.recovery.random_policies import RandomDraws

CLUSTER = Cluster((Role("worker", 4, Holds.SHARD),))
SHARES = ScopeShares((0.5, 0.5), (Reach.NODE, Reach.PROCESS), 4)


def job(
    *, stall_h: float = 0.125, background_h: float | None = None, every_h: float | None = None,
    notice_h: float = 0.5, clock: Clock = Clock.WALL,
) -> SimulatedJob:  # fmt: skip
    """All go back; a save on notice, and others at an interval."""
    scopes = (
        Scope("told", Reach.NODE, Constant(0.25), notice_h=notice_h),
        Scope("untold", Reach.PROCESS, Constant(0.25), needs_node=False),
    )
    tiers = tuple(Tier(n, Medium.REMOTE, Outside(), "worker") for n in ("on notice", "remote"))
    behind = None if background_h is None else Constant(background_h)
    captures = [Capture("on notice", stall=Constant(stall_h), background=behind, on_notice=True)]
    if every_h is not None:
        captures.append(Capture("remote", every_h, stall=Constant(stall_h)))
    rule = Rule(Reverts.ALL, (Stage(StageKind.DETECT),), sources=("on notice", "remote"))
    policy = Policy("on notice", (rule,), tiers, tuple(captures))
    return SimulatedJob(8.0, CLUSTER, clock, scopes, policy)


def told(at_h: float, notice_h: float = 0.5) -> tuple[ScopedFailure, ...]:
    """A failure of a node with its notice."""
    return ScopedFailure(at_h - notice_h, (), NOTICE, ()), ScopedFailure(at_h, (1,), 0, (0.0,))


def hours(of: SimulatedJob, failures: tuple[ScopedFailure, ...]) -> dict[str, float]:
    """Hours of each part and the wall, agreed upon by three."""
    by_name = naive.run(of, failures, RandomDraws(0, 1.0))
    by_events = cluster.run(of, iter(failures), RandomDraws(0, 1.0)).outcome
    assert by_events == by_name
    draws = BlockDraws(of, 0, 0, 1, range(1))
    ran = run_block(of, GivenFailures((failures,)), draws, range(1))
    np.testing.assert_allclose(ran.costs.hours[0], by_name.hours, atol=1e-12)
    return {**dict(zip(of.policy.parts, by_name.hours, strict=True)), "wall": by_name.wall_h}


def test_only_what_was_done_after_the_save_is_lost() -> None:
    """Told at 2.5, saved until 2.625, struck at 3: .375 of work is done again."""
    assert hours(job(), told(3.0)) == {"lost": 0.375, "save": 0.125, "detect": 0.25, "wall": 8.75}


def test_a_notice_shorter_than_the_save_is_of_no_use() -> None:
    found = hours(job(stall_h=0.625), told(3.0))
    assert found == {"lost": 2.5, "save": 0.5, "detect": 0.25, "wall": 11.25}


def test_a_save_that_is_still_being_written_is_lost() -> None:
    found = hours(job(background_h=0.5), told(3.0))
    assert found["lost"] == 2.875


def test_a_notice_while_the_job_recovers_is_heeded_when_it_goes_on() -> None:
    """Struck at 3 by surprise, until 3.25; told at 3.125 of a failure at 3.625: saved at 3.25."""
    surprise = ScopedFailure(3.0, (0,), 1, (0.0,))
    found = hours(job(), (surprise, *told(3.625)))
    assert found == {"lost": 3.25, "save": 0.125, "detect": 0.5, "wall": 11.875}


def test_the_newer_of_both_saves_is_loaded() -> None:
    """Saves at each 2 h; told at 4.625 of a failure at 5.125."""
    found = hours(job(every_h=2.0), told(5.125))
    assert found["lost"] == 0.375
    assert hours(job(every_h=2.0), told(5.125)[1:])["lost"] == 0.875


@pytest.mark.parametrize("clock", Clock)
def test_notices_of_drawn_failures_reach_both_engines_alike(clock: Clock) -> None:
    """By chunks and one after the other: 400 replications, an MTBF of 3 h, notices of .7 h."""
    of = job(every_h=2.0, notice_h=0.7, clock=clock)
    source = JobClock(Exponential.from_mean(3.0), range(4), clock=clock)
    block = BlockFailures(source, CLUSTER, 1, 0, of.useful_h, range(400))
    failures = ScopedBlock(block, SHARES, 1, 0, (0.7, 0.0))
    draws = BlockDraws(of, 1, 0, block.n_of_block, block.kept)
    fast = run_block(of, failures, draws, range(400))
    assert fast.n_by_events < 5
    simpy = run_block(of, failures, draws, range(400), simpy_alone=True)
    np.testing.assert_allclose(fast.costs.hours, simpy.costs.hours, atol=1e-7)
    np.testing.assert_array_equal(fast.costs.n_saves, simpy.costs.n_saves)
    unheard = ScopedBlock(block, SHARES, 1, 0)
    without = run_block(of, unheard, draws, range(400))
    assert fast.costs.hours_of("lost").mean() < 0.8 * without.costs.hours_of("lost").mean()
