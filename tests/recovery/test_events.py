"""The SimPy engine does what `docs/recovery.md` says: lives of jobs worked out by hand.

Jobs work on the slots 0 to 3, and failures come on the wall clock, unless said otherwise. Lines of
a log are read as ``hour what detail``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from math import isclose, nan
from typing import Any

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Holds, Role
from cprsim.recovery.policy import (
    Capture,
    Elastic,
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
from cprsim.simulate.events import Played, What
from cprsim.simulate.events import run as run_events
from cprsim.simulate.job import Outcome, ReplicationDraws, ScopedFailure, SimulatedJob, StaleShard
from tests.recovery import naive
from tests.recovery.random_policies import random_case

SCOPES = ("all", "struck", "nobody", "quiet")
ALL, STRUCK, NOBODY, QUIET = range(4)  # scopes: failures of one node each, told by their rule


@dataclass(frozen=True, slots=True)
class Draws:
    """No costs that vary; the number u of a save is 0.999 unless it is given."""

    u: dict[tuple[str, int], float] = field(default_factory=dict)

    def hours(self, name: str, n: int) -> float:
        raise AssertionError(f"{name} does not vary")

    def uniform(self, tier: str, n: int) -> float:
        return self.u.get((tier, n), 0.999)


def stage(kind: str, hours: float | None = None, blocks: bool = True) -> Stage:
    return Stage(StageKind(kind), None if hours is None else Constant(hours), blocks)


def rule(reverts: str, *stages: Stage, **how: Any) -> Rule:
    return Rule(Reverts(reverts), stages, **how)


def remote(load_h: float = 0.0, **more: Any) -> Tier:
    return Tier("remote", Medium.REMOTE, Outside(), "state", Constant(load_h), **more)


def peers(load_h: float = 0.0) -> Tier:
    """The shard of each slot lies in the memory of its own node and of the next."""
    return Tier("peers", Medium.HOST, Ring(2), "state", Constant(load_h))


def saves(
    tier: str, every_h: float, stall_h: float = 0.0, behind_h: float = 0.0, **more: Any
) -> Capture:
    return Capture(tier, every_h, stall=Constant(stall_h), background=Constant(behind_h), **more)


def job_of(
    useful_h: float,
    *rules: Rule,
    tiers: tuple[Tier, ...] = (),
    captures: tuple[Capture, ...] = (),
    n_spares: int | None = None,
    clock: Clock = Clock.WALL,
    horizon_h: float | None = None,
    **more: Any,
) -> SimulatedJob:
    cluster = Cluster((Role("state", 4, Holds.SHARD),), n_spares)
    scopes = tuple(Scope(name, Reach.NODE, Constant(0.5)) for name in SCOPES)
    policy = Policy("by hand", rules, tiers, captures, **more)
    return SimulatedJob(useful_h, cluster, clock, scopes, policy, horizon_h)


def failure(
    at_h: float, *slots: int, scope: int = ALL, repair_h: tuple[float, ...] | None = None
) -> ScopedFailure:
    return ScopedFailure(at_h, slots, scope, repair_h or (1.0,) * len(slots))


def run(job: SimulatedJob, *failures: ScopedFailure, draws: Draws | None = None) -> Played:
    return run_events(job, iter(failures), draws or Draws())


def told(played: Played, since_h: float = 0.0) -> list[str]:
    return [
        f"{entry.at_h:g} {entry.what} {entry.detail}".strip()
        for entry in played.log
        if entry.at_h >= since_h
    ]


def parts(job: SimulatedJob, outcome: Outcome) -> dict[str, float]:
    """Where the hours went, those parts left out that took none."""
    named = zip(job.policy.parts, outcome.hours, strict=True)
    return {part: hours for part, hours in named if hours}


AGAIN = rule("all", stage("reschedule", 2.0), to=To.START)  # where nothing else holds

# --------------------------------------------------------------------------- copies


def on_peers(useful_h: float, load_h: float = 0.0, regroup_h: float = 0.0) -> SimulatedJob:
    """All go back to what the peers have, saved every 2 h with a stall of half an hour."""
    back = rule("all", stage("regroup", regroup_h), stage("load"), sources=("peers",))
    return job_of(
        useful_h, back, AGAIN, tiers=(peers(load_h),), captures=(saves("peers", 2.0, 0.5),)
    )


BEFORE_THE_PEER_FAILS = [
    "0 started",
    "2 save started peers",
    "2.5 save committed peers",
    "3 failed 1",
    "3 rolled back",
    "3 stage regroup",
    "4 back 1",
    "4 resumed",
]


def test_until_the_next_save_the_only_copy_of_a_shard_is_its_peers() -> None:
    played = run(on_peers(6.0, regroup_h=1.0), failure(3.0, 1), failure(4.25, 2))
    assert told(played) == [
        *BEFORE_THE_PEER_FAILS,
        "4.25 failed 2",  # slot 1 is back, but without the content 2; now nobody has its shard
        "4.25 rolled back",
        "4.25 stage reschedule",
        "6.25 back 2",
        "6.25 resumed",
        "8.25 save started peers",
        "8.75 save committed peers",
        "9.25 caught up",
        "10.75 save started peers",
        "11.25 save committed peers",
        "13.25 save started peers",
        "13.75 save committed peers",
        "13.75 finished",
    ]
    assert [e.progress_h for e in played.log if e.what is What.ROLLED_BACK] == [2.0, 0.0]


def test_after_the_next_save_a_shard_has_two_copies_again() -> None:
    played = run(on_peers(6.0, regroup_h=1.0), failure(3.0, 1), failure(7.0, 2))
    assert told(played) == [
        *BEFORE_THE_PEER_FAILS,
        "4.5 caught up",
        "6 save started peers",
        "6.5 save committed peers",
        "7 failed 2",
        "7 rolled back",
        "7 stage regroup",
        "8 back 2",
        "8 resumed",
        "8.5 caught up",
        "10 save started peers",
        "10.5 save committed peers",
        "10.5 finished",
    ]
    assert [e.progress_h for e in played.log if e.what is What.ROLLED_BACK] == [2.0, 4.0]


def test_a_failure_during_a_fetch_kills_the_peer_that_had_the_shard() -> None:
    played = run(on_peers(4.0, load_h=2.0), failure(3.0, 1), failure(4.0, 2))
    assert told(played, since_h=3.0) == [
        "3 failed 1",
        "3 rolled back",
        "3 stage load",
        "4 failed 2",
        "4 rolled back",
        "4 stage reschedule",
        "6 back 1",
        "6 back 2",
        "6 resumed",
        "8 save started peers",
        "8.5 save committed peers",
        "9 caught up",
        "10.5 save started peers",
        "11 save committed peers",
        "11 finished",
    ]


def test_a_failure_during_a_fetch_of_somebody_else_makes_all_fetch_again() -> None:
    job = on_peers(4.0, load_h=2.0)
    played = run(job, failure(3.0, 1), failure(4.0, 3))
    assert told(played, since_h=4.0) == [
        "4 failed 3",
        "4 rolled back",
        "4 stage load",
        "6 back 1",
        "6 back 3",
        "6 resumed",
        "6.5 caught up",
        "8 save started peers",
        "8.5 save committed peers",
        "8.5 finished",
    ]
    assert parts(job, played.outcome) == {"lost": 0.5, "save": 1.0, "load": 3.0}


def on_two_tiers() -> SimulatedJob:
    back = rule("all", stage("load"), sources=("peers", "remote"))
    captures = (saves("peers", 2.0, 0.25), saves("remote", 2.0, 0.25, 1.0))
    return job_of(4.0, back, AGAIN, tiers=(peers(0.5), remote(1.0)), captures=captures)


BEFORE_IT_IS_REMOTE = [
    "0 started",
    "2 save started peers",
    "2.25 save committed peers",
    "2.25 save started remote",
    "2.5 save resumed remote",
]


def test_a_save_that_has_committed_on_one_tier_alone_is_loaded_from_there() -> None:
    played = run(on_two_tiers(), failure(3.0, 1))
    assert told(played) == [
        *BEFORE_IT_IS_REMOTE,
        "3 failed 1",
        "3 rolled back",
        "3 save abandoned remote",
        "3 stage load",
        "3.5 back 1",
        "3.5 resumed",
        "4 caught up",
        "5.5 save started peers",
        "5.75 save committed peers",
        "5.75 save started remote",
        "6 save resumed remote",
        "7 save committed remote",
        "7 finished",
    ]


def test_a_save_that_has_committed_on_one_tier_alone_is_lost_with_it() -> None:
    played = run(on_two_tiers(), failure(3.0, 1, 2))
    assert told(played) == [
        *BEFORE_IT_IS_REMOTE,
        "3 failed 1",
        "3 failed 2",
        "3 rolled back",  # to the start, which the remote tier holds
        "3 save abandoned remote",
        "3 stage load",
        "4 back 1",
        "4 back 2",
        "4 resumed",
        "6 save started peers",
        "6.25 save committed peers",
        "6.25 save started remote",
        "6.5 save resumed remote",
        "7 caught up",
        "7.5 save committed remote",
        "8.5 save started peers",
        "8.75 save committed peers",
        "8.75 save started remote",
        "9 save resumed remote",
        "10 save committed remote",
        "10 finished",
    ]


def test_a_corrupt_newest_content_is_loaded_before_the_one_behind_it() -> None:
    back = rule("all", stage("load"), sources=("remote",))
    tier = remote(1.0, generations=2, p_corrupt=0.5)
    job = job_of(6.0, back, tiers=(tier,), captures=(saves("remote", 2.0, 0.5),))
    played = run(job, failure(6.0, 0), draws=Draws({("remote", 0): 0.9, ("remote", 1): 0.1}))
    assert told(played, since_h=4.5) == [
        "4.5 save started remote",
        "5 save committed remote",  # 4 h, and corrupt
        "6 failed 0",
        "6 rolled back",
        "6 stage load",
        "8 back 0",
        "8 resumed",
        "10 save started remote",
        "10.5 save committed remote",
        "11.5 caught up",
        "12.5 save started remote",
        "13 save committed remote",
        "13 finished",
    ]
    assert parts(job, played.outcome) == {"lost": 3.0, "save": 2.0, "load": 2.0}


# --------------------------------------------------------------------------- overlapping failures


def overlapping() -> SimulatedJob:
    """Saves 4 h of 8 h of work from the hour 4 to 4.5; what a failure does depends on its scope."""
    rules = (
        rule("all", stage("detect"), stage("load"), scopes=("all",), sources=("remote",)),
        rule(
            "struck", stage("detect"), stage("reschedule", 1.0),
            scopes=("struck",), sources=("remote",),
        ),
        rule("nobody", stage("regroup", 1.0), scopes=("nobody",)),
        rule(
            "nobody", stage("reschedule", 2.0, blocks=False),
            scopes=("quiet",), speed_meanwhile=0.5,
        ),
    )  # fmt: skip
    return job_of(8.0, *rules, tiers=(remote(1.5),), captures=(saves("remote", 4.0, 0.5),))


@dataclass(frozen=True, slots=True)
class Pair:
    """A failure of slot 0 at 5 h, when 4.5 h are done, and one that overlaps with its recovery."""

    first: int
    second: int
    at_h: float
    slot: int
    log: list[str]  # from the second one on, to where the job works again
    parts: dict[str, float]  # besides the two saves
    stale: tuple[StaleShard, ...] = ()


PAIRS = {
    "all, all": Pair(
        ALL, ALL, 6.0, 1,
        [
            "6 failed 1", "6 rolled back", "6 stage detect", "6.5 stage load",
            "8 back 0", "8 back 1", "8 resumed", "8.5 caught up",
        ],
        {"lost": 0.5, "detect": 1.0, "load": 2.0},
    ),
    "all, struck": Pair(
        ALL, STRUCK, 6.0, 1,
        [
            "6 failed 1", "6 reverted 1", "6 stage detect", "6.5 stage reschedule",
            "7 back 0", "7.5 back 1", "7.5 resumed", "8 caught up",
        ],
        {"lost": 0.5, "detect": 1.0, "reschedule": 1.0, "load": 0.5},
        (StaleShard(4.0, 1, 4.0, 4.0),),
    ),
    "all, struck: the load goes on without slots": Pair(
        ALL, STRUCK, 5.25, 0,
        [
            "5.25 failed 0", "5.25 reverted 0", "5.25 stage detect", "5.5 stage load",
            "5.75 stage reschedule", "6.75 back 0", "7 resumed",
            "7.5 caught up",
        ],
        {"lost": 0.5, "detect": 0.75, "reschedule": 1.0, "load": 0.25},
        (StaleShard(4.0, 0, 4.0, 4.0),),
    ),
    "all, nobody": Pair(
        ALL, NOBODY, 6.0, 1,
        ["6 failed 1", "6 stage regroup", "7 back 0", "7 back 1", "7 resumed", "7.5 caught up"],
        {"lost": 0.5, "detect": 0.5, "regroup": 1.0, "load": 0.5},
    ),
    "struck, all": Pair(
        STRUCK, ALL, 6.0, 1,
        [
            "6 failed 1", "6 rolled back", "6 stage detect", "6.5 stage load",
            "8 back 0", "8 back 1", "8 resumed", "8.5 caught up",
        ],
        {"lost": 0.5, "detect": 1.0, "reschedule": 0.5, "load": 1.5},
        (StaleShard(4.5, 0, 4.0, 4.0),),
    ),
    "struck, struck": Pair(
        STRUCK, STRUCK, 6.0, 1,
        [
            "6 failed 1", "6 reverted 1", "6 stage detect", "6.5 back 0",
            "6.5 stage reschedule", "7.5 back 1", "7.5 resumed",
        ],
        {"detect": 1.0, "reschedule": 1.5},
        (StaleShard(4.5, 0, 4.0, 4.0), StaleShard(4.5, 1, 4.0, 4.0)),
    ),
    "struck, struck: the same slot": Pair(
        STRUCK, STRUCK, 6.0, 0,
        [
            "6 failed 0", "6 reverted 0", "6 stage detect", "6.5 stage reschedule",
            "7.5 back 0", "7.5 resumed",
        ],
        {"detect": 1.0, "reschedule": 1.5},
        (StaleShard(4.5, 0, 4.0, 4.0), StaleShard(4.5, 0, 4.0, 4.5)),
    ),
    "nobody, all": Pair(
        NOBODY, ALL, 5.5, 1,
        [
            "5.5 failed 1", "5.5 rolled back", "5.5 stage detect", "6 stage load",
            "7.5 back 0", "7.5 back 1", "7.5 resumed", "8 caught up",
        ],
        {"lost": 0.5, "detect": 0.5, "regroup": 0.5, "load": 1.5},
    ),
    "nobody, struck": Pair(
        NOBODY, STRUCK, 5.5, 1,
        [
            "5.5 failed 1", "5.5 reverted 1", "5.5 stage detect", "6 back 0",
            "6 stage reschedule", "7 back 1", "7 resumed",
        ],
        {"detect": 0.5, "reschedule": 1.0, "regroup": 0.5},
        (StaleShard(4.5, 1, 4.0, 4.0),),
    ),
    "in the background, all": Pair(
        QUIET, ALL, 6.0, 1,  # at half the speed: 5 h are done
        [
            "6 failed 1", "6 rolled back", "6 stage detect", "6.5 stage load",
            "7 back 0", "8 back 1", "8 resumed", "9 caught up",
        ],
        {"lost": 1.0, "detect": 0.5, "load": 1.5, "degraded": 0.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_of_two_overlapping_failures_each_rule_does_its_part(pair: Pair) -> None:
    job = overlapping()
    first, second = (
        failure(5.0, 0, scope=pair.first),
        failure(pair.at_h, pair.slot, scope=pair.second),
    )
    played = run(job, first, second)
    wall_h = 8.0 + 1.0 + sum(pair.parts.values())
    assert told(played, since_h=pair.at_h) == [
        *pair.log,
        f"{wall_h - 0.5:g} save started remote",
        f"{wall_h:g} save committed remote",
        f"{wall_h:g} finished",
    ]
    outcome = played.outcome
    assert parts(job, outcome) == {"save": 1.0, **pair.parts}
    assert (outcome.wall_h, outcome.useful_h, outcome.n_failures) == (wall_h, 8.0, 2)
    assert outcome.stale == pair.stale


# --------------------------------------------------------------------------- saves and failures


def test_what_ends_at_an_instant_ends_before_a_failure_of_that_instant() -> None:
    played = run(overlapping(), failure(4.5, 0))
    assert told(played, since_h=4.5)[:3] == [
        "4.5 save committed remote",
        "4.5 failed 0",
        "4.5 rolled back",
    ]
    assert parts(overlapping(), played.outcome) == {"save": 1.0, "detect": 0.5, "load": 1.5}


def test_a_save_that_is_struck_is_tried_again_once_where_nobody_goes_back() -> None:
    played = run(overlapping(), failure(4.25, 0, scope=NOBODY))
    assert told(played, since_h=4.0) == [
        "4 save started remote",
        "4.25 failed 0",
        "4.25 save abandoned remote",
        "4.25 stage regroup",
        "5.25 back 0",
        "5.25 resumed",
        "5.25 save started remote",
        "5.75 save committed remote",
        "9.75 save started remote",
        "10.25 save committed remote",
        "10.25 finished",
    ]


def test_a_rule_that_stops_nothing_leaves_the_save_alone() -> None:
    played = run(overlapping(), failure(4.25, 0, scope=QUIET))
    assert told(played, since_h=4.0) == [
        "4 save started remote",
        "4.25 failed 0",
        "4.25 stage reschedule",
        "4.5 save committed remote",
        "6.25 back 0",  # 1.75 h at half the speed
        "9.375 save started remote",
        "9.875 save committed remote",
        "9.875 finished",
    ]


@pytest.mark.parametrize(
    ("when_busy", "log"),
    [
        (
            WhenBusy.WAIT,
            [
                "4 save awaited", "5 save committed remote", "5 save started remote",
                "5 save resumed remote", "7 save awaited", "8 save committed remote",
                "8 save started remote", "8 save resumed remote", "11 save committed remote",
                "11 finished",
            ],
        ),
        (
            WhenBusy.SKIP,
            [
                "4 save left out remote", "5 save committed remote", "6 save started remote",
                "6 save resumed remote", "9 save committed remote", "9 finished",
            ],
        ),
    ],
)  # fmt: skip
def test_a_save_that_is_due_while_one_is_in_flight_waits_or_is_left_out(
    when_busy: WhenBusy, log: list[str]
) -> None:
    capture = saves("remote", 2.0, 0.0, 3.0, when_busy=when_busy)
    played = run(job_of(6.0, AGAIN, tiers=(remote(),), captures=(capture,)))
    assert told(played) == [
        "0 started",
        "2 save started remote",
        "2 save resumed remote",
        *log,
    ]


def test_many_saves_without_a_failure_are_taken_in_one_step() -> None:
    back = rule("all", stage("load"), sources=("remote",))
    capture = saves("remote", 1.0, 0.25)
    job = job_of(1000.0, back, tiers=(remote(1.0),), captures=(capture,))
    played = run(job, failure(700.5, 0))
    assert parts(job, played.outcome) == {"lost": 0.5, "save": 250.0, "load": 1.0}
    assert (played.outcome.wall_h, played.outcome.n_saves) == (1251.5, 1000)
    assert told(played)[1] == "0 cycles skipped 558"  # of 560 before the failure, 1 is kept
    assert len(played.log) < 30


def off_the_grid() -> tuple[SimulatedJob, ScopedFailure]:
    """Every fourth save is flushed; that of 6 h is tried again at 6.75 h: it is no eighth one."""
    captures = (
        saves("peers", 1.0, 0.0, 0.9375, in_flight=2),
        Capture("remote", after="peers", every_nth=4),
    )
    rules = (rule("nobody", stage("regroup", 0.5)),)
    job = job_of(20.0, *rules, tiers=(peers(), remote()), captures=captures)
    return job, failure(6.75, 0)


def test_cycles_are_not_skipped_past_a_save_off_the_grid() -> None:
    job, fails = off_the_grid()
    outcome = run(job, fails).outcome
    assert outcome.n_saves == 5 + 1 + 14 + 5  # to the peers before, again and after; flushed
    assert outcome.wall_h == 20.0 + 0.5 + 0.9375


def test_on_the_clock_of_progress_no_failure_ages_in_a_save() -> None:
    job = overlapping()
    played = run(SimulatedJob(8.0, job.cluster, Clock.PROGRESS, job.scopes, job.policy),
                 failure(4.0, 0), failure(6.0, 1, scope=NOBODY))  # fmt: skip
    assert told(played, since_h=4.0) == [
        "4 save started remote",
        "4.5 save committed remote",
        "4.5 failed 0",  # its clock stands still as 4 h are reached, and goes on with the work
        "4.5 rolled back",
        "4.5 stage detect",
        "5 stage load",
        "6.5 back 0",
        "6.5 resumed",
        "8.5 failed 1",
        "8.5 stage regroup",
        "9.5 back 1",
        "9.5 resumed",
        "11.5 save started remote",
        "12 save committed remote",
        "12 finished",
    ]


# --------------------------------------------------------------------------- elastic jobs, spares


def elastic(n_spares: int | None, *captures: Capture, regroup_h: float = 1.0) -> SimulatedJob:
    """Works at half the speed without a slot, not at all without two, and stops to grow."""
    grow = rule("nobody", stage("wait", blocks=False), stage("regroup", regroup_h))
    tiers = (remote(),) if captures else ()
    shrinks = Elastic("state", (1.0, 0.5))
    return job_of(8.0, grow, tiers=tiers, captures=captures, n_spares=n_spares, elastic=shrinks)


def test_a_job_that_shrank_stops_to_grow_when_its_node_is_there() -> None:
    job = elastic(0)
    played = run(job, failure(2.0, 0, repair_h=(2.0,)))
    assert told(played) == [
        "0 started",
        "2 failed 0",
        "2 stage wait",
        "4 stage regroup",
        "5 back 0",
        "5 resumed",
        "10 finished",
    ]
    assert parts(job, played.outcome) == {"regroup": 1.0, "degraded": 1.0}


def test_a_save_goes_on_while_the_job_stops_to_grow() -> None:
    job = elastic(0, saves("remote", 2.75, 1.0))
    played = run(job, failure(2.0, 0, repair_h=(2.0,)))
    assert told(played) == [
        "0 started",
        "2 failed 0",
        "2 stage wait",
        "3.5 save started remote",
        "4 stage regroup",
        "4.5 save committed remote",
        "5 back 0",
        "5 resumed",
        "7.75 save started remote",
        "8.75 save committed remote",
        "11.25 finished",
    ]
    assert parts(job, played.outcome) == {"save": 1.5, "regroup": 1.0, "degraded": 0.75}


def test_without_too_many_slots_the_job_waits_to_the_end() -> None:
    job = elastic(0)
    played = run(job, failure(2.0, 0, 1, repair_h=(5000.0, 5000.0)))
    assert told(played) == ["0 started", "2 failed 0", "2 failed 1", "2 stage wait", "800 stopped"]
    assert not played.outcome.finished
    assert (played.outcome.useful_h, parts(job, played.outcome)) == (2.0, {"wait": 798.0})


def test_nodes_go_to_slots_in_the_order_in_which_they_asked() -> None:
    job = job_of(4.0, rule("nobody", stage("wait"), stage("reschedule", 0.5)), n_spares=1)
    played = run(
        job,
        failure(2.0, 1, 3, repair_h=(3.0, 5.0)),
        failure(3.0, 3),
        failure(4.0, 0, repair_h=(10.0,)),
    )
    assert told(played) == [
        "0 started",
        "2 failed 1",
        "2 failed 3",
        "2 stage wait",  # slot 1 has the spare
        "3 missed 3",
        "4 failed 0",
        "4 stage wait",
        "5 stage reschedule",  # the node of slot 1 goes to slot 3
        "5.5 back 1",
        "5.5 back 3",
        "7 stage reschedule",  # that of slot 3 goes to slot 0
        "7.5 back 0",
        "7.5 resumed",
        "9.5 finished",
    ]
    assert parts(job, played.outcome) == {"wait": 5.0, "reschedule": 0.5}
    assert played.outcome.n_failures == 2


# --------------------------------------------------------------------------- ends


def test_at_its_horizon_a_job_has_finished_with_the_work_that_it_has_done() -> None:
    capture = saves("remote", 4.0, 0.5)
    job = job_of(8.0, AGAIN, tiers=(remote(),), captures=(capture,), horizon_h=6.5)
    played = run(job, failure(6.5, 0))
    assert told(played) == [
        "0 started",
        "4 save started remote",
        "4.5 save committed remote",
        "6.5 finished",
    ]
    outcome = played.outcome
    assert (outcome.finished, outcome.wall_h, outcome.useful_h) == (True, 6.5, 6.0)
    assert outcome.n_failures == 0


def test_tax_is_on_top_of_useful_and_of_lost_work() -> None:
    job = job_of(4.0, AGAIN, tax=Tax(compute=0.25))
    played = run(job, failure(2.5, 0))
    assert [(f"{e.at_h:g}", e.what.value, e.part, e.progress_h) for e in played.log] == [
        ("0", "started", "useful", 0.0),
        ("2.5", "failed", "reschedule", 2.0),
        ("2.5", "rolled back", "reschedule", 0.0),
        ("2.5", "stage", "reschedule", 0.0),
        ("4.5", "back", "lost", 0.0),
        ("4.5", "resumed", "lost", 0.0),
        ("7", "caught up", "useful", 2.0),
        ("9.5", "finished", "over", 4.0),
    ]
    assert parts(job, played.outcome) == {"lost": 2.0, "reschedule": 2.0, "tax": 1.5}


def test_a_log_that_nobody_asked_for_is_empty_and_changes_nothing() -> None:
    job, failures, draws = random_case(1)
    silent = run_events(job, iter(failures), draws, logged=False)
    assert silent.log == ()
    assert silent.outcome == run_events(job, iter(failures), draws).outcome


# --------------------------------------------------------------------------- random systems


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_jobs_fare_as_the_naive_interpreter_says(first: int) -> None:
    for seed in range(first, first + 50):
        assert differences(*random_case(seed)) == [], seed


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_jobs_that_save_often_fare_as_if_no_cycle_was_skipped(seed: int) -> None:
    job, failures, draws = random_case(seed)
    assert differences(saving_often(job), failures[:100], draws) == []


def saving_often(job: SimulatedJob) -> SimulatedJob:
    """Fixed costs and a twelfth of the interval, for each capture or for the first alone."""
    captures = list(job.policy.captures)
    on_grid = [n for n, capture in enumerate(captures) if capture.every_h is not None]
    for n in on_grid[: 1 if len(job.scopes) % 2 else None]:
        old = captures[n]
        assert old.every_h is not None
        stall, behind = (
            None if cost is None else Constant(cost.mean_h / 12)
            for cost in (old.stall, old.background)
        )
        captures[n] = replace(
            old, every_h=old.every_h / 12, stall=stall, background=behind, p_fail=0.0
        )
    return replace(job, policy=replace(job.policy, captures=tuple(captures)))


def differences(
    job: SimulatedJob, failures: list[ScopedFailure], draws: ReplicationDraws
) -> list[tuple[float, float]]:
    """Numbers of the outcome that are not those of the naive interpreter."""
    ours = run_events(job, iter(failures), draws, logged=False).outcome
    theirs = naive.run(job, failures, draws)
    pairs = zip_longest(as_numbers(ours), as_numbers(theirs), fillvalue=nan)
    return [pair for pair in pairs if not isclose(*pair, rel_tol=1e-9, abs_tol=1e-9)]


def as_numbers(outcome: Outcome) -> list[float]:
    stale = [h for one in outcome.stale for h in (one.progress_h, one.slot, one.content_h)]
    counted = [outcome.finished, outcome.n_failures, outcome.n_saves, len(outcome.stale)]
    return [*counted, outcome.wall_h, outcome.useful_h, *outcome.hours, *stale]


@pytest.mark.parametrize("first", range(0, 50, 25))
def test_the_log_of_a_random_job_tells_in_order_where_its_hours_went(first: int) -> None:
    for seed in range(first, first + 25):
        job, failures, draws = random_case(seed)
        played = run_events(job, iter(failures), draws)
        assert [e.at_h for e in played.log] == sorted(e.at_h for e in played.log)
        hours: defaultdict[str, float] = defaultdict(float)
        for entry, after in pairwise(played.log):
            hours[entry.part] += after.at_h - entry.at_h
        for part, booked_h in zip(job.policy.parts, played.outcome.hours, strict=True):
            if part not in ("lost", "save", "degraded", "tax"):  # of work and of skipped cycles
                assert hours[part] == pytest.approx(booked_h, abs=1e-9), (seed, part)
