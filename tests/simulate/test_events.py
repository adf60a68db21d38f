"""Failure schedules written by hand give the event lists written by hand."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from cprsim.records import Clock, Storage, SubSaves, Transfer
from tests.simulate.building import FULL, NONE, PARTIAL, failures, policy, run, setting, told
from tests.simulate.folding import cost_breakdown, shard_loss


def test_without_failures_the_overhead_is_exactly_the_saves() -> None:
    job = setting(10.0, save_h=0.25)
    costs = cost_breakdown(run(job, policy(FULL, 2.0)), 10.0)
    assert costs.wall_h[0] == 10.0 + 5 * 0.25  # the save at the very end counts
    assert costs.n_saves[0] == 5
    assert costs.hours_of("save")[0] == 5 * 0.25


def test_a_remainder_of_an_interval_ends_without_a_save() -> None:
    costs = cost_breakdown(run(setting(10.0, save_h=0.25), policy(FULL, 3.0)), 10.0)
    assert costs.n_saves[0] == 3


@pytest.mark.parametrize("interval_h", [10.0, 10.5, inf])
def test_an_interval_as_long_as_the_job_means_no_save(interval_h: float) -> None:
    costs = cost_breakdown(run(setting(10.0, save_h=0.25), policy(FULL, interval_h)), 10.0)
    assert costs.wall_h[0] == 10.0


def test_full_recovery_goes_back_to_the_last_committed_save() -> None:
    job = setting(6.0, save_h=0.5, load_h=0.25, detect_h=0.125, reschedule_h=1.0)
    assert told(run(job, policy(FULL, 2.0), failures(3.5))) == [
        "0 started -> useful @0",
        "2 save_started -> save @2",
        "2.5 save_committed -> useful @2",
        "3.5 failed 0 -> detect @3",
        "3.5 rolled_back -> detect @2",
        "3.625 stage -> reschedule @2",
        "4.625 stage -> load @2",
        "4.875 resumed -> lost @2",
        "5.875 caught_up -> useful @3",
        "6.875 save_started -> save @4",
        "7.375 save_committed -> useful @4",
        "9.375 save_started -> save @6",
        "9.875 save_committed -> over @6",
        "9.875 finished -> over @6",
    ]


def test_partial_recovery_goes_on_where_it_was() -> None:
    job = setting(6.0, save_h=0.5, load_h=0.25, reschedule_h=1.0)
    log = run(job, policy(PARTIAL, 2.0), failures((3.5, [1, 2])))
    assert told(log) == [
        "0 started -> useful @0",
        "2 save_started -> save @2",
        "2.5 save_committed -> useful @2",
        "3.5 failed 1 -> reschedule @3",
        "3.5 failed 2 -> reschedule @3",
        "3.5 reverted 1 -> reschedule @3",
        "3.5 reverted 2 -> reschedule @3",
        "4.5 stage -> load @3",
        "4.75 resumed -> useful @3",
        "5.75 save_started -> save @4",
        "6.25 save_committed -> useful @4",
        "8.25 save_started -> save @6",
        "8.75 save_committed -> over @6",
        "8.75 finished -> over @6",
    ]
    assert cost_breakdown(log, 6.0).n_failures[0] == 1  # two nodes, one failure
    loss = shard_loss(log, 4)
    assert loss.since_save_h.tolist() == [1.0, 1.0]
    assert loss.share.tolist() == [0.25, 0.25]


def test_without_checkpoints_a_failure_starts_the_job_again() -> None:
    job = setting(4.0, load_h=9.0, reschedule_h=1.0)
    assert told(run(job, policy(NONE), failures(3.0)))[1:] == [
        "3 failed 0 -> reschedule @3",
        "3 rolled_back -> reschedule @0",
        "4 resumed -> lost @0",
        "7 caught_up -> useful @3",
        "8 finished -> over @4",
    ]


def test_a_save_that_is_struck_does_not_count_and_is_tried_again() -> None:
    job = setting(4.0, save_h=1.0, reschedule_h=1.0)
    full = told(run(job, policy(FULL, 2.0), failures(2.5)))
    assert full[1:6] == [
        "2 save_started -> save @2",
        "2.5 save_abandoned -> reschedule @2",
        "2.5 failed 0 -> reschedule @2",
        "2.5 rolled_back -> reschedule @0",
        "3.5 resumed -> lost @0",
    ]
    partial = run(job, policy(PARTIAL, 2.0), failures(2.5))
    assert told(partial)[1:8] == [
        "2 save_started -> save @2",
        "2.5 save_abandoned -> reschedule @2",
        "2.5 failed 0 -> reschedule @2",
        "2.5 reverted 0 -> reschedule @2",
        "3.5 resumed -> save @2",
        "3.5 save_started -> save @2",
        "4.5 save_committed -> useful @2",
    ]
    costs = cost_breakdown(partial, 4.0)
    assert costs.hours_of("save")[0] == 2.5  # the half that was lost, and two whole ones
    assert shard_loss(partial, 4).since_save_h.tolist() == [2.0]


def test_what_ends_at_an_instant_ends_before_a_failure_of_that_instant() -> None:
    job = setting(4.0, save_h=1.0, reschedule_h=1.0)
    log = run(job, policy(PARTIAL, 2.0), failures(3.0))
    assert told(log)[2] == "3 save_committed -> useful @2"
    assert shard_loss(log, 4).since_save_h.tolist() == [0.0]
    assert told(run(job, policy(PARTIAL), failures(4.0)))[-1] == "4 finished -> over @4"


def test_full_recovery_that_is_struck_starts_again() -> None:
    job = setting(4.0, load_h=1.0, detect_h=0.5, reschedule_h=1.0)
    log = run(job, policy(FULL), failures(2.0, (4.0, [3])))
    assert told(log)[1:] == [
        "2 failed 0 -> detect @2",
        "2 rolled_back -> detect @0",
        "2.5 stage -> reschedule @0",
        "3.5 stage -> load @0",
        "4 failed 3 -> detect @0",
        "4 rolled_back -> detect @0",
        "4.5 stage -> reschedule @0",
        "5.5 stage -> load @0",
        "6.5 resumed -> lost @0",
        "8.5 caught_up -> useful @2",
        "10.5 finished -> over @4",
    ]


def test_servers_recover_in_parallel_and_the_least_advanced_holds_the_job_up() -> None:
    job = setting(4.0, load_h=1.0, detect_h=0.5, reschedule_h=1.0)
    log = run(job, policy(PARTIAL), failures(2.0, (4.0, [3])))
    assert told(log)[1:] == [
        "2 failed 0 -> detect @2",
        "2 reverted 0 -> detect @2",
        "2.5 stage -> reschedule @2",
        "3.5 stage -> load @2",
        "4 failed 3 -> detect @2",
        "4 reverted 3 -> detect @2",
        "4.5 stage -> reschedule @2",
        "5.5 stage -> load @2",
        "6.5 resumed -> useful @2",
        "8.5 finished -> over @4",
    ]
    assert shard_loss(log, 4).since_save_h.tolist() == [2.0, 2.0]


def test_where_the_least_advanced_recovery_ends_the_next_holds_the_job_up() -> None:
    job = setting(4.0, n_trainers=2, load_h=2.0, reschedule_h=0.5)
    log = run(job, policy(PARTIAL), failures(1.0, (1.25, [4])))  # a trainer has nothing to load
    assert told(log)[1:] == [
        "1 failed 0 -> reschedule @1",
        "1 reverted 0 -> reschedule @1",
        "1.25 failed 4 -> reschedule @1",
        "1.75 stage -> load @1",
        "3.5 resumed -> useful @1",
        "6.5 finished -> over @4",
    ]


def test_a_server_that_fails_twice_loses_nothing_twice_in_the_net_count() -> None:
    log = run(setting(10.0), policy(PARTIAL, 8.0), failures(2.0, 5.0, (6.0, [1]), 9.0))
    loss = shard_loss(log, 4)
    assert loss.slot.tolist() == [0, 0, 1, 0]
    assert loss.since_save_h.tolist() == [2.0, 5.0, 6.0, 1.0]
    assert loss.since_reload_h.tolist() == [2.0, 3.0, 6.0, 1.0]


class TestSavesInTheBackground:
    def test_the_job_goes_on_and_the_save_holds_what_there_was_at_its_start(self) -> None:
        job = setting(6.0, save_h=0.25, background_h=1.0)
        log = run(job, policy(PARTIAL, 2.0), failures(3.0, 3.75))
        assert told(log)[1:4] == [
            "2 save_started -> save @2",
            "2.25 save_resumed -> useful @2",
            "3 save_abandoned -> save @2.75",  # as it is tried again at once
        ]
        assert shard_loss(log, 4).since_save_h.tolist() == [2.75, 3.25]

    def test_after_the_commit_only_what_came_since_the_start_of_the_save_is_lost(self) -> None:
        job = setting(6.0, save_h=0.25, background_h=1.0)
        log = run(job, policy(PARTIAL, 2.0), failures(3.5))
        assert "3.25 save_committed -> useful @3" in told(log)
        assert shard_loss(log, 4).since_save_h.tolist() == [1.25]

    def test_a_save_that_was_struck_is_tried_again_and_the_grid_is_kept(self) -> None:
        job = setting(6.0, save_h=0.25, background_h=1.0)
        log = run(job, policy(PARTIAL, 2.0), failures(3.0))
        starts = [line for line in told(log) if "save_started" in line]
        assert starts == [
            "2 save_started -> save @2",
            "3 save_started -> save @2.75",
            "4.5 save_started -> save @4",
            "6.75 save_started -> save @6",
        ]

    def test_a_save_waits_for_the_one_before(self) -> None:
        job = setting(3.0, background_h=1.5)
        assert told(run(job, policy(FULL, 1.0)))[1:8] == [
            "1 save_started -> useful @1",
            "1 save_resumed -> useful @1",
            "2 save_due -> save @2",
            "2.5 save_committed -> useful @2",
            "2.5 save_started -> useful @2",
            "2.5 save_resumed -> useful @2",
            "3.5 save_due -> save @3",
        ]

    def test_the_job_waits_for_its_last_save_only(self) -> None:
        job = setting(3.0, background_h=1.5)
        assert told(run(job, policy(FULL, 3.0 / 2.0)))[-1] == "4.5 finished -> over @3"
        assert told(run(job, policy(FULL, 2.0)))[-2:] == [
            "3 save_abandoned -> over @3",
            "3 finished -> over @3",
        ]

    def test_nothing_in_the_background_at_no_cost_is_the_same_as_no_background(self) -> None:
        strikes = failures(2.2, 5.0)
        alone = run(setting(6.0, save_h=0.5), policy(FULL, 2.0), strikes)
        beside = run(setting(6.0, save_h=0.5, background_h=0.0), policy(FULL, 2.0), strikes)
        assert np.array_equal(alone.at_h[-1:], beside.at_h[-1:])


class TestSubSaves:
    """Priority strategies: each interval cut into saves of the most urgent rows."""

    HALVES = SubSaves("mfu", fraction=0.5)

    def test_each_costs_its_share_and_the_one_that_ends_the_interval_counts(self) -> None:
        job = setting(4.0, save_h=0.5)
        assert told(run(job, policy(PARTIAL, 2.0, self.HALVES)))[1:9] == [
            "1 sub_save_started -> save @1",
            "1.25 sub_save_committed -> useful @1",
            "2.25 save_started -> save @2",
            "2.5 save_committed -> useful @2",
            "3.5 sub_save_started -> save @3",
            "3.75 sub_save_committed -> useful @3",
            "4.75 save_started -> save @4",
            "5 save_committed -> over @4",
        ]

    def test_without_extra_cost_an_interval_costs_the_same_as_one_whole_save(self) -> None:
        job = setting(8.0, save_h=0.5)
        whole = cost_breakdown(run(job, policy(PARTIAL, 2.0)), 8.0)
        parts = cost_breakdown(run(job, policy(PARTIAL, 2.0, SubSaves("mfu"))), 8.0)
        assert parts.hours_of("save")[0] == pytest.approx(whole.hours_of("save")[0])
        assert parts.n_saves[0] == whole.n_saves[0] == 4

    def test_choosing_rows_costs_extra_each_time(self) -> None:
        job = setting(8.0, save_h=0.5)
        extra = SubSaves("mfu", fraction=0.25, extra_h=0.125)
        costs = cost_breakdown(run(job, policy(PARTIAL, 2.0, extra)), 8.0)
        assert costs.hours_of("save")[0] == 16 * (0.125 + 0.125)

    def test_pls_counts_from_whole_saves(self) -> None:
        log = run(setting(4.0), policy(PARTIAL, 2.0, self.HALVES), failures(1.5, 3.75))
        assert shard_loss(log, 4).since_save_h.tolist() == [1.5, 1.75]

    def test_a_transfer_moves_a_share_of_the_bytes(self) -> None:
        storage = Storage(bandwidth_bytes_per_h=8.0, shard_bytes=1.0)
        job = setting(4.0, save_h=Transfer(), storage=storage)
        costs = cost_breakdown(run(job, policy(PARTIAL, 2.0, self.HALVES)), 4.0)
        assert costs.hours_of("save")[0] == 2 * 4 / 8.0

    def test_one_that_is_struck_is_tried_again_as_what_it_was(self) -> None:
        job = setting(4.0, save_h=1.0)
        log = told(run(job, policy(PARTIAL, 2.0, self.HALVES), failures(1.25, (3.0, [1]))))
        assert [line for line in log if " save_" in line or " sub_save_" in line][:6] == [
            "1 sub_save_started -> save @1",
            "1.25 save_abandoned -> save @1",
            "1.25 sub_save_started -> save @1",
            "1.75 sub_save_committed -> useful @1",
            "2.75 save_started -> save @2",
            "3 save_abandoned -> save @2",
        ]
        assert "3 save_started -> save @2" in log

    def test_the_job_may_be_shorter_than_an_interval(self) -> None:
        costs = cost_breakdown(
            run(setting(3.0, save_h=0.5), policy(PARTIAL, 4.0, self.HALVES)), 3.0
        )
        assert (costs.n_saves[0], costs.hours_of("save")[0]) == (0, 0.25)


class TestClocks:
    def test_on_the_progress_clock_only_first_time_work_ages(self) -> None:
        job = setting(6.0, clock=Clock.PROGRESS, save_h=1.0, reschedule_h=1.0)
        log = run(job, policy(FULL, 2.0), failures(3.0, 3.5))
        failed = [line for line in told(log) if "failed" in line]
        assert failed == ["4 failed 0 -> reschedule @3", "6.5 failed 0 -> reschedule @3.5"]

    def test_on_the_uptime_clock_saves_and_rework_age_but_recovery_does_not(self) -> None:
        job = setting(6.0, clock=Clock.UPTIME, save_h=1.0, reschedule_h=1.0)
        log = run(job, policy(FULL, 2.0), failures(2.5, 4.0))
        failed = [line for line in told(log) if "failed" in line]
        assert failed == ["2.5 failed 0 -> reschedule @2", "5 failed 0 -> reschedule @1.5"]

    def test_a_failure_at_a_whole_interval_of_progress_comes_after_the_save(self) -> None:
        job = setting(6.0, clock=Clock.PROGRESS, save_h=1.0)
        assert shard_loss(run(job, policy(PARTIAL, 2.0), failures(4.0)), 4).since_save_h == [0.0]


class TestTrainers:
    def test_a_lost_trainer_costs_its_replacement_and_loses_nothing(self) -> None:
        job = setting(6.0, n_trainers=2, load_h=5.0, detect_h=0.5, reschedule_h=1.0)
        log = run(job, policy(PARTIAL, 2.0), failures((3.0, [4])))
        costs = cost_breakdown(log, 6.0)
        assert costs.wall_h[0] == 7.5
        assert len(shard_loss(log, 4).slot) == 0

    def test_under_full_recovery_it_rolls_everybody_back(self) -> None:
        job = setting(6.0, n_trainers=2, load_h=5.0)
        costs = cost_breakdown(run(job, policy(FULL, 2.0), failures((3.0, [4]))), 6.0)
        assert (costs.hours_of("lost")[0], costs.hours_of("load")[0]) == (1.0, 5.0)

    def test_with_the_last_trainer_all_shards_go_back(self) -> None:
        job = setting(6.0, n_trainers=2, load_h=5.0, reschedule_h=1.0)
        log = run(job, policy(PARTIAL, 2.0), failures((3.0, [4]), (3.5, [5])))
        loss = shard_loss(log, 4)
        assert loss.slot.tolist() == [0, 1, 2, 3]
        assert cost_breakdown(log, 6.0).hours_of("load")[0] == 5.0


class TestStorage:
    def test_all_who_save_at_once_share_the_bandwidth(self) -> None:
        storage = Storage(bandwidth_bytes_per_h=8.0, shard_bytes=1.0)
        job = setting(4.0, save_h=Transfer(), load_h=Transfer(), storage=storage)
        costs = cost_breakdown(run(job, policy(FULL, 2.0), failures(3.0)), 4.0)
        assert costs.hours_of("save")[0] == 2 * 4 * 1.0 / 8.0
        assert costs.hours_of("load")[0] == 4 * 1.0 / 8.0

    def test_a_server_is_no_faster_than_its_own_link(self) -> None:
        storage = Storage(8.0, server_bandwidth_bytes_per_h=2.0, shard_bytes=1.0)
        job = setting(4.0, load_h=Transfer(), storage=storage)
        costs = cost_breakdown(run(job, policy(PARTIAL, 2.0), failures(3.0)), 4.0)
        assert costs.hours_of("load")[0] == 0.5

    def test_two_loads_that_overlap_slow_each_other_down(self) -> None:
        # alone a load takes 1 h; the second begins when the first is half done, so the first has
        # half a shard left at half the rate (until 4.5), then the second goes on alone until 5
        storage = Storage(bandwidth_bytes_per_h=1.0, shard_bytes=1.0)
        job = setting(4.0, load_h=Transfer(), storage=storage)
        log = run(job, policy(PARTIAL, 9.0), failures(3.0, (3.5, [1])))
        assert told(log)[-2:] == ["5 resumed -> useful @3", "6 finished -> over @4"]

    def test_a_server_that_fails_while_loading_gives_its_bandwidth_back(self) -> None:
        # two load 1 byte each at 1 byte/h; half done, one fails again: the other is done at 4, and
        # the one that began anew has half left and all 2 bytes/h to itself, until 4.25
        storage = Storage(bandwidth_bytes_per_h=2.0, shard_bytes=1.0)
        job = setting(4.0, load_h=Transfer(), storage=storage)
        log = run(job, policy(PARTIAL, 9.0), failures((3.0, [0, 1]), (3.5, [0])))
        assert told(log)[-2:] == ["4.25 resumed -> useful @3", "5.25 finished -> over @4"]


class TestSpares:
    def test_without_a_free_spare_the_slot_waits_for_a_repair(self) -> None:
        job = setting(4.0, n_spares=1, reschedule_h=0.5)
        log = run(job, policy(PARTIAL, 9.0), failures(1.0, (2.0, [1]), repair_h=3.0))
        assert told(log)[4:] == [
            "2 failed 1 -> wait @1.5",
            "2 reverted 1 -> wait @1.5",
            "4 stage -> reschedule @1.5",
            "4.5 resumed -> useful @1.5",
            "7 finished -> over @4",
        ]

    def test_a_slot_that_waits_has_no_node_to_strike(self) -> None:
        job = setting(4.0, n_spares=0, reschedule_h=0.5)
        log = run(job, policy(PARTIAL, 9.0), failures(1.0, 2.0, repair_h=3.0))
        assert "2 missed 0 -> wait @1" in told(log)
        assert cost_breakdown(log, 4.0).n_failures[0] == 1
        assert cost_breakdown(log, 4.0).hours_of("wait")[0] == 3.0

    def test_under_full_recovery_a_spare_once_given_stays(self) -> None:
        job = setting(4.0, n_spares=2, reschedule_h=1.0)
        strikes = failures(1.0, (1.5, [1]), repair_h=50.0)
        assert cost_breakdown(run(job, policy(FULL, 9.0), strikes), 4.0).hours_of("wait")[0] == 0.0


class TestJobsThatDoNotFinish:
    def test_beyond_a_hundred_times_its_useful_time_a_job_is_stopped(self) -> None:
        job = setting(1.0, reschedule_h=1000.0)
        log = run(job, policy(FULL), failures(0.5))
        assert told(log)[-1] == "100 stopped -> over @0"
        assert not cost_breakdown(log, 1.0).finished[0]

    def test_a_job_that_gets_nowhere_is_given_up_sooner(self) -> None:
        job = setting(1.0, reschedule_h=0.002)
        log = run(job, policy(FULL), failures(*(0.5 + 0.001 * n for n in range(5000))))
        assert log.at_h[-1] < 2.0
        assert told(log)[-1].endswith("stopped -> over @0")
