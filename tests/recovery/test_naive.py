"""The naive interpreter, and SimPy, do what `docs/recovery.md` says, with hours by hand.

Jobs have 10 h of work on the slots 0 to 3, and failures on the wall clock, unless said otherwise.
All numbers are sums of powers of 2, so that hours are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, isnan
from typing import Any

import pytest

from cprsim.failures.distributions import Constant, Exponential
from cprsim.records import Clock, Cluster, Duration, Holds, Role, Storage
from cprsim.recovery.policy import (
    OWN,
    Capture,
    Elastic,
    Groups,
    Medium,
    Outside,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tax,
    Tier,
    To,
    WhenBusy,
)
from cprsim.simulate.job import ReplicationOutcome, ScopedFailure, SimulatedJob
from tests.recovery import naive
from tests.recovery.random_policies import random_case
from tests.recovery.test_events import differences

PROCESS, NODE, EVERYTHING = range(3)
SCOPES = (
    Scope("process", Reach.PROCESS, Constant(0.125), needs_node=False),
    Scope("node", Reach.NODE, Constant(0.25)),
    Scope("all", Reach.ALL, Constant(0.5)),
)
STATE = Role("state", 4, Holds.SHARD)
READERS = Role("readers", 2, Holds.NOTHING)
READER = 4  # the first of them
TRAINERS = Role("trainers", 2, Holds.REPLICA)
TRAINER = 4  # the first of them, with no readers


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws that are written down: hours by name and number, and u below 1 by tier and number."""

    given_h: dict[tuple[str, int], float] = field(default_factory=dict)
    u: dict[tuple[str, int], float] = field(default_factory=dict)

    def hours(self, name: str, n: int) -> float:
        return self.given_h[name, n]

    def uniform(self, tier: str, n: int) -> float:
        return self.u.get((tier, n), 0.999)


def cost(hours: float | None) -> Duration | None:
    return None if hours is None else Constant(hours)


def stage(kind: str, hours: float | None = None, blocks: bool = True) -> Stage:
    return Stage(StageKind(kind), cost(hours), blocks)


def remote(load_h: float | None = None, generations: int = 1, p_corrupt: float = 0.0) -> Tier:
    return Tier("remote", Medium.REMOTE, Outside(), "state", cost(load_h), generations, p_corrupt)


def in_memory(placement: Ring | Groups, load_h: float | None = None) -> Tier:
    return Tier("memory", Medium.HOST, placement, "state", cost(load_h))


def saved(
    tier: str,
    every_h: float,
    stall_h: float | None = None,
    background_h: float | None = None,
    in_flight: int = 1,
    when_busy: WhenBusy = WhenBusy.WAIT,
    p_fail: float = 0.0,
) -> Capture:
    return Capture(
        tier,
        every_h,
        stall=cost(stall_h),
        background=cost(background_h),
        in_flight=in_flight,
        when_busy=when_busy,
        p_fail=p_fail,
    )


def back_to(*sources: str, stages: tuple[Stage, ...], **how: Any) -> Rule:
    return Rule(Reverts.ALL, stages, sources=sources, **how)


def struck_back_to(*sources: str, stages: tuple[Stage, ...], **how: Any) -> Rule:
    return Rule(Reverts.STRUCK, stages, sources=sources, **how)


def nobody(*stages: Stage, **how: Any) -> Rule:
    return Rule(Reverts.NOBODY, stages, **how)


def from_start(*stages: Stage, **how: Any) -> Rule:
    return Rule(Reverts.ALL, stages, To.START, **how)


def job_of(
    *rules: Rule,
    tiers: tuple[Tier, ...] = (),
    captures: tuple[Capture, ...] = (),
    spares: int | None = None,
    clock: Clock = Clock.WALL,
    horizon_h: float | None = None,
    roles: tuple[Role, ...] = (STATE,),
    useful_h: float = 10.0,
    **more: Any,
) -> SimulatedJob:
    policy = Policy("by hand", rules, tiers, captures, **more)
    return SimulatedJob(useful_h, Cluster(roles, spares), clock, SCOPES, policy, horizon_h)


def failure(at_h: float, *slots: int, scope: int = NODE, repair_h: float = 1.0) -> ScopedFailure:
    return ScopedFailure(at_h, slots, scope, (repair_h,) * len(slots))


def everything(at_h: float) -> ScopedFailure:
    return failure(at_h, 0, 1, 2, 3, scope=EVERYTHING)


@dataclass(frozen=True, slots=True)
class Ran:
    outcome: ReplicationOutcome
    job: SimulatedJob

    @property
    def wall_h(self) -> float:
        return self.outcome.wall_h

    @property
    def parts(self) -> dict[str, float]:
        """Those that took any time."""
        named = zip(self.job.policy.parts, self.outcome.hours, strict=True)
        return {part: hours for part, hours in named if hours}

    @property
    def stale(self) -> tuple[tuple[float, int, float], ...]:
        """Progress [h], slot and content [h] of shards that went back alone; none is replayed."""
        assert all(isnan(one.fresh_h) for one in self.outcome.stale)
        return tuple((one.progress_h, one.slot, one.content_h) for one in self.outcome.stale)


def run(job: SimulatedJob, *failures: ScopedFailure, draws: Draws | None = None) -> Ran:
    """By the naive interpreter; SimPy has to agree."""
    assert differences(job, list(failures), draws or Draws()) == []
    return Ran(naive.run(job, failures, draws or Draws()), job)


AGAIN = from_start(stage("reschedule", 2.0))  # the last rule of most tests

# --------------------------------------------------------------------------- saves


def test_without_failures_the_overhead_is_the_saves_the_one_at_the_end_included() -> None:
    ran = run(job_of(AGAIN, tiers=(remote(),), captures=(saved("remote", 2.0, stall_h=0.25),)))
    assert ran.wall_h == 10.0 + 5 * 0.25
    assert ran.parts == {"save": 1.25}
    assert ran.outcome.n_saves == 5


@pytest.mark.parametrize("every_h", [10.0, 12.0])
def test_an_interval_as_long_as_the_job_means_no_save(every_h: float) -> None:
    ran = run(job_of(AGAIN, tiers=(remote(),), captures=(saved("remote", every_h, 0.25),)))
    assert (ran.wall_h, ran.outcome.n_saves) == (10.0, 0)


def test_captures_due_at_once_save_one_after_the_other() -> None:
    tiers = (remote(), in_memory(OWN))
    captures = (saved("memory", 2.0, 0.25), saved("remote", 4.0, 0.5, 1.0))
    ran = run(job_of(AGAIN, tiers=tiers, captures=captures))
    assert ran.wall_h == 10.0 + 5 * 0.25 + 2 * 0.5
    assert ran.outcome.n_saves == 7


BUSY = [
    # saves begin at the hours 2, 5, 8, 11 and 14: four waits of 1 h, then 3 h for the last commit
    (1, WhenBusy.WAIT, 17.0, 5),
    # 4 and 8 are left out; the save of 10 commits at 13
    (1, WhenBusy.SKIP, 13.0, 3),
    # two in flight are enough: nothing waits but the end
    (2, WhenBusy.WAIT, 13.0, 5),
]


@pytest.mark.parametrize(("in_flight", "when_busy", "wall_h", "n_saves"), BUSY)
def test_a_save_that_is_due_while_others_are_in_flight_waits_or_is_left_out(
    in_flight: int, when_busy: WhenBusy, wall_h: float, n_saves: int
) -> None:
    capture = saved("remote", 2.0, None, 3.0, in_flight, when_busy)
    ran = run(job_of(AGAIN, tiers=(remote(),), captures=(capture,)))
    assert ran.wall_h == wall_h
    assert ran.parts == {"save": wall_h - 10.0}
    assert ran.outcome.n_saves == n_saves


def test_a_save_may_commit_on_one_tier_and_not_on_the_other() -> None:
    tiers = (in_memory(OWN), remote())
    captures = (saved("memory", 2.0), saved("remote", 2.0, background_h=1.0))
    rule = back_to("memory", "remote", stages=(stage("reschedule", 1.0),))
    job = job_of(rule, tiers=tiers, captures=captures)
    # the process leaves the memory of its node: back to 2
    assert run(job, failure(2.5, 0, scope=PROCESS)).parts["lost"] == 0.5
    # the node does not, and the save to remote commits at 3 only: back to 0
    assert run(job, failure(2.5, 0)).parts["lost"] == 2.5
    assert run(job, failure(3.5, 0)).parts["lost"] == 1.5


def flushed() -> SimulatedJob:
    """Saves to memory each 4 h, which go on to remote within 3 h."""
    tiers = (in_memory(Ring(2)), remote())
    captures = (saved("memory", 4.0), Capture("remote", after="memory", background=Constant(3.0)))
    rule = back_to("memory", "remote", stages=(stage("reschedule", 1.0),))
    return job_of(rule, tiers=tiers, captures=captures)


def test_a_flush_goes_on_while_what_it_copies_survives() -> None:
    # at 5 back to 4, going on at 6; the flush of 4 commits at 7; at 7.5 (progress 5.5) back to 4
    ran = run(flushed(), failure(5.0, 0), everything(7.5))
    assert ran.parts == {"lost": 1.0 + 1.5, "reschedule": 2.0}
    assert ran.outcome.n_saves == 3  # both of 4, and of 8 the one in memory: nobody waits for more


def test_a_flush_ends_with_what_it_copies() -> None:
    ran = run(flushed(), everything(5.0))
    assert ran.parts == {"lost": 5.0, "reschedule": 1.0}
    assert ran.outcome.n_saves == 4  # of 4 once, and again in both; of 8


def test_a_flush_of_every_second_content_takes_the_even_ones() -> None:
    tiers = (in_memory(Ring(2)), remote())
    flush = Capture("remote", after="memory", every_nth=2, background=Constant(0.5))
    rule = back_to("remote", stages=())
    job = job_of(rule, tiers=tiers, captures=(saved("memory", 2.0), flush))
    assert run(job, everything(7.0)).parts == {"lost": 3.0}  # of 2, 4, 6 it has 4


@pytest.mark.parametrize(("strikes", "lost_h", "load_h"), [(5.0, 3.0, 2.0), (7.0, 1.0, 1.0)])
def test_a_corrupt_content_is_found_when_it_is_loaded(
    strikes: float, lost_h: float, load_h: float
) -> None:
    tier = remote(load_h=1.0, generations=2, p_corrupt=0.5)
    job = job_of(
        back_to("remote", stages=(stage("load"),)),
        tiers=(tier,),
        captures=(saved("remote", 2.0),),
    )
    ran = run(job, failure(strikes, 0), draws=Draws(u={("remote", 1): 0.25}))  # the one of 4
    assert ran.parts == {"lost": lost_h, "load": load_h}


@pytest.mark.parametrize(("own_h", "load_h"), [(0.5, 1.5), (None, 1.0)])
def test_where_all_that_survives_is_corrupt_all_start_again(
    own_h: float | None, load_h: float
) -> None:
    job = job_of(
        back_to("remote", stages=(stage("load", own_h),)),
        tiers=(remote(load_h=1.0, p_corrupt=0.5),),
        captures=(saved("remote", 2.0),),
    )
    ran = run(job, failure(5.0, 0), draws=Draws(u={("remote", 1): 0.25}))
    assert ran.parts == {"lost": 5.0, "load": load_h}  # what was tried, for there is no source


def test_a_save_that_comes_to_nothing_is_noticed_at_its_commit() -> None:
    job = job_of(
        back_to("remote", stages=()),
        tiers=(remote(),),
        captures=(saved("remote", 4.0, 0.5, p_fail=0.5),),
    )
    ran = run(job, failure(9.5, 0), draws=Draws(u={("remote", 1): 0.25}))  # progress 8.5
    assert ran.parts == {"save": 1.5, "lost": 4.5}  # 8 again
    assert ran.outcome.n_saves == 2


def test_a_save_that_is_struck_is_tried_again_where_nobody_goes_back() -> None:
    rule = struck_back_to("remote", stages=(stage("reschedule", 0.5),))
    job = job_of(rule, AGAIN, tiers=(remote(),), captures=(saved("remote", 4.0, 1.0),))
    ran = run(job, failure(4.5, 0))
    assert ran.parts == {"save": 0.5 + 1.0 + 1.0, "reschedule": 0.5}
    assert ran.outcome.n_saves == 2


def test_a_save_struck_in_the_background_is_tried_again_with_what_there_is_then() -> None:
    rule = struck_back_to("remote", stages=(stage("reschedule", 0.5),))
    capture = saved("remote", 4.0, background_h=2.0)
    job = job_of(rule, AGAIN, tiers=(remote(),), captures=(capture,))
    # the save of 4 is struck at progress 5, and tried at 5.5; it commits at 7.5
    ran = run(job, failure(5.0, 0), failure(8.0, 1))
    assert ran.stale == ((5.0, 0, 0.0), (7.5, 1, 5.0))


@pytest.mark.parametrize(
    ("step_h", "parts"),
    [
        # to 5 h: what was held is done, and saved again until 11.5; the save of 8 h waits from 10.5
        (2.0, {"lost": 2.0, "reschedule": 0.5, "save": 1.0}),
        # to 3 h: it is undone; 4 h are saved from 8.5 to 12.5, when those of 8 h are due
        (4.0, {"lost": 4.0, "reschedule": 0.5}),
    ],
)
def test_a_struck_save_is_tried_again_unless_a_rollback_undoes_what_it_holds(
    step_h: float, parts: dict[str, float]
) -> None:
    rule = Rule(Reverts.ALL, (stage("reschedule", 0.5),), To.STEP_BEFORE)
    capture = saved("remote", 4.0, None, 4.0)
    job = job_of(rule, tiers=(remote(),), captures=(capture,), step_h=step_h)
    assert run(job, failure(7.0, 0)).parts == parts


def test_after_a_rollback_the_grid_alone_says_when_to_save() -> None:
    rule = back_to("remote", stages=(stage("reschedule", 0.5),))
    job = job_of(rule, tiers=(remote(),), captures=(saved("remote", 4.0, 1.0),))
    ran = run(job, failure(4.5, 0))
    assert ran.parts == {"lost": 4.0, "save": 0.5 + 1.0 + 1.0, "reschedule": 0.5}


def test_a_rule_that_stops_nothing_abandons_no_save() -> None:
    rule = nobody(stage("reschedule", 2.0, blocks=False), scopes=("node",))
    job = job_of(rule, AGAIN, tiers=(remote(),), captures=(saved("remote", 4.0, 1.0),))
    ran = run(job, failure(4.5, 0))
    assert (ran.wall_h, ran.outcome.n_saves, ran.outcome.n_failures) == (12.0, 2, 1)


# --------------------------------------------------------------------------- contents in parts


def in_parts(
    every_h: float,
    stall_h: float | None = None,
    background_h: float | None = None,
    parts: int = 2,
    **how: Any,
) -> Capture:
    return replace(saved("remote", every_h, stall_h, background_h, **how), parts=parts)


def test_a_content_in_parts_is_there_with_the_last_of_them() -> None:
    capture = in_parts(1.0, 0.25)
    job = job_of(back_to("remote", stages=()), tiers=(remote(),), captures=(capture,))
    ran = run(job)
    assert ran.parts == {"save": 10 * 0.25}
    assert ran.outcome.n_saves == 5
    # progress 3.5, three parts on their way: the third kept nothing
    ran = run(job, failure(4.25, 0))
    assert ran.parts == {"lost": 1.5, "save": 11 * 0.25}
    assert ran.outcome.n_saves == 5


def test_a_part_stalls_the_job_and_is_in_flight_as_any_save() -> None:
    capture = in_parts(2.0, None, 3.0)
    ran = run(job_of(AGAIN, tiers=(remote(),), captures=(capture,)))
    # as without parts: saves begin at 2, 5, 8, 11 and 14, and that of 10 h, a part, is awaited
    assert (ran.wall_h, ran.outcome.n_saves) == (17.0, 2)


def test_the_last_part_may_be_left_out() -> None:
    capture = in_parts(2.0, None, 3.0, when_busy=WhenBusy.SKIP)
    ran = run(job_of(AGAIN, tiers=(remote(),), captures=(capture,)))
    assert (ran.wall_h, ran.outcome.n_saves) == (13.0, 0)  # those of 4 and 8 are


@pytest.mark.parametrize(("number", "lost_h"), [(0, 1.5), (1, 3.5)])
def test_only_the_last_part_may_come_to_nothing(number: int, lost_h: float) -> None:
    capture = in_parts(1.0, p_fail=0.5)
    job = job_of(back_to("remote", stages=()), tiers=(remote(),), captures=(capture,))
    draws = Draws(u={("remote", number): 0.25})
    assert run(job, failure(3.5, 0), draws=draws).parts == {"lost": lost_h}


def again_in_parts(capture: Capture) -> SimulatedJob:
    rule = struck_back_to("remote", stages=(stage("reschedule", 0.5),))
    return job_of(rule, AGAIN, tiers=(remote(),), captures=(capture,))


def test_a_part_that_is_tried_again_completes_nothing() -> None:
    # the part of 2 is struck at 3 and tried at 3.5, to no content by 5.5; that of 4 is struck at 6
    # and tried at 6.5 (progress 5.5): it completes one at 8.5
    job = again_in_parts(in_parts(2.0, None, 2.0, in_flight=2))
    ran = run(job, failure(3.0, 0), failure(6.0, 1), failure(8.5, 2))
    assert ran.stale == (
        (3.0, 0, 0.0),
        (5.5, 1, 0.0),
        (7.5, 2, 5.5),
    )


def test_the_last_part_tried_again_completes_what_there_is_then() -> None:
    # the save of 4 is struck at progress 5, and tried at 5.5; it commits at 7.5
    job = again_in_parts(in_parts(2.0, None, 2.0, in_flight=2))
    ran = run(job, failure(5.0, 0), failure(8.0, 1))
    assert ran.stale == ((5.0, 0, 0.0), (7.5, 1, 5.0))


def test_a_part_tried_again_stands_for_the_last_one_that_is_due_by_then() -> None:
    # at 4.5 the save of 4 waits for the part of 2: one save of 4 at 5, which commits at 8
    job = again_in_parts(in_parts(2.0, None, 3.0))
    ran = run(job, failure(4.5, 0), failure(8.5, 1))
    assert ran.stale == ((4.0, 0, 0.0), (6.5, 1, 4.0))
    # the part of 6, begun at 8, is tried at 9; waits at 4, 6, 8 and 10 h, then for that of 10 h
    assert ran.parts == {"save": 0.5 + 1.0 + 1.5 + 1.0 + 3.0, "reschedule": 1.0}
    assert ran.outcome.n_saves == 2


def test_a_part_and_the_last_one_stay_due_if_a_rollback_undoes_neither() -> None:
    captures = (saved("memory", 4.0), in_parts(2.0, None, 3.0))
    rule = back_to("memory", stages=(stage("reschedule", 0.5),))
    job = job_of(rule, AGAIN, tiers=(in_memory(OWN), remote()), captures=captures)
    # at 4.5 that of 4 h waits for the part of 2 h, and the memory has 4 h: one save at 5
    ran = run(job, failure(4.5, 0, scope=PROCESS))
    assert ran.parts == {"save": 0.5 + 1.0 + 1.0 + 1.0 + 3.0, "reschedule": 0.5}
    assert ran.outcome.n_saves == 2 + 2


def test_after_a_rollback_the_grid_alone_says_which_part_is_the_last() -> None:
    capture = in_parts(1.0, 0.5)
    job = job_of(back_to("remote", stages=()), tiers=(remote(),), captures=(capture,))
    # in the save of 4, the second of its content: those of 3 and 4 again
    ran = run(job, failure(5.75, 0))
    assert ran.parts == {"lost": 2.0, "save": 3 * 0.5 + 0.25 + 8 * 0.5}
    assert ran.outcome.n_saves == 5


# --------------------------------------------------------------------------- what survives


PEER = job_of(
    back_to("memory", stages=(stage("reschedule", 1.0),)),
    AGAIN,
    tiers=(in_memory(Ring(2)),),
    captures=(saved("memory", 2.0),),
)


def test_two_neighbours_of_a_ring_are_too_many() -> None:
    # at 3.5 the recovery from 3 is under way: shard 0 was on 0 and 1, so all start again
    ran = run(PEER, failure(3.0, 0), failure(3.5, 1))
    assert ran.parts == {"lost": 3.0, "reschedule": 0.5 + 2.0}


def test_two_that_are_no_neighbours_of_a_ring_are_not() -> None:
    ran = run(PEER, failure(3.0, 0), failure(3.5, 2))
    assert ran.parts == {"lost": 1.0, "reschedule": 0.5 + 1.0}


def test_a_peer_tier_is_vulnerable_until_the_next_save_not_only_until_the_end_of_recovery() -> None:
    # going on at 4 from 2; 0 is up again but empty
    ran = run(PEER, failure(3.0, 0), failure(4.5, 1))
    assert ran.parts == {"lost": 0.5 + 3.0, "reschedule": 1.0 + 2.0}
    # the save of 4 at the hour 6 fills it
    ran = run(PEER, failure(3.0, 0), failure(6.5, 1))
    assert ran.parts == {"lost": 1.0 + 0.5, "reschedule": 1.0 + 1.0}


@pytest.mark.parametrize(
    ("slot", "parts"),
    [(1, {"lost": 3.0, "load": 0.5, "reschedule": 2.0}), (2, {"lost": 1.0, "load": 1.5})],
)
def test_a_failure_during_a_fetch_may_kill_the_peer(slot: int, parts: dict[str, float]) -> None:
    job = job_of(
        back_to("memory", stages=(stage("load"),)),
        AGAIN,
        tiers=(in_memory(Ring(2), load_h=1.0),),
        captures=(saved("memory", 2.0),),
    )
    assert run(job, failure(3.0, 0), failure(3.5, slot)).parts == parts


@pytest.mark.parametrize(("strided", "harmless"), [(False, 2), (True, 1)])
def test_a_group_outlives_one_of_its_members(strided: bool, harmless: int) -> None:
    job = job_of(
        back_to("memory", stages=()),
        AGAIN,
        tiers=(in_memory(Groups(2, 1, strided)),),
        captures=(saved("memory", 2.0),),
    )
    assert run(job, failure(3.0, 0, harmless)).parts == {"lost": 1.0}
    assert run(job, failure(3.0, 0, 3 - harmless)).parts == {"lost": 3.0, "reschedule": 2.0}


def test_a_live_tier_is_there_again_as_the_recovery_ends() -> None:
    rule = Rule(
        Reverts.ALL, (stage("regroup", 0.5),), To.STEP_BEGUN, needs=("replicas",), replay_speed=2.0
    )
    replicas = Tier("replicas", Medium.DEVICE, Groups(2, 1), "state")
    job = job_of(rule, AGAIN, tiers=(replicas,), step_h=0.75)
    process = [failure(at_h, slot, scope=PROCESS) for at_h, slot in [(3.5, 0), (3.75, 1)]]
    # from 3.5 back to 3.0
    assert run(job, process[0]).parts == {"lost": 0.25, "regroup": 0.5}
    assert run(job, *process).parts == {"lost": 3.5, "regroup": 0.25, "reschedule": 2.0}
    later = failure(5.0, 1, scope=PROCESS)  # progress 4.25, back to 3.75
    assert run(job, process[0], later).parts == {"lost": 0.5, "regroup": 1.0}


def test_for_the_struck_alone_the_shards_of_others_do_not_have_to_be_there() -> None:
    job = job_of(
        struck_back_to("memory", stages=(stage("reschedule", 1.0),)),
        AGAIN,
        tiers=(in_memory(Ring(2)),),
        captures=(saved("memory", 2.0),),
    )
    # shard 0 is lost at 3.5, where shard 1 alone is asked for
    ran = run(job, failure(3.0, 0), failure(3.5, 1))
    assert ran.parts == {"reschedule": 1.5}
    assert ran.stale == ((3.0, 0, 2.0), (3.0, 1, 2.0))


# --------------------------------------------------------------------------- who goes back


def test_a_failure_rolls_all_back_and_what_is_done_again_is_saved_again() -> None:
    rule = back_to("remote", stages=(stage("detect"), stage("load")))
    job = job_of(rule, tiers=(remote(load_h=0.5),), captures=(saved("remote", 2.0, 0.5),))
    ran = run(job, failure(4.75, 0))  # in the save of 4: back to 2
    assert ran.parts == {"lost": 2.0, "save": 0.5 + 0.25 + 4 * 0.5, "detect": 0.25, "load": 0.5}
    assert ran.outcome.n_saves == 5


@pytest.mark.parametrize(
    ("to", "lost_h"), [(To.STEP_BEGUN, 0.5), (To.STEP_BEFORE, 0.75), (To.START, 3.5)]
)
def test_all_go_back_to_a_step_or_to_the_start(to: To, lost_h: float) -> None:
    job = job_of(Rule(Reverts.ALL, (stage("regroup", 0.25),), to), step_h=0.75)
    assert run(job, failure(3.5, 0)).parts == {"lost": lost_h, "regroup": 0.25}


def test_before_the_first_step_there_is_nothing_to_undo() -> None:
    job = job_of(Rule(Reverts.ALL, (), To.STEP_BEFORE), step_h=0.75)
    assert run(job, failure(0.5, 0)).parts == {"lost": 0.5}


def test_work_that_is_replayed_faster_costs_less() -> None:
    job = job_of(from_start(replay_speed=4.0))
    ran = run(job, failure(4.0, 0))
    assert (ran.wall_h, ran.parts) == (11.0, {"lost": 1.0})


def test_shards_that_go_back_alone_are_stale_or_replay_what_they_lost() -> None:
    tiers, captures = (remote(load_h=0.5),), (saved("remote", 4.0),)
    stages = (stage("load"), stage("replay"))
    job = job_of(
        struck_back_to("remote", stages=stages[:1], replay_speed=2.0),
        AGAIN,
        tiers=tiers,
        captures=captures,
    )
    ran = run(job, failure(7.0, 1, 2))
    assert ran.parts == {"load": 0.5}
    assert ran.stale == ((7.0, 1, 4.0), (7.0, 2, 4.0))
    rule = replace(job.policy.rules[0], stages=stages)
    ran = run(job_of(rule, AGAIN, tiers=tiers, captures=captures), failure(7.0, 1, 2))
    assert ran.parts == {"load": 0.5, "replay": 1.5}
    assert ran.stale == ()


def test_all_shards_may_go_back_while_the_progress_stays() -> None:
    rule = Rule(Reverts.SHARDS, (stage("load"),), sources=("remote",))
    job = job_of(rule, AGAIN, tiers=(remote(load_h=0.5),), captures=(saved("remote", 4.0),))
    ran = run(job, failure(5.0, 2))
    assert ran.parts == {"load": 0.5}
    assert ran.stale == tuple((5.0, slot, 4.0) for slot in range(4))


def test_a_reader_loads_nothing_where_the_struck_alone_go_back() -> None:
    rule = struck_back_to("remote", stages=(stage("reschedule", 0.25), stage("load", 0.125)))
    job = job_of(
        rule,
        AGAIN,
        tiers=(remote(load_h=0.5),),
        captures=(saved("remote", 4.0),),
        roles=(STATE, READERS),
    )
    assert run(job, failure(5.0, READER)).parts == {"reschedule": 0.25}
    assert run(job, failure(5.0, READER, 0)).parts == {"reschedule": 0.25, "load": 0.625}


def for_roles(*roles: str, spares: int | None = None) -> SimulatedJob:
    """The struck alone go back if they are of these roles, else all do."""
    return job_of(
        struck_back_to("remote", stages=(stage("wait"), stage("regroup", 0.5)), roles=roles),
        back_to("remote", stages=(stage("wait"), stage("reschedule", 1.0))),
        tiers=(remote(),),
        captures=(saved("remote", 4.0),),
        roles=(STATE, TRAINERS),
        spares=spares,
    )


@pytest.mark.parametrize(
    ("roles", "slots", "holds"),
    [
        (("state",), (0,), True),
        (("state",), (0, 3), True),
        (("state",), (0, TRAINER), False),
        (("state",), (TRAINER,), False),
        (("trainers",), (TRAINER, 5), True),
        (("trainers", "state"), (0, TRAINER), True),
        ((), (0, TRAINER), True),
    ],
)
def test_a_rule_for_some_roles_holds_where_all_struck_slots_are_of_them(
    roles: tuple[str, ...], slots: tuple[int, ...], holds: bool
) -> None:
    parts = {"regroup": 0.5} if holds else {"lost": 1.0, "reschedule": 1.0}
    assert run(for_roles(*roles), failure(5.0, *slots)).parts == parts


def test_a_slot_that_waits_for_a_node_is_of_no_role_that_counts() -> None:
    # the trainer waits from 5 on, and has the node of slot 0 at 6.5; slot 0 has its node at 7
    job = for_roles("state", spares=0)
    waits = failure(5.0, TRAINER, repair_h=2.0)
    ran = run(job, waits, failure(5.5, 0, TRAINER, repair_h=1.0))
    assert ran.parts == {"lost": 1.0, "wait": 2.0, "reschedule": 0.5}
    assert ran.stale == ((4.0, 0, 4.0),)


# --------------------------------------------------------------------------- loads that share


LINK = Storage(4.0, shard_bytes=4.0)  # an hour for a shard alone
SHRINKS = Elastic("state", (1.0, 0.75, 0.5, 0.25))


def sharing(
    *rules: Rule, link: Storage = LINK, elastic: Elastic | None = None, spares: int | None = None
) -> SimulatedJob:
    """Saved at 4 and 8 h."""
    tier = Tier("remote", Medium.REMOTE, Outside(), "state", link)
    captures = (saved("remote", 4.0),)
    return job_of(*rules, AGAIN, tiers=(tier,), captures=captures, elastic=elastic, spares=spares)


LOADS = struck_back_to("remote", stages=(stage("load"),))


@pytest.mark.parametrize(
    ("reverts", "server", "load_h"),
    [
        (Reverts.STRUCK, 4.0, 2.0),
        (Reverts.STRUCK, 1.0, 4.0),  # its own bandwidth
        (Reverts.SHARDS, 4.0, 4.0),
        (Reverts.SHARDS, 0.5, 8.0),
        (Reverts.ALL, 4.0, 4.0),
    ],
)
def test_a_load_takes_as_long_as_its_shards_share_the_link(
    reverts: Reverts, server: float, load_h: float
) -> None:
    rule = Rule(reverts, (stage("load"),), sources=("remote",))
    ran = run(sharing(rule, link=Storage(4.0, server, 4.0)), failure(5.0, 0, 1))
    assert ran.parts == {"load": load_h} | ({"lost": 1.0} if reverts is Reverts.ALL else {})


def test_a_server_has_a_bandwidth_of_its_own() -> None:
    # at 2 bytes an hour for each, two do not slow each other down
    link = Storage(4.0, 2.0, 4.0)
    ran = run(sharing(LOADS, link=link), failure(5.0, 0), failure(6.0, 1))
    assert ran.parts == {"load": 2.0 + 1.0}


def all_shards(*stages: Stage) -> Rule:
    return Rule(Reverts.SHARDS, stages, sources=("remote",))


@pytest.mark.parametrize(("at_h", "hours"), [(5.5, 2.0), (6.5, 4.0)])
def test_a_load_over_no_link_is_left_out_as_well_but_not_cut_short(
    at_h: float, hours: float
) -> None:
    stages = [stage(kind, 1.0, blocks=False) for kind in ("regroup", "load", "rebuild")]
    job = job_of(
        all_shards(*stages),
        AGAIN,
        tiers=(remote(load_h=1.0),),
        captures=(saved("remote", 4.0),),
        elastic=SHRINKS,
    )
    # the second takes 1 + 2 + 1 h; so does the first, unless it has not begun to load
    ran = run(job, failure(5.0, 0), failure(at_h, 1))
    assert ran.parts == {"degraded": (hours + 4.0) * 0.25}


def test_what_all_go_back_to_is_loaded_as_a_whole() -> None:
    alone = struck_back_to("remote", stages=(stage("load"),), scopes=("process",))
    every = back_to("remote", stages=(stage("load"),))
    # 1 byte of each of 4 shards by 6; with the others 3 until 12, and theirs 1 until 13
    ran = run(sharing(alone, every), failure(5.0, 0), failure(6.0, 0, 1, 2, 3, scope=PROCESS))
    assert ran.parts == {"lost": 1.0, "load": 1.0 + 6.0 + 1.0}


def test_what_all_go_back_to_takes_the_link_from_those_that_it_takes_over() -> None:
    alone = struck_back_to("remote", stages=(stage("load"),), scopes=("process",))
    every = back_to("remote", stages=(stage("load"),))
    ran = run(sharing(alone, every), failure(5.0, 0, 1, scope=PROCESS), failure(6.0, 2))
    assert ran.parts == {"lost": 1.0, "load": 1.0 + 4.0}


def test_a_shared_load_of_no_bytes_is_no_load_to_go_on_for() -> None:
    aside = nobody(stage("regroup", 0.25), scopes=("process",))
    every = back_to(
        "remote", stages=(stage("reschedule", 1.0), stage("load"), stage("rebuild", 2.0))
    )
    job = sharing(aside, every, link=Storage(4.0, shard_bytes=0.0))
    ran = run(job, failure(3.0, 0), failure(3.5, 0, scope=PROCESS))
    assert ran.parts == {"lost": 3.0, "reschedule": 0.5, "regroup": 0.25}


# --------------------------------------------------------------------------- recoveries together


def slotless(*stages: Stage) -> SimulatedJob:
    aside = nobody(stage("regroup", 0.25), scopes=("process",))
    return job_of(
        aside,
        back_to("remote", stages=stages),
        tiers=(remote(load_h=1.0),),
        captures=(saved("remote", 8.0),),
    )


def test_a_recovery_of_all_without_slots_goes_on_while_it_has_to_load() -> None:
    job = slotless(stage("load", 1.0), stage("rebuild", 2.0))
    ran = run(job, failure(3.0, 0), failure(4.0, 0, scope=PROCESS))
    assert ran.parts == {"lost": 3.0, "regroup": 0.25, "load": 1.75, "rebuild": 2.0}


def test_a_recovery_of_all_without_slots_ends_once_it_has_loaded() -> None:
    job = slotless(stage("load"), stage("rebuild", 2.0))
    ran = run(job, failure(3.0, 0), failure(4.5, 0, scope=PROCESS))
    assert ran.parts == {"lost": 3.0, "load": 1.0, "rebuild": 0.5, "regroup": 0.25}


def test_an_hour_is_booked_under_the_stage_of_the_least_advanced() -> None:
    job = job_of(nobody(stage("detect"), stage("reschedule", 1.0)), AGAIN)
    ran = run(job, failure(3.0, 0), failure(3.5, 1))
    # until 4.25 and 4.75; detection from 3.0 and from 3.5, 0.25 h each
    assert ran.parts == {"detect": 0.5, "reschedule": 1.25}


# --------------------------------------------------------------------------- speed


def test_without_some_units_the_job_is_slower_and_beyond_the_table_it_stands_still() -> None:
    rule = nobody(stage("reschedule", 2.0, blocks=False))
    job = job_of(rule, AGAIN, elastic=Elastic("state", (1.0, 0.5)))
    assert run(job, failure(3.0, 0)).parts == {"degraded": 1.0}
    # half speed from 3 to 4 and from 5 to 6, none between
    ran = run(job, failure(3.0, 0), failure(4.0, 1))
    assert ran.parts == {"degraded": 1.0, "wait": 1.0}
    assert ran.wall_h == 12.0


def test_two_nodes_of_one_unit_are_one_unit() -> None:
    rule = nobody(stage("reschedule", 2.0, blocks=False))
    job = job_of(rule, AGAIN, elastic=Elastic("state", (1.0, 0.5), unit_nodes=2))
    assert run(job, failure(3.0, 0, 1)).parts == {"degraded": 1.0}
    assert run(job, failure(3.0, 1, 2)).parts == {"wait": 2.0}


def test_of_two_recoveries_the_slower_one_counts() -> None:
    slow = nobody(stage("reschedule", 2.0, blocks=False), scopes=("node",), speed_meanwhile=0.25)
    fast = nobody(stage("reschedule", 2.0, blocks=False), speed_meanwhile=0.75)
    job = job_of(slow, fast, AGAIN)
    # 0.75 from 2 to 3, 0.25 from 3 to 5
    ran = run(job, failure(2.0, 0, scope=PROCESS), failure(3.0, 1))
    assert ran.parts == {"degraded": 0.25 + 2 * 0.75}


def test_tax_is_paid_for_lost_work_too() -> None:
    job = job_of(from_start(replay_speed=2.0), tax=Tax(compute=0.25))
    ran = run(job, failure(5.0, 0))  # at progress 4, done again in 2 h of work
    assert ran.parts == {"lost": 2.0, "tax": 2.5 + 0.5}
    assert ran.wall_h == 15.0


# --------------------------------------------------------------------------- spares


def test_the_job_shrinks_while_a_node_is_missing_and_grows_in_one_stall() -> None:
    rule = nobody(stage("wait", blocks=False), stage("regroup", 0.5))
    job = job_of(rule, AGAIN, spares=0, elastic=Elastic("state", (1.0, 0.75)))
    ran = run(job, failure(3.0, 0, repair_h=2.0))
    assert ran.parts == {"regroup": 0.5, "degraded": 0.5}


def test_a_spare_that_is_free_is_not_waited_for() -> None:
    job = job_of(nobody(stage("wait")), AGAIN, spares=1)
    assert run(job, failure(3.0, 0, repair_h=2.0)).wall_h == 10.0
    assert run(job, failure(3.0, 0, repair_h=2.0), failure(4.0, 1)).parts == {"wait": 1.0}


def test_nodes_go_to_slots_in_the_order_in_which_they_asked() -> None:
    job = job_of(nobody(stage("wait")), AGAIN, spares=0)
    ran = run(
        job,
        failure(1.0, 3, repair_h=4.0),  # its node is back at 5, and goes to 3
        failure(2.0, 0, repair_h=10.0),  # at 12
        failure(6.0, 3, repair_h=1.0),  # at 7, and goes to 0, who asked before
        failure(6.5, 0),  # has no node
        failure(8.0, 0, repair_h=1.0),  # at 9, and goes to 3, who asked at 6
    )
    assert ran.outcome.n_failures == 4
    assert ran.parts == {"wait": 11.0}


def test_a_failure_of_a_slot_that_waits_for_a_node_is_missed() -> None:
    job = job_of(from_start(stage("wait"), stage("regroup", 1.0)), spares=0)
    ran = run(job, failure(3.0, 0, repair_h=2.0), failure(4.0, 0))
    assert ran.outcome.n_failures == 1
    assert ran.parts == {"lost": 3.0, "wait": 2.0, "regroup": 1.0}
    # with another slot it is left out
    ran = run(job, failure(3.0, 0, repair_h=4.0), failure(4.0, 0, 1, repair_h=1.0))
    assert ran.outcome.n_failures == 2
    assert ran.parts == {"lost": 3.0, "wait": 4.0, "regroup": 1.0}


def test_a_slot_that_has_lost_its_node_has_no_further_one_to_lose() -> None:
    job = job_of(from_start(stage("detect", 1.0), stage("wait")), spares=0)
    # one node alone goes to repair: until 6. With a second the first to be back would do, at 4.5
    ran = run(job, failure(3.0, 0, repair_h=3.0), failure(3.5, 0, repair_h=1.0))
    assert ran.parts == {"lost": 3.0, "detect": 1.5, "wait": 1.5}


def test_a_process_asks_for_no_node() -> None:
    job = job_of(nobody(stage("wait"), stage("regroup", 0.5)), AGAIN, spares=0)
    assert run(job, failure(3.0, 0, scope=PROCESS)).parts == {"regroup": 0.5}


# --------------------------------------------------------------------------- clocks and ends


@pytest.mark.parametrize(
    ("clock", "parts"),
    [
        (Clock.WALL, {"lost": 3.0, "reschedule": 2.5}),
        (Clock.UPTIME, {"lost": 3.5, "reschedule": 4.0}),  # strikes at the hour 5.5, again at 0.5
        (Clock.PROGRESS, {"lost": 3.0 + 3.5, "reschedule": 4.0}),  # at the first time at 3.5
    ],
)
def test_failures_age_on_their_clock(clock: Clock, parts: dict[str, float]) -> None:
    assert run(job_of(AGAIN, clock=clock), failure(3.0, 0), failure(3.5, 1)).parts == parts


def test_uptime_goes_on_while_the_job_stands_still_with_nobody_in_its_way() -> None:
    rule = nobody(stage("reschedule", 2.0, blocks=False))
    job = job_of(rule, AGAIN, clock=Clock.UPTIME, elastic=Elastic("state", (1.0,)))
    assert run(job, failure(3.0, 0), failure(4.0, 1)).parts == {"wait": 3.0}


def test_a_horizon_ends_the_job_and_its_work_counts() -> None:
    ran = run(job_of(AGAIN, horizon_h=7.0), failure(3.0, 0))
    assert ran.outcome.finished
    assert (ran.wall_h, ran.outcome.useful_h) == (7.0, 2.0)  # going on at 5; 1 h is lost for good
    assert ran.parts == {"lost": 3.0, "reschedule": 2.0}
    assert run(job_of(AGAIN, horizon_h=16.0), failure(3.0, 0)).wall_h == 15.0


@pytest.mark.parametrize("blocks", [True, False])
def test_a_job_that_stands_still_does_so_to_the_end(blocks: bool) -> None:
    rule = nobody(stage("wait", blocks=blocks))
    never = failure(3.0, 0, repair_h=1e6)
    job = job_of(rule, AGAIN, spares=0, elastic=Elastic("state", (1.0,)))
    ran = run(job, never)
    assert not ran.outcome.finished
    assert (ran.wall_h, ran.parts) == (1000.0, {"wait": 997.0})


def test_a_thousand_failures_without_work_between_them_are_enough() -> None:
    failures = [failure(0.5 + n / 1024, 0) for n in range(2000)]
    ran = run(job_of(AGAIN), *failures)
    assert not ran.outcome.finished
    assert ran.outcome.n_failures == 1000
    assert ran.wall_h == 0.5 + 1000 / 1024


def test_after_five_thousand_failures_a_job_has_to_get_on() -> None:
    # 12 hours for each hour of work are too many, 8 are not
    def failures(every_h: float) -> list[ScopedFailure]:
        return [failure(every_h * (n + 1), 0) for n in range(6000)]

    def job(down_h: float) -> SimulatedJob:
        return job_of(nobody(stage("reschedule", down_h)), AGAIN, useful_h=6000.0)

    slow = run(job(11.0), *failures(12.0))
    assert not slow.outcome.finished
    assert slow.outcome.n_failures == 5000
    assert run(job(7.0), *failures(8.0)).outcome.finished


# --------------------------------------------------------------------------- draws


def test_costs_that_vary_are_asked_for_by_name_and_number() -> None:
    varying = Exponential(1.0)
    tier = Tier("remote", Medium.REMOTE, Outside(), "state", load=varying)
    rule = back_to(
        "remote", stages=(stage("detect"), Stage(StageKind.REGROUP, varying), stage("load"))
    )
    policy = Policy("by hand", (rule,), (tier,), (Capture("remote", 4.0, stall=varying),))
    scope = Scope("gpu", Reach.GPU, varying)
    job = SimulatedJob(10.0, Cluster((STATE,)), Clock.WALL, (scope,), policy)
    given_h = {
        ("stall/remote", 0): 0.5,
        ("stall/remote", 1): 0.25,
        ("detect/gpu", 0): 1.0,
        ("stage/0/1", 0): 2.0,
        ("load/remote", 0): 4.0,
        ("detect/gpu", 1): 0.125,
        ("stage/0/1", 1): 0.25,
        ("load/remote", 1): 0.5,
    }
    failures = [failure(5.5, 0, scope=0), failure(13.5, 0, scope=0)]  # at 5, and at 5 again
    assert run(job, *failures, draws=Draws(given_h)).parts == {
        "lost": 1.0 + 1.0,
        "save": 0.75,
        "detect": 1.125,
        "regroup": 2.25,
        "load": 4.5,
    }


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_every_hour_of_a_random_job_is_booked_once(first: int) -> None:
    for seed in range(first, first + 20):
        job, failures, draws = random_case(seed)
        outcome = naive.run(job, failures, draws)
        assert min(outcome.hours, default=0.0) >= 0.0, seed
        assert abs(outcome.useful_h + sum(outcome.hours) - outcome.wall_h) < 1e-6, seed


# --------------------------------------------------------------------------- copies made again


def after_two(placement: Ring | Groups, n_nodes: int, *second: int) -> bool:
    """Whether a job outlives node 0, and then others, copies having been made again."""
    again = replace(stage("detect"), copies_again=True)
    live = Tier("live", Medium.DEVICE, placement, "state")
    job = job_of(
        Rule(Reverts.NOBODY, (again, stage("rebuild", 8.0, blocks=False)), needs=("live",)),
        from_start(stage("detect")),
        tiers=(live,),
        roles=(Role("state", n_nodes, Holds.SHARD),),
    )
    outcome = naive.run(job, [failure(1.0, 0), failure(2.0, *second)], Draws())
    return outcome.hours[job.policy.parts.index("lost")] == 0.0


def test_others_hold_all_copies_again_in_a_smaller_ring_or_in_groups_of_their_own() -> None:
    assert after_two(Ring(2), 4, 1)
    assert not after_two(Ring(2), 4, 1, 3)  # neighbours by now
    assert after_two(Ring(3), 3, 1)
    assert not after_two(Ring(3), 3, 1, 2)  # all that are left
    pairs = Groups(2, 1)  # of 6 nodes: 1 and 2, 3 to 5
    assert not after_two(pairs, 6, 1, 2)
    assert after_two(pairs, 6, 2, 3)
    assert not after_two(pairs, 6, 4, 5)
    strided = Groups(2, 1, strided=True)  # 1, 3 and 5; 2 and 4
    assert after_two(strided, 6, 1, 4)
    assert not after_two(strided, 6, 1, 5)
    whole = Groups(3, 2)  # of 3 nodes: two are left, of which one may go
    assert after_two(whole, 3, 1)
    assert not after_two(whole, 3, 1, 2)


# --------------------------------------------------------------------------- waits to grow


def hours_with_one_missing(grows_h: float, *failures: ScopedFailure) -> float:
    """Half the speed while a node is missing: of 10 h of work, the hours that this takes more."""
    grow = Stage(StageKind.WAIT, blocks=False, grows_h=grows_h)
    job = job_of(
        nobody(stage("detect", 0.0), stage("wait", blocks=False), grow),
        from_start(stage("detect")),
        spares=0,
        elastic=Elastic("state", (1.0, 0.5)),
    )
    return naive.run(job, list(failures), Draws()).wall_h - 10.0


def test_slots_wait_for_the_job_to_take_them_in() -> None:
    lost = failure(1.0, 0)  # back at 2
    assert hours_with_one_missing(0.0, lost) == 0.5
    assert hours_with_one_missing(2.0, lost) == 0.5
    assert hours_with_one_missing(1.5, lost) == 1.0
    assert hours_with_one_missing(inf, lost) == 9.0  # never
    assert hours_with_one_missing(inf, lost, failure(4.0, 1)) == 9.0  # one is, the other isn't
    # one at once, as the job stands still without both; .125 h of work from 1 to 1.25, none to 2
    assert hours_with_one_missing(inf, lost, failure(1.25, 1)) == 0.125 + 0.75 + 8.875
