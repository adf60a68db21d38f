"""Plain jobs go from failure to failure; what strikes a recovery, or no single node, does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Constant, with_mean
from cprsim.records import Clock, SubSaves
from cprsim.simulate import blocks
from cprsim.simulate.fast.plain import is_plain
from cprsim.simulate.job import ScopedFailure
from cprsim.simulate.numbers import as_objects, numbers_of
from cprsim.simulate.strikes import GivenFailures
from tests.simulate.agreeing import assert_both_agree
from tests.simulate.building import FULL, NONE, PARTIAL, policy, setting, simulated

COSTS_H = {"save_h": 0.05, "load_h": 0.2, "detect_h": 0.05, "reschedule_h": 0.1}


@pytest.mark.parametrize("clock", list(Clock))
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("nodes", [(3, 0), (3, 3), (1, 1)])
@pytest.mark.parametrize("how", [FULL, PARTIAL, NONE])
def test_rows_where_failures_strike_recoveries_and_shards_again(
    clock: Clock, together: int, nodes: tuple[int, int], how: object
) -> None:
    useful_h, mtbf_h = (2.0, 1.5) if how is NONE else (6.0, 0.6)
    job = setting(useful_h, clock=clock, n_emb_ps=nodes[0], n_trainers=nodes[1], **COSTS_H)
    slots = range(job.cluster.n_nodes)
    failing = JobClock(with_mean("gamma", mtbf_h, 0.7), slots, min(together, len(slots)), clock)
    failures = BlockFailures(failing, job.cluster, 3, 0, useful_h)
    assert_both_agree(job, policy(how, 0.9), failures, 60)


@pytest.mark.parametrize("parts", [2, 5])
def test_rows_where_sub_saves_make_a_whole_one(parts: int) -> None:
    job = setting(6.0, n_emb_ps=4, save_h=0.05, load_h=0.1, detect_h=0.05)
    failing = JobClock(with_mean("gamma", 0.7, 0.7), range(4), 1, job.clock)
    failures = BlockFailures(failing, job.cluster, 3, 0, 6.0)
    how = replace(policy(PARTIAL, 1.1), sub_saves=SubSaves("mfu", fraction=1 / parts))
    assert_both_agree(job, how, failures, 60)


@pytest.mark.parametrize("how", [FULL, PARTIAL])
def test_a_save_that_commits_as_a_failure_strikes_is_there(how: object) -> None:
    """At 2.4 h, but for rounding; the job is at 2.2 h."""
    one = simulated(setting(4.4, save_h=0.1, detect_h=0.3), policy(how, 1.1))
    failing = GivenFailures(((ScopedFailure(2.4, (0,), 0, (1.0,)),),))
    found = blocks.run_block(one, failing, blocks.BlockDraws(one, 0, 0, 1, range(1)), range(1))
    assert found.costs.wall_h == pytest.approx([4.4 + 4 * 0.1 + 0.3])
    assert found.stale_h == pytest.approx([0.0])


def test_plain_is_where_saves_do_no_more_than_stall_and_nothing_goes_on_beside_the_job() -> None:
    def plain(how: object, **changed: object) -> bool:
        one = simulated(setting(**{**COSTS_H, "n_trainers": 2, **changed}), policy(how, 2.0))
        return bool(is_plain(as_objects(numbers_of(one)[0][0])))

    assert all(plain(how) for how in (FULL, PARTIAL, NONE))
    assert not plain(FULL, n_spares=3)
    assert not plain(FULL, background_h=Constant(0.1))
