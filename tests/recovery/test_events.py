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
from cprsim.records import Activity, Clock, Cluster, EventKind, Holds, Role, Storage
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
    Tier,
    To,
    WhenBusy,
)
from cprsim.simulate.cluster import Played
from cprsim.simulate.cluster import run as run_events
from cprsim.simulate.job import (
    ReplicationDraws,
    ReplicationOutcome,
    ScopedFailure,
    SimulatedJob,
    StaleShard,
)
from cprsim.simulate.numbers import FINISHED
from tests.recovery import by_fast, naive
from tests.recovery.random_policies import RandomDraws, random_case

SCOPES = ("all", "struck", "nobody", "quiet")
ALL, STRUCK, NOBODY, QUIET = range(4)  # scopes: failures of one node each, told by their rule
STATE = Role("state", 4, Holds.SHARD)
TRAINERS = Role("trainers", 2, Holds.REPLICA)


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
    roles: tuple[Role, ...] = (STATE,),
    **more: Any,
) -> SimulatedJob:
    cluster = Cluster(roles, n_spares)
    scopes = tuple(Scope(name, Reach.NODE, Constant(0.5)) for name in SCOPES)
    policy = Policy("by hand", rules, tiers, captures, **more)
    return SimulatedJob(useful_h, cluster, clock, scopes, policy, horizon_h)


def failure(
    at_h: float, *slots: int, scope: int = ALL, repair_h: tuple[float, ...] | None = None
) -> ScopedFailure:
    return ScopedFailure(at_h, slots, scope, repair_h or (1.0,) * len(slots))


def run(job: SimulatedJob, *failures: ScopedFailure, draws: Draws | None = None) -> Played:
    """By SimPy, and by the two others, who have to agree."""
    draws = draws or Draws()
    assert differences(job, list(failures), draws) == []
    played = run_events(job, iter(failures), draws)
    if not draws.u:
        status, of_job, hours, counts = by_fast.run(job, failures, RandomDraws(0, 1.0))
        if status != LEFT:
            ours = [status == FINISHED, *counts, *of_job[:2], *hours]
            theirs = as_numbers(played.outcome)
            assert ours == pytest.approx([*theirs[:3], *theirs[4 : 4 + len(ours) - 3]], abs=1e-9)
    return played


def told(played: Played, since_h: float = 0.0) -> list[str]:
    log = played.log
    return [
        f"{at_h:g} {EventKind(kind).name.lower()} {slot if slot >= 0 else ''}".strip().replace(
            "_", " "
        )
        for at_h, kind, slot in zip(log.at_h, log.kind, log.slot, strict=True)
        if at_h >= since_h and kind != EventKind.STAGE
    ]


def struck_twice(capture: Capture, at_h: float, again_h: float, step_h: float) -> list[str]:
    """A failure stops the job for an hour; so does the next, and takes work. Saves since then."""
    stops = rule("nobody", stage("reschedule", 1.0), scopes=("nobody",))
    back = rule("all", stage("reschedule", 1.0), to=To.STEP_BEFORE)
    job = job_of(20.0, stops, back, tiers=(remote(),), captures=(capture,), step_h=step_h)
    played = run(job, failure(at_h, 0, scope=NOBODY), failure(again_h, 1))
    return [line for line in told(played, since_h=again_h) if "started" in line]


@pytest.mark.parametrize(
    ("again_h", "step_h", "begins"),
    [
        (12.5, 1.5, "13.5"),  # back to 10.5 h before the save is tried again
        (14.0, 1.5, "15"),  # back to 11.5 h: what the second try held, 12 h, is undone
        (12.5, 2.5, "14"),  # back to 9.5 h, and at 10 h it is due on the grid
    ],
)
def test_a_save_stays_due_until_it_commits_or_the_work_before_it_is_undone(
    again_h: float, step_h: float, begins: str
) -> None:
    """That of 10 h, struck at 12 h; the next on the grid is due at 20 h."""
    begun = struck_twice(saves("remote", 10.0, 0.0, 4.0), 12.0, again_h, step_h)
    assert begun[0] == f"{begins} save started"


def test_a_stall_runs_on_while_a_recovery_blocks_the_job() -> None:
    stops = rule("nobody", stage("detect", 0.5, blocks=False), stage("reschedule", 2.0))
    job = job_of(8.0, stops, AGAIN, tiers=(remote(),), captures=(saves("remote", 4.0, 1.0),))
    played = run(job, failure(3.75, 0))
    assert "5 save committed" in told(played)  # begun at 4, and blocked from 4.25
    assert parts(job, played.outcome) == {"save": 0.25 + 1.0, "reschedule": 2.0}


def test_the_replay_speed_is_that_of_the_last_rule_that_reverts_all_moved_or_not() -> None:
    """Back from 6 h to 4 h at speed 1, then to where it is, at speed 2."""
    slow = rule("all", stage("reschedule", 1.0), sources=("remote",), scopes=("all",))
    fast = replace(slow, scopes=("struck",), replay_speed=2.0)
    captures = (saves("remote", 4.0),)
    job = job_of(8.0, slow, fast, AGAIN, tiers=(remote(),), captures=captures)
    played = run(job, failure(6.0, 0), failure(6.5, 1, scope=STRUCK))
    assert parts(job, played.outcome) == {"lost": 1.0, "reschedule": 1.5}


def test_of_parts_that_are_due_again_those_not_undone_say_whether_one_completes() -> None:
    """Those of 2 h and of 4 h, the last of a content, struck at 5 h; back to 3.5 h."""
    capture = replace(saves("remote", 2.0, 0.0, 4.0), parts=2, in_flight=2)
    begun = struck_twice(capture, 5.0, 5.5, 1.5)
    assert begun[:2] == ["6.5 sub save started", "7 save started"]


def parts(job: SimulatedJob, outcome: ReplicationOutcome) -> dict[str, float]:
    """Where the hours went, those parts left out that took none."""
    named = zip(job.policy.parts, outcome.hours, strict=True)
    return {part: hours for part, hours in named if hours}


AGAIN = rule("all", stage("reschedule", 2.0), to=To.START)  # where nothing else holds

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
            "6 failed 1", "6 rolled back",
            "8 resumed", "8.5 caught up",
        ],
        {"lost": 0.5, "detect": 1.0, "load": 2.0},
    ),
    "all, struck": Pair(
        ALL, STRUCK, 6.0, 1,
        [
            "6 failed 1", "6 reverted 1",
            "7.5 resumed", "8 caught up",
        ],
        {"lost": 0.5, "detect": 1.0, "reschedule": 1.0, "load": 0.5},
        (StaleShard(4.0, 1, 4.0, 4.0),),
    ),
    "all, struck: the load goes on without slots": Pair(
        ALL, STRUCK, 5.25, 0,
        [
            "5.25 failed 0", "5.25 reverted 0",
            "7 resumed",
            "7.5 caught up",
        ],
        {"lost": 0.5, "detect": 0.75, "reschedule": 1.0, "load": 0.25},
        (StaleShard(4.0, 0, 4.0, 4.0),),
    ),
    "all, nobody": Pair(
        ALL, NOBODY, 6.0, 1,
        ["6 failed 1", "7 resumed", "7.5 caught up"],
        {"lost": 0.5, "detect": 0.5, "regroup": 1.0, "load": 0.5},
    ),
    "struck, all": Pair(
        STRUCK, ALL, 6.0, 1,
        [
            "6 failed 1", "6 rolled back",
            "8 resumed", "8.5 caught up",
        ],
        {"lost": 0.5, "detect": 1.0, "reschedule": 0.5, "load": 1.5},
        (StaleShard(4.5, 0, 4.0, 4.0),),
    ),
    "struck, struck": Pair(
        STRUCK, STRUCK, 6.0, 1,
        [
            "6 failed 1", "6 reverted 1",
            "7.5 resumed",
        ],
        {"detect": 1.0, "reschedule": 1.5},
        (StaleShard(4.5, 0, 4.0, 4.0), StaleShard(4.5, 1, 4.0, 4.0)),
    ),
    "struck, struck: the same slot": Pair(
        STRUCK, STRUCK, 6.0, 0,
        [
            "6 failed 0", "6 reverted 0",
            "7.5 resumed",
        ],
        {"detect": 1.0, "reschedule": 1.5},
        (StaleShard(4.5, 0, 4.0, 4.0), StaleShard(4.5, 0, 4.0, 4.5)),
    ),
    "nobody, all": Pair(
        NOBODY, ALL, 5.5, 1,
        [
            "5.5 failed 1", "5.5 rolled back",
            "7.5 resumed", "8 caught up",
        ],
        {"lost": 0.5, "detect": 0.5, "regroup": 0.5, "load": 1.5},
    ),
    "nobody, struck": Pair(
        NOBODY, STRUCK, 5.5, 1,
        [
            "5.5 failed 1", "5.5 reverted 1",
            "7 resumed",
        ],
        {"detect": 0.5, "reschedule": 1.0, "regroup": 0.5},
        (StaleShard(4.5, 1, 4.0, 4.0),),
    ),
    "in the background, all": Pair(
        QUIET, ALL, 6.0, 1,  # at half the speed: 5 h are done
        [
            "6 failed 1", "6 rolled back",
            "7 replaced 0", "8 resumed", "9 caught up",
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
        f"{wall_h - 0.5:g} save started",
        f"{wall_h:g} save committed",
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
        "4.5 save committed",
        "4.5 failed 0",
        "4.5 rolled back",
    ]
    assert parts(overlapping(), played.outcome) == {"save": 1.0, "detect": 0.5, "load": 1.5}


def test_a_save_that_is_due_at_the_end_begins_as_the_one_before_it_commits() -> None:
    # at 4 one tier is saved to, and the other has room from 5 on; both hold the end then
    job = job_of(
        4.0,
        AGAIN,
        tiers=(remote(), peers()),
        captures=(saves("remote", 2.0, 0.0, 6.0, in_flight=2), saves("peers", 2.0, 0.0, 3.0)),
    )
    played = run(job)
    assert told(played, since_h=4.5) == [
        "5 save committed",
        "5 save started",
        "5 save resumed",
        "8 save committed",
        "8 save committed",
        "10 save committed",
        "10 finished",
    ]
    assert parts(job, played.outcome) == {"save": 6.0}


def test_what_is_due_at_the_progress_of_a_failure_is_saved_before_it_strikes() -> None:
    job = job_of(
        6.0,
        rule("all", stage("regroup", 1.0), sources=("remote",)),
        tiers=(remote(), peers()),
        captures=(saves("remote", 2.0, 0.5), saves("peers", 2.0, 0.5)),
        clock=Clock.PROGRESS,
    )
    played = run(job, failure(4.0, 0))
    assert told(played, since_h=6.0)[:3] == [
        "6 save committed",
        "6 failed 0",
        "6 rolled back",
    ]
    assert parts(job, played.outcome) == {"save": 3.0, "regroup": 1.0}


def test_on_uptime_no_failure_strikes_as_a_stage_begins_that_blocks_the_job() -> None:
    aside = rule("nobody", stage("reschedule", 1.0, blocks=False), stage("regroup", 2.0))
    job = job_of(6.0, aside, AGAIN, clock=Clock.UPTIME)
    played = run(job, failure(2.0, 0), failure(3.0, 1))
    assert told(played, since_h=3.0)[:2] == [
        "5 resumed",
        "5 failed 1",
    ]


@pytest.mark.parametrize(("near_min", "far_min"), [(10, 70), (6, 18), (6, 42), (7, 21)])
def test_grids_that_meet_save_one_content_and_the_faster_tier_is_loaded(
    near_min: int, far_min: int
) -> None:
    # 7 times 10 min, in hours, is not what 70 min are: they differ by rounding
    far_h = far_min / 60
    job = job_of(
        40.0,
        rule("all", stage("load"), sources=("near", "remote")),
        tiers=(Tier("near", Medium.HOST, Ring(1), "state"), remote(1.0)),
        captures=(saves("near", near_min / 60), saves("remote", far_h)),
        roles=(STATE, TRAINERS),
    )
    failures = [failure(n * (far_h + 0.01), 4) for n in range(1, 20)]  # 0.01 h after each meeting
    played = run(job, *failures)
    assert parts(job, played.outcome) == {"lost": pytest.approx(0.19)}


def test_many_saves_without_a_failure_are_taken_in_one_step() -> None:
    back = rule("all", stage("load"), sources=("remote",))
    capture = saves("remote", 1.0, 0.25)
    job = job_of(1000.0, back, tiers=(remote(1.0),), captures=(capture,))
    played = run(job, failure(700.5, 0))
    assert parts(job, played.outcome) == {"lost": 0.5, "save": 250.0, "load": 1.0}
    assert (played.outcome.wall_h, played.outcome.n_saves) == (1251.5, 1000)
    assert len(played.log.at_h) < 30


def test_of_many_parts_without_a_failure_each_fourth_is_a_save() -> None:
    back = rule("all", stage("load"), sources=("remote",))
    capture = saves("remote", 1.0, 0.25, parts=4)
    job = job_of(1000.0, back, tiers=(remote(1.0),), captures=(capture,))
    played = run(job, failure(703.0, 0))  # 562.5 h are done, and 560 saved
    assert parts(job, played.outcome) == {"lost": 2.5, "save": 250.5, "load": 1.0}
    assert (played.outcome.wall_h, played.outcome.n_saves) == (1254.0, 250)
    assert len(played.log.at_h) < 60


def test_cycles_are_not_skipped_past_the_end_of_a_shared_load() -> None:
    link = Storage(0.04, shard_bytes=4.0)  # 100 h for a shard
    tier = Tier("remote", Medium.REMOTE, Outside(), "state", link)
    aside = rule("struck", stage("load", blocks=False), sources=("remote",), speed_meanwhile=0.5)
    job = job_of(1000.0, aside, AGAIN, tiers=(tier,), captures=(saves("remote", 1.0, 0.25),))
    played = run(job, failure(13.0, 0))
    assert "113 replaced 0" in told(played)
    # 0.5 h at the full speed before it; then 44 cycles of 2.25 h, but for 0.5 h of work: 44.5 h
    assert parts(job, played.outcome) == {"save": 250.0, "degraded": 44.5}


def test_a_slow_flush_on_its_way_does_not_go_along_with_skipped_cycles() -> None:
    """The flush of 3 h ends at 9.25; those of 9 h and 15 h are corrupt."""
    captures = (
        saves("peers", 1.0, 0.25),
        Capture(
            "remote",
            after="peers",
            every_nth=3,
            background=Constant(5.5),
            when_busy=WhenBusy.SKIP,
        ),
    )
    back = rule("all", stage("regroup", 0.5), sources=("remote",))
    tiers = (peers(), remote(generations=3, p_corrupt=0.5))
    job = job_of(200.0, back, tiers=tiers, captures=captures)
    played = run(job, failure(30.0, 0), draws=Draws({("remote", 1): 0.1, ("remote", 2): 0.1}))
    assert parts(job, played.outcome) == {"lost": 21.0, "save": 55.25, "regroup": 0.5}


def late_flush() -> tuple[SimulatedJob, list[ScopedFailure]]:
    """The save of 4 h, tried again at 4.25 h, is flushed until 9.5875 h, and that of 8 h is not.

    So the save of 28 h is still being flushed as all go back at 32 h: to that of 24 h.
    """
    captures = (
        saves("peers", 1.0, 0.0, 0.9375, in_flight=2),
        Capture("remote", after="peers", every_nth=4, background=Constant(3.9)),
    )
    rules = (
        rule("nobody", stage("regroup", 0.5), scopes=("nobody",)),
        rule("all", stage("regroup", 0.5), sources=("remote",)),
    )
    job = job_of(60.0, *rules, tiers=(peers(), remote()), captures=captures)
    return job, [failure(4.25, 0, scope=NOBODY), failure(32.0, 1)]


def test_a_flush_that_began_late_does_not_go_along_with_skipped_cycles() -> None:
    job, failures = late_flush()
    played = run(job, *failures)
    log = told(played)
    assert "5.6875 save started" in log
    assert parts(job, played.outcome) == {"lost": 31.5 - 24.0, "save": 0.9375, "regroup": 1.0}


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
        "4 save started",
        "4.5 save committed",
        "4.5 failed 0",  # its clock stands still as 4 h are reached, and goes on with the work
        "4.5 rolled back",
        "6.5 resumed",
        "8.5 failed 1",
        "9.5 resumed",
        "11.5 save started",
        "12 save committed",
        "12 finished",
    ]


# --------------------------------------------------------------------------- loads that share


def sharing(*rules: Rule) -> SimulatedJob:
    """Saves at 4 and 8 h, and loads a shard in an hour, two in two hours."""
    link = Storage(4.0, shard_bytes=4.0)
    tier = Tier("remote", Medium.REMOTE, Outside(), "state", link)
    return job_of(10.0, *rules, AGAIN, tiers=(tier,), captures=(saves("remote", 4.0),))


def loads(reverts: str, *stages: Stage, **how: Any) -> Rule:
    return rule(reverts, *stages, sources=("remote",), **how)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Failures, and what is logged from the first one on to where the job works again."""

    rules: tuple[Rule, ...]
    failures: tuple[ScopedFailure, ...]
    log: list[str]
    parts: dict[str, float]


SHARES = {
    "two recoveries": Sharing(
        (loads("struck", stage("load")),),
        (failure(5.0, 0), failure(5.5, 1)),
        [
            "5 failed 0", "5 reverted 0",
            "5.5 failed 1", "5.5 reverted 1",
            "7 resumed",
        ],
        {"load": 2.0},
    ),
    "shard by shard": Sharing(
        (loads("struck", stage("load")),),
        (failure(5.0, 0, 1), failure(6.0, 2, 3)),
        [
            "5 failed 0", "5 failed 1", "5 reverted 0", "5 reverted 1",
            "6 failed 2", "6 failed 3", "6 reverted 2", "6 reverted 3",
            "9 resumed",
        ],
        {"load": 4.0},
    ),
    "a shard is taken back again as it loads": Sharing(
        (loads("struck", stage("load")),),
        (failure(5.0, 0, 1), failure(6.0, 0)),
        [
            "5 failed 0", "5 failed 1", "5 reverted 0", "5 reverted 1",
            "6 failed 0", "6 reverted 0", "7.5 resumed",
        ],
        {"load": 2.5},
    ),
    "a shard is taken back again, and the others go on faster": Sharing(
        (loads("struck", stage("regroup", 0.5), stage("load")),),
        (failure(5.0, 0, 1), failure(6.0, 0)),
        [
            "5 failed 0", "5 failed 1", "5 reverted 0", "5 reverted 1",
            "6 failed 0", "6 reverted 0",
            "7.75 resumed",
        ],
        {"regroup": 1.0, "load": 1.75},
    ),
    "the last shard is taken back again as it loads": Sharing(
        (loads("shards", stage("load"), stage("rebuild", 1.0)),),
        (failure(5.0, 0), failure(6.0, 1)),
        [
            "5 failed 0", "5 reverted 0", "5 reverted 1", "5 reverted 2", "5 reverted 3",
            "6 failed 1", "6 reverted 0", "6 reverted 1", "6 reverted 2", "6 reverted 3",
            "11 resumed",
        ],
        {"load": 5.0, "rebuild": 1.0},
    ),
    "all shards are taken back again before they load": Sharing(
        (loads("shards", stage("regroup", 1.0), stage("load"), stage("rebuild", 1.0)),),
        (failure(5.0, 0), failure(5.5, 1)),
        [
            "5 failed 0", "5 reverted 0", "5 reverted 1", "5 reverted 2", "5 reverted 3",
            "5.5 failed 1", "5.5 reverted 0", "5.5 reverted 1", "5.5 reverted 2", "5.5 reverted 3",
            "11.5 resumed",
        ],
        {"regroup": 1.5, "load": 4.0, "rebuild": 1.0},
    ),
    "all go back, and some of them again": Sharing(
        (loads("struck", stage("load"), scopes=("struck",)), loads("all", stage("load"))),
        (failure(5.0, 0), failure(6.0, 0, 1, 2, 3, scope=STRUCK)),
        [
            "5 failed 0", "5 rolled back",
            "6 failed 0", "6 failed 1", "6 failed 2", "6 failed 3",
            "6 reverted 0", "6 reverted 1", "6 reverted 2", "6 reverted 3",
            "13 resumed",
        ],
        {"lost": 1.0, "load": 8.0},
    ),
    "some go back, and then all": Sharing(
        (loads("struck", stage("load"), scopes=("struck",)), loads("all", stage("load"))),
        (failure(5.0, 0, 1, scope=STRUCK), failure(6.0, 2)),
        [
            "5 failed 0", "5 failed 1", "5 reverted 0", "5 reverted 1",
            "6 failed 2",
            "6 rolled back", "10 resumed",
        ],
        {"lost": 1.0, "load": 5.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_loads_under_way_share_the_link(shares: Sharing) -> None:
    job = sharing(*shares.rules)
    played = run(job, *shares.failures)
    assert told(played, since_h=5.0)[: len(shares.log)] == shares.log
    assert parts(job, played.outcome) == shares.parts


# --------------------------------------------------------------------------- elastic jobs, spares


def elastic(n_spares: int | None, *captures: Capture, regroup_h: float = 1.0) -> SimulatedJob:
    """Works at half the speed without a slot, not at all without two, and stops to grow."""
    grow = rule("nobody", stage("wait", blocks=False), stage("regroup", regroup_h))
    tiers = (remote(),) if captures else ()
    shrinks = Elastic("state", (1.0, 0.5))
    return job_of(8.0, grow, tiers=tiers, captures=captures, n_spares=n_spares, elastic=shrinks)


def test_a_save_goes_on_while_the_job_stops_to_grow() -> None:
    job = elastic(0, saves("remote", 2.75, 1.0))
    played = run(job, failure(2.0, 0, repair_h=(2.0,)))
    assert told(played) == [
        "0 started",
        "2 failed 0",
        "3.5 save started",
        "4.5 save committed",
        "5 resumed",
        "7.75 save started",
        "8.75 save committed",
        "11.25 finished",
    ]
    assert parts(job, played.outcome) == {"save": 1.5, "regroup": 1.0, "degraded": 0.75}


# --------------------------------------------------------------------------- ends


def test_a_job_whose_work_is_all_lost_at_its_horizon_has_not_finished() -> None:
    outcome = run(job_of(20.0, AGAIN, horizon_h=9.0), failure(8.0, 0)).outcome
    assert (outcome.finished, outcome.wall_h, outcome.useful_h) == (False, 9.0, 8.0)


def test_a_save_that_commits_as_the_job_ends_counts_whatever_rounding_makes_of_it() -> None:
    assert 0.2 + 0.1 > 0.3  # when it commits, and when the job ends
    job = job_of(0.3, AGAIN, tiers=(remote(),), captures=(saves("remote", 0.2, 0.0, 0.1),))
    played = run(job)
    assert told(played)[-2:] == ["0.3 save committed", "0.3 finished"]
    assert played.outcome.n_saves == 1
    status, *_, (_, n_saves) = by_fast.run(job, (), RandomDraws(0, 1.0))
    assert (status, n_saves) == (FINISHED, 1)


@pytest.mark.parametrize(
    ("stall_h", "behind_h", "period_h", "lost_h"), [(0.1, 0.0, 1.2, 0.0), (0.0, 0.2, 1.1, 0.2)]
)
@pytest.mark.parametrize("nth", [1, 2, 3, 12])
def test_a_save_that_commits_as_a_failure_strikes_is_there_whatever_rounding_makes_of_it(
    stall_h: float, behind_h: float, period_h: float, lost_h: float, nth: int
) -> None:
    """So 1.1 h + 0.1 h are more than 1.2 h."""
    captures = (saves("remote", 1.1, stall_h, behind_h),)
    job = job_of(22.0, rule("all", sources=("remote",)), tiers=(remote(),), captures=captures)
    played = run(job, failure(round(nth * period_h + behind_h, 3), 0))
    assert parts(job, played.outcome).get("lost", 0.0) == pytest.approx(lost_h)


def test_a_log_that_nobody_asked_for_is_empty_and_changes_nothing() -> None:
    job, failures, draws = random_case(1)
    silent = run_events(job, iter(failures), draws, logged=False)
    assert len(silent.log.at_h) == 0
    assert silent.outcome == run_events(job, iter(failures), draws).outcome


# --------------------------------------------------------------------------- random systems


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


def as_numbers(outcome: ReplicationOutcome) -> list[float]:
    stale = [h for one in outcome.stale for h in (one.progress_h, one.slot, one.content_h)]
    counted = [outcome.finished, outcome.n_failures, outcome.n_saves, len(outcome.stale)]
    return [*counted, outcome.wall_h, outcome.useful_h, *outcome.hours, *stale]


@pytest.mark.parametrize("first", range(0, 50, 25))
def test_the_log_of_a_random_job_tells_in_order_where_its_hours_went(first: int) -> None:
    for seed in range(first, first + 25):
        job, failures, draws = random_case(seed)
        played = run_events(job, iter(failures), draws)
        log, hours = played.log, defaultdict[str, float](float)
        assert log.at_h.tolist() == sorted(log.at_h)
        for activity, (at_h, after_h) in zip(log.activity, pairwise(log.at_h), strict=False):
            hours[Activity(activity).name.lower()] += after_h - at_h
        for part, booked_h in zip(job.policy.parts, played.outcome.hours, strict=True):
            if part not in ("lost", "save", "degraded", "tax"):  # of work and of skipped cycles
                assert hours[part] == pytest.approx(booked_h, abs=1e-9), (seed, part)
