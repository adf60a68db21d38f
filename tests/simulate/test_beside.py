"""Trainers in step and sync servers: the others go on, and every hour is still accounted for."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Exponential
from cprsim.records import Clock, Cluster, Holds, Role
from tests.simulate.agreeing import assert_both_agree
from tests.simulate.building import FULL, PARTIAL, JobSetting, failures, policy, run, setting, told
from tests.simulate.folding import cost_breakdown, shard_loss

# slots: 0 to 3 embedding servers, 4 to 7 trainers, 8 and 9 sync servers
TRAINER, ANOTHER, SERVER = 4, 5, 8
NEVER = policy(PARTIAL, inf)


def in_step(useful_h: float = 10.0, n_trainers: int = 4, n_servers: int = 2, **costs) -> JobSetting:
    """A job whose trainers stay in step in the background; a replacement takes 2 h."""
    given = {"reschedule_h": 1.5, "detect_h": 0.5, **costs}
    plain = setting(useful_h, n_trainers=n_trainers, **given)
    roles = [replace(r, others_go_on=r.holds is Holds.REPLICA) for r in plain.cluster.roles]
    if n_servers:
        roles.append(Role("sync_ps", n_servers, Holds.CENTRAL, others_go_on=True))
    return replace_cluster(plain, Cluster(tuple(roles), plain.cluster.n_spares))


def replace_cluster(job: JobSetting, cluster: Cluster) -> JobSetting:
    return JobSetting(job.useful_h, cluster, job.costs, job.clock)


def test_a_lost_trainer_costs_its_share_of_the_time_that_it_is_away() -> None:
    log = run(in_step(), NEVER, failures((3.0, [TRAINER])))
    assert told(log) == [
        "0 started -> useful @0",
        "3 failed 4 -> useful @3",
        "5 replaced 4 -> useful @4.5",
        "10.5 finished -> over @10",  # a quarter of 2 h
    ]
    costs = cost_breakdown(log, 10.0)
    assert (costs.wall_h[0], costs.hours_of("degraded")[0], costs.n_failures[0]) == (10.5, 0.5, 1)
    assert costs.hours_of("reschedule")[0] == 0.0


def test_a_sync_server_costs_nothing() -> None:
    costs = cost_breakdown(run(in_step(), NEVER, failures((3.0, [SERVER]))), 10.0)
    assert costs.wall_h[0] == 10.0
    assert costs.n_failures[0] == 1


def test_two_trainers_away_at_once_cost_both_shares() -> None:
    log = run(in_step(), NEVER, failures((3.0, [TRAINER]), (4.0, [ANOTHER])))
    assert cost_breakdown(log, 10.0).wall_h[0] == 10.0 + 2 * 2.0 / 4


def test_a_job_that_ends_before_the_trainer_is_back_is_slow_to_its_end() -> None:
    log = run(in_step(), NEVER, failures((9.0, [TRAINER])))
    assert cost_breakdown(log, 10.0).wall_h[0] == pytest.approx(9.0 + 1.0 / 0.75)


def test_a_save_goes_on_while_a_trainer_is_replaced_and_is_no_slower() -> None:
    job = in_step(save_h=1.0)
    log = run(job, policy(PARTIAL, 6.0), failures((6.5, [TRAINER])))
    costs = cost_breakdown(log, 10.0)
    assert costs.n_saves[0] == 1
    assert costs.wall_h[0] == 11.0 + 1.5 / 4  # half an hour of the two was the save


def test_an_embedding_server_stalls_all_as_before_and_nothing_is_slow_meanwhile() -> None:
    log = run(in_step(), NEVER, failures((3.0, [TRAINER]), (4.0, [0])))
    costs = cost_breakdown(log, 10.0)
    assert costs.wall_h[0] == 10.0 + 2.0 + 1.0 / 4  # a trainer is away, but for 1 h all stand
    assert len(shard_loss(log, 4).slot) == 1


def test_a_failure_that_also_strikes_an_embedding_server_holds_all_up() -> None:
    costs = cost_breakdown(run(in_step(), NEVER, failures((3.0, [0, TRAINER]))), 10.0)
    assert costs.wall_h[0] == 12.0


def test_full_recovery_rolls_all_back_whoever_fails() -> None:
    for slot in (TRAINER, SERVER):
        log = run(in_step(), policy(FULL, 2.0), failures((3.0, [slot])))
        assert cost_breakdown(log, 10.0).wall_h[0] == 13.0


def test_a_failure_later_than_the_job_would_have_taken_strikes_it_still() -> None:
    log = run(in_step(), NEVER, failures((3.0, [TRAINER]), (10.25, [0])))
    assert cost_breakdown(log, 10.0).wall_h[0] == 10.0 + 0.5 + 2.0


def test_the_last_trainer_is_waited_for_and_begins_with_the_central_copy() -> None:
    log = run(in_step(n_trainers=1), NEVER, failures((3.0, [TRAINER])))
    assert cost_breakdown(log, 10.0).wall_h[0] == 12.0
    assert len(shard_loss(log, 4).slot) == 0


def test_without_sync_servers_the_loss_of_all_trainers_reverts_everything() -> None:
    log = run(in_step(n_servers=0, n_trainers=1), NEVER, failures((3.0, [TRAINER])))
    assert sorted(shard_loss(log, 4).slot) == [0, 1, 2, 3]
    lost_too = failures((3.0, [SERVER - 3, TRAINER]))  # a sync server and the only trainer
    log = run(in_step(n_servers=1, n_trainers=1), NEVER, lost_too)
    assert sorted(shard_loss(log, 4).slot) == [0, 1, 2, 3]


def test_a_trainer_that_fails_again_while_it_is_replaced_begins_again() -> None:
    log = run(in_step(), NEVER, failures((3.0, [TRAINER]), (4.0, [TRAINER])))
    assert cost_breakdown(log, 10.0).wall_h[0] == 10.0 + 3.0 / 4


def test_waiting_for_a_spare_is_away_too() -> None:
    job = in_step(n_spares=0)
    log = run(job, NEVER, failures((3.0, [TRAINER]), repair_h=4.0))
    assert cost_breakdown(log, 10.0).wall_h[0] == 10.0 + (4.0 + 1.5) / 4


@pytest.mark.parametrize("clock", list(Clock))
@pytest.mark.parametrize("n_trainers", [1, 4])
def test_both_engines_agree(clock: Clock, n_trainers: int) -> None:
    job = in_step(n_trainers=n_trainers, save_h=0.1, load_h=0.3)
    job = replace(job, clock=clock)
    source = JobClock(Exponential(2.0), range(job.cluster.n_nodes), 1, clock)
    failing = BlockFailures(source, job.cluster, 4, 0, job.useful_h)
    for how in (policy(PARTIAL, 2.0), policy(FULL, 2.0)):
        rows = assert_both_agree(job, how, failing, 300)
        slows = how.on_failure is PARTIAL and n_trainers > 1
        assert (rows.costs.hours_of("degraded") > 0).any() == slows


@pytest.mark.parametrize("n", [2, 5, 20])
def test_it_is_what_the_trainers_in_step_do_themselves(n: int) -> None:
    """One trainer of n away for R: both models add R/n to the wall time."""
    from cprsim.sync.simulation import run_log
    from cprsim.sync.trainers import Outage
    from tests.sync.settings import MS
    from tests.sync.settings import setting as trainers

    one = trainers("shadow-easgd", n, n_threads=2)
    outage = Outage(at_h=100 * MS, down_h=600 * MS, number=0)
    n_batches = 300 * n
    longer = run_log(one, n_batches, outages=[outage]).at_h[-1] - run_log(one, n_batches).at_h[-1]
    job = in_step(n_trainers=n, reschedule_h=2.0, detect_h=0.0)
    wall_h = cost_breakdown(run(job, NEVER, failures((3.0, [TRAINER]))), 10.0).wall_h[0]
    assert wall_h - 10.0 == pytest.approx(2.0 / n)
    assert longer / (600 * MS) == pytest.approx(1 / n, abs=0.02)
