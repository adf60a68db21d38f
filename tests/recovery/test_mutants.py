"""Mutants of the shared transitions die: an engine that runs on one gets something wrong.

Cases are those of `test_engines`, and some by hand for what takes a coincidence to be seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product, zip_longest
from math import isclose, nan
from signal import ITIMER_VIRTUAL, SIGVTALRM, setitimer, signal
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from cprsim.failures.distributions import Constant, Exponential
from cprsim.records import Cluster, Holds, Role, Storage
from cprsim.recovery.policy import (
    OWN,
    Capture,
    Elastic,
    Groups,
    Medium,
    Outside,
    Reach,
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
from cprsim.simulate import transitions
from cprsim.simulate.events import replication as events
from cprsim.simulate.events import sharing as links
from cprsim.simulate.job import ReplicationDraws, ReplicationOutcome, ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import FINISHED, LEFT
from tests.mutating import Mutant
from tests.recovery import by_fast, naive
from tests.recovery.mutants import all_mutants, as_python, loops_of, module_of
from tests.recovery.random_policies import RandomDraws
from tests.recovery.test_engines import CASES, counts_of, hours_of, on_grid, rows_of
from tests.recovery.test_events import (
    AGAIN,
    ALL,
    NOBODY,
    SHARES,
    STATE,
    STRUCK,
    TRAINERS,
    Draws,
    failure,
    job_of,
    loads,
    off_the_grid,
    peers,
    remote,
    rule,
    saves,
    sharing,
    stage,
)

N_MUTANTS, SEED = 50, 1
LIMIT_S = 2.0  # of processor time, for a replication that takes some hundredths of it
# functions that say how much may be skipped
SKIPPING = ("cycles_to_skip", "is_in_rhythm", "flushes_go_along")
IN_COMPILED = ("shared_load_h", "uneven_load_h")  # that the compiled engine alone asks
PROCESS = 4  # a scope beside those of `test_events`, that wipes nothing but the device

# --------------------------------------------------------------------------- what is no mutant

ORDER = "copies.latest += 1"
OLDEST = "num.tiers[tier].level != OUTSIDE and copies.n_kept[tier]"
LACKS = "only_struck or slots[slot].wiped[level] > order"
THERE = "shard_is_there(num, copies, slots, tier, order, slot, n_left)"
GROWS_H = "ceil(now_h / every_h * (1.0 - ROUNDING)) * every_h - now_h"
SAME_UNIT = (
    "slots[slot].recovery != NONE and 0 <= other < num.elastic_size"
    " and (other // num.unit == place // num.unit)"
)
OTHER = "0 <= other < num.elastic_size"
STEP_BEGUN = "num.step_h * floor(progress_h / num.step_h + ROUNDING)"
OF_PARTS = "due_h < inf and number_of(num, capture, due_h) % parts == 0"
OLDEST_KEPT = "last - num.tiers[tier].generations * parts"
KEPT_H = "number * num.captures[capture].every_h"
FOLLOWED = "num.captures[capture].is_followed"
WORK_H = "num.captures[capture].every_h / progress_per_h"
EQUIVALENT = {
    # What it takes for a save in rhythm besides commits sooner than one, by `within_h`, and has the
    # number of one: it is in the way of none. None of 7,000 steady cases that were drawn tells it.
    ("is_in_rhythm", "within_h + saves.stall_h", "saves.stall_h"),
    # The SimPy engine begins once, with copies of which nothing is known. That the compiled one
    # forgets what was before is up to `test_replications_in_a_row_are_what_simpy_makes_of_each`.
    ("begin", "copies.n_recent = 0", "pass"),
    ("begin", "copies.n_recent = 0", "copies.n_recent = 1"),
    ("begin", "copies.n_recent = 0", "copies.n_recent = -1"),
    ("begin", "slots[slot].is_recent = slots[slot].left = False", "pass"),
    (
        "begin",
        "slots[slot].is_recent = slots[slot].left = False",
        "slots[slot].is_recent = slots[slot].left = True",
    ),
    ("begin", "slots[slot].wiped[level] = 0", "pass"),
    ("begin", "slots[slot].wiped[level] = 0", "slots[slot].wiped[level] = 1"),
    ("begin", "slots[slot].wiped[level] = 0", "slots[slot].wiped[level] = -1"),
    ("begin", "copies.n_kept[tier] = 0", "pass"),
    # No instant is just so far from another.
    (
        "due_after",
        "due_h < (1.0 - ROUNDING) * num.useful_h",
        "due_h <= (1.0 - ROUNDING) * num.useful_h",
    ),
    (
        "is_due",
        "due_h <= progress_h * (1.0 + ROUNDING)",
        "due_h < progress_h * (1.0 + ROUNDING)",
    ),
    # Numbers in the one order are only compared, a wipe with a commit. A return takes a new one,
    # so those of commits may be that of the return before them, or leave some out, and no two
    # that are compared are the same.
    ("begin", ORDER, "pass"),
    ("begin", ORDER, "copies.latest += 2"),
    ("begin", ORDER, "copies.latest += 0"),
    ("keep", ORDER, "pass"),
    ("keep", ORDER, "copies.latest += 2"),
    ("keep", ORDER, "copies.latest += 0"),
    ("come_back", ORDER, "copies.latest += 2"),
    ("shard_is_there", "slots[other].wiped[level] <= order", "slots[other].wiped[level] < order"),
    ("shard_is_there", "slots[other].wiped[level] > order", "slots[other].wiped[level] >= order"),
    ("survives", "slots[slot].wiped[level] > order", "slots[slot].wiped[level] >= order"),
    # The first place is written once more, by what is overwritten next.
    ("keep", "range(last, 0, -1)", "range(last, -1, -1)"),
    # To know of more wipes than are needed takes time alone: these leave `oldest` as it is or
    # lower it. (Behind the 7th content that is kept there is either nothing or an older one.)
    ("forget_wipes", OLDEST, "copies.n_kept[tier]"),
    ("forget_wipes", OLDEST, "num.tiers[tier].level != OUTSIDE"),
    ("forget_wipes", OLDEST, "num.tiers[tier].level != OUTSIDE or copies.n_kept[tier]"),
    ("forget_wipes", "copies.n_kept[tier] - 1", "-1"),
    ("forget_wipes", "latest > oldest", "latest >= oldest"),
    # Groups by any other numbers are the same groups.
    (
        "group_of",
        "return int(place % n_groups)",
        "return int(place % n_groups) + 1",
    ),
    (
        "group_of",
        "return int(min(place // num.tiers[tier].group, n_groups - 1))",
        "return int(min(place // num.tiers[tier].group, n_groups - 1)) + 1",
    ),
    # A slot of a group is there itself.
    (
        "group_of",
        "num.tiers[tier].first <= other < slot",
        "num.tiers[tier].first <= other <= slot",
    ),
    # Slots that have left a tier are never up in it, as they are out of their groups.
    ("shard_is_there", "n_left and slots[other].left", "slots[other].left"),
    # A shard of which no copy is there lacks the copy on its own slot, and that of a slot in a
    # group is there where its group is: to ask for the shards of a holder's own slot is enough.
    # To ask for others as well, or where nothing is missing, takes time alone.
    (
        "survives",
        f"is_of(num, tier, slot) and ({LACKS}) and (not {THERE})",
        f"is_of(num, tier, slot) and (not {THERE})",
    ),
    # No content is negative.
    ("newest", "-1.0", "-2.0"),
    # Nobody reads the content where the rule loads from none.
    ("choose", "-1.0", "-2.0"),
    ("choose", "-1.0", "-0.0"),
    # The beginning of the step in hand is beyond progress by rounding at most.
    ("goes_back_to", f"min(progress_h, {STEP_BEGUN})", STEP_BEGUN),
    # Whole units make up the role: what is in one with a slot of the role is of the role.
    (
        "n_units_lost",
        SAME_UNIT,
        "slots[slot].recovery != NONE and other // num.unit == place // num.unit",
    ),
    ("n_units_lost", OTHER, "0 <= other <= num.elastic_size"),
    ("n_units_lost", OTHER, "-1 <= other < num.elastic_size"),
    # Behind the last speed there are zeros.
    ("speed_of", "n_lost < num.n_speeds", "n_lost <= num.n_speeds"),
    # A regrouping without a cost of its own is legal only where hours of regroupings are said.
    ("regroup_h_of", "num.n_regroups == 0", "num.n_regroups == -1"),
    ("regroup_h_of", "return 0.0", "return 0.0 + 1"),
    ("regroup_h_of", "return 0.0", "return 1.0"),
    ("regroup_h_of", "return 0.0", "return -1.0"),
    ("due_after", "return inf", "return inf + 1"),
    ("grows_in_h", "return inf", "return inf + 1"),
    # A wait that ends by rounding before now ends now.
    ("grows_in_h", f"max(0.0, {GROWS_H})", GROWS_H),
    ("grows_in_h", f"max(0.0, {GROWS_H})", f"max(-1.0, {GROWS_H})"),
    # Those in flight are no more than fit behind.
    ("cycles_to_skip", "number - n_behind - 1", "number - n_behind"),
    ("cycles_to_skip", "number - n_behind - 1", "number - n_behind - 0"),
    # Nothing is in flight where saves are over when the job goes on: one less is the mutant above.
    (
        "cycles_to_skip",
        "ceil((stall_h + behind_h) / cycle_h) if behind_h > 0.0 else 0",
        "ceil((stall_h + behind_h) / cycle_h) if behind_h > 0.0 else -1",
    ),
    # A copy's numbers are written before they are read.
    ("_zeros", "_zeros(*of) if of else 0", "_zeros(*of) if of else 1"),
    ("_zeros", "_zeros(*of) if of else 0", "_zeros(*of) if of else -1"),
    # Until the next is due the job works for a cycle at most, and `left_over` holds one flush more
    # than are kept.
    ("cycles_to_skip", "steady_h - within_h", "steady_h"),
    # The latest in flight is late if it has the number of the one that is due: it was begun after
    # the one before was.
    (
        "is_in_rhythm",
        "number_of(num, capture, due_h) - nth",
        "number_of(num, capture, due_h)",
    ),
    # Where none is due nobody asks what it would complete, and of one part each is the last.
    ("completes", f"parts == 1 or ({OF_PARTS})", OF_PARTS),
    ("completes", "parts == 1", "parts == 0"),
    # What is kept that is older than all that are kept in the end takes time alone.
    ("keep_latest", f"max(first, {OLDEST_KEPT} + 1)", "first"),
    ("keep_latest", f"{OLDEST_KEPT} + 1", "1"),
    ("keep_latest", f"{OLDEST_KEPT} + 1", f"{OLDEST_KEPT} + 0"),
    ("keep_latest", f"{OLDEST_KEPT} + 1", OLDEST_KEPT),
    ("keep_latest", f"{OLDEST_KEPT} + 1", f"{OLDEST_KEPT} - 1"),
    ("keep_latest", OLDEST_KEPT, "-(num.tiers[tier].generations * parts)"),
    # Where contents may be corrupt as many as are kept are left over, and written over these.
    ("keep_latest", "num.tiers[tier].p_corrupt > 0.0", "num.tiers[tier].p_corrupt > 1.0"),
    # The last save, which is that of the end, is never among those skipped.
    ("keep_latest", "min(number * num.captures[capture].every_h, num.useful_h)", KEPT_H),
    # Where nothing follows there is none that could go along: to say so takes less time.
    (
        "flushes_go_along",
        f"if not {FOLLOWED}:\n    return False",
        f"if not not {FOLLOWED}:\n    return False",
    ),
    ("flushes_go_along", f"not {FOLLOWED}", FOLLOWED),
    ("flushes_go_along", "return False", "return True"),
    # Where the stall varies no cycles are skipped, and else this is a shorter cycle.
    ("flushes_go_along", f"{WORK_H} + num.captures[capture].stall_h", WORK_H),
    # Where none is due the first is beyond the last.
    ("due_after", "saves.n_due == 0", "saves.n_due == -1"),
}

# --------------------------------------------------------------------------- cases


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A replication, and what the naive interpreter makes of it."""

    job: SimulatedJob
    failures: list[ScopedFailure]
    draws: ReplicationDraws
    expected: ReplicationOutcome

    @classmethod
    def of(cls, job: SimulatedJob, failures: list[ScopedFailure], draws: ReplicationDraws) -> Case:
        return cls(job, failures, draws, naive.run(job, failures, draws))


SEEDS = {
    "steady": (*range(43), 70, 78, 107, 120, 2699),
    "random": (*range(12), 1012, 1013, 1028, 1044),
    "together": (5, 6, 9, 15, 29, 39),
    "often": range(0, 15, 3),
    "corrupt": (0, 4, 20, 29, 35, 69, 75, 95, 141),
}


@cache
def cases() -> tuple[Case, ...]:
    """All of them, that of SimPy alone first."""
    drawn = [Case.of(*CASES[kind](seed)) for kind, seeds in SEEDS.items() for seed in seeds]
    return (*by_hand(), *drawn)


@cache
def by_hand() -> tuple[Case, ...]:
    some = [SHARES[name] for name in ("two recoveries", "shard by shard")]
    return (
        two_tiers_of_different_age(),
        back_behind_three_contents(),
        contents_alike(all_are_corrupt=False),
        contents_alike(all_are_corrupt=True),
        units_that_lost_both_slots(),
        one_that_was_tried_again_late(),
        as_many_tiers_as_may_be(),
        none_holds(),
        regrouping_takes(1.0),
        regrouping_takes(1.0, 0.25, 0.5),
        roles_one_by_one(),
        *copies_made_again(),
        process_of_a_group_that_lost_two(),
        as_the_job_grows(0.0),
        as_the_job_grows(0.1),
        grids_that_meet(),
        grids_that_meet_at_the_end(),
        Case.of(
            *on_grid(50, unit_h=1.1)
        ),  # the last multiple of an interval is T, but for rounding
        *out_of_rhythm(),
        *skipping(),
        *(Case.of(loading_over(*shares.rules), [*shares.failures], Draws()) for shares in some),
    )


PARITY = Tier("peers", Medium.HOST, Groups(4, tolerates=1), "state")


def with_processes(job: SimulatedJob) -> SimulatedJob:
    process = Scope("process", Reach.PROCESS, Constant(0.5), needs_node=False)
    return replace(job, scopes=(*job.scopes, process))


def two_tiers_of_different_age() -> Case:
    """Slot 1 lacks the one content of the peers, and has all that its own memory holds."""
    job = job_of(
        12.0,
        rule("nobody", stage("regroup", 0.5), scopes=("nobody",)),
        rule("all", stage("load", 0.5), sources=("peers",)),
        AGAIN,
        tiers=(PARITY, Tier("own", Medium.HOST, OWN, "state")),
        captures=(saves("peers", 8.0), saves("own", 1.0)),
    )
    return Case.of(job, [failure(9.0, 1, scope=NOBODY), failure(10.75, 2)], Draws())


def back_behind_three_contents() -> Case:
    """Slot 0 lacks the content of 2 h, to which all that was saved since is dropped."""
    job = job_of(
        20.0,
        rule("nobody", stage("regroup", 0.5), scopes=("nobody",)),
        rule("all", stage("regroup", 0.5), to=To.STEP_BEFORE, scopes=("process",)),
        rule("all", stage("load", 0.5), sources=("peers",)),
        AGAIN,
        tiers=(replace(PARITY, generations=4),),
        captures=(saves("peers", 2.0, 0.25),),
        step_h=6.5,
    )
    failures = [
        failure(3.0, 0, scope=NOBODY),
        failure(10.25, 2, scope=PROCESS),  # from 8.75 h to 2.25 h
        failure(11.0, 1),
    ]
    return Case.of(with_processes(job), failures, Draws())


@dataclass(frozen=True, slots=True)
class SlowFirst:
    """The first save takes long in the background, and the third is corrupt, or all are."""

    all_are: bool

    def hours(self, name: str, n: int) -> float:
        return 1.0 if n else 10.0

    def uniform(self, tier: str, n: int) -> float:
        return 0.1 if self.all_are or (tier, n) == ("remote", 2) else 0.999


def contents_alike(all_are_corrupt: bool) -> Case:
    """What waits for the disk at 4 h is struck, and saved to the remote tier once more."""
    copy = Tier("copy", Medium.REMOTE, Outside(), "state", p_corrupt=0.5)
    disk = Tier("disk", Medium.SSD, OWN, "state")
    job = job_of(
        8.0,
        rule("nobody", stage("regroup", 0.5), scopes=("nobody",)),
        rule("all", stage("load", 0.5), sources=("remote", "copy")),
        AGAIN,
        tiers=(remote(1.0, generations=2, p_corrupt=0.5), copy, disk),
        captures=(
            Capture("remote", 2.0, background=Exponential(1.0), in_flight=2),
            saves("disk", 4.0, 4.0),
            Capture("copy", after="remote"),
        ),
    )
    failures = [failure(6.0, 0, scope=NOBODY), failure(8.0, 0)]
    return Case.of(job, failures, SlowFirst(all_are_corrupt))


def units_that_lost_both_slots() -> Case:
    """Slots 1 and 2 are a unit, 3 and 4 another; the others are of other roles."""
    job = job_of(
        40.0,
        rule("nobody", stage("regroup", 2.0, blocks=False), scopes=("nobody",)),
        rule("struck", stage("load", 0.5), sources=("remote",)),
        AGAIN,
        tiers=(remote(),),
        captures=(saves("remote", 4.0),),
        elastic=Elastic("state", (1.0, 0.5, 0.25), unit_nodes=2),
    )
    roles = (Role("first", 1, Holds.NOTHING), *job.cluster.roles, Role("last", 1, Holds.NOTHING))
    failures = [
        failure(1.0, 1, 2, scope=NOBODY),
        failure(5.0, 3, 4, scope=NOBODY),
        failure(9.0, 0, scope=NOBODY),
        failure(13.0, 5, scope=NOBODY),
        failure(17.0, 1, scope=NOBODY),
        failure(18.0, 2, scope=NOBODY),
        failure(21.0, 2, scope=NOBODY),
        failure(22.0, 3, scope=NOBODY),
        failure(25.0, 0, scope=STRUCK),
        failure(29.0, 5, scope=STRUCK),
        failure(33.0, 1, 4, 5, scope=STRUCK),
    ]
    return Case.of(replace(job, cluster=Cluster(roles)), failures, Draws())


def one_that_was_tried_again_late() -> Case:
    """The save of 36 h is under way when that of 40 h is due, not when the flushed one is."""
    job = job_of(
        200.0,
        rule("nobody", stage("regroup", 0.25), scopes=("nobody",)),
        AGAIN,
        tiers=(remote(), replace(remote(), name="copy")),
        captures=(
            saves("remote", 4.0, 0.0, 4.5, when_busy=WhenBusy.SKIP),
            Capture("copy", after="remote", every_nth=7),
        ),
        tax=Tax(compute=0.25),
    )
    return Case.of(job, [failure(45.75, 0, scope=NOBODY)], Draws())


@dataclass(frozen=True, slots=True)
class LastIsCorrupt:
    """All that is saved to the last tier is corrupt."""

    def hours(self, name: str, n: int) -> float:
        raise AssertionError(f"{name} does not vary")

    def uniform(self, tier: str, n: int) -> float:
        return 0.1 if tier == "last" else 0.999


def as_many_tiers_as_may_be() -> Case:
    """No rule has to do with the last tier, that NONE would be the number of."""
    job = job_of(
        16.0,
        rule("nobody", stage("regroup", 0.5), scopes=("nobody",)),
        rule("all", stage("load", 0.5), sources=("near",), scopes=("all",)),
        rule("all", stage("load", 0.5), sources=("remote",), scopes=("process",)),
        AGAIN,
        tiers=(
            *(Tier(f"live-{n}", Medium.DEVICE, OWN, "state") for n in range(5)),
            Tier("near", Medium.HOST, OWN, "state"),
            remote(),
            Tier("last", Medium.HOST, OWN, "state", generations=8, p_corrupt=0.5),
        ),
        captures=(saves("near", 2.0), saves("remote", 4.0), saves("last", 1.0)),
    )
    failures = [
        failure(9.5, 0, scope=NOBODY),
        failure(10.75, 1, scope=ALL),
        failure(18.5, 0, scope=PROCESS),
    ]
    return Case.of(with_processes(job), failures, LastIsCorrupt())


def grids_that_meet() -> Case:
    """Every 70 min two tiers hold one content, but for rounding: it is loaded from the faster."""
    job = job_of(
        24.0,
        rule("all", stage("load"), sources=("own", "remote")),
        tiers=(Tier("own", Medium.HOST, OWN, "state"), remote(1.0)),
        captures=(saves("own", 10 / 60), saves("remote", 70 / 60)),
        roles=(STATE, TRAINERS),
    )
    failures = [failure(n * (70 / 60 + 0.01), 4) for n in range(1, 16)]
    return Case.of(job, failures, Draws())


def grids_that_meet_at_the_end() -> Case:
    """49 times a 49th of the job is less than the job, by rounding; the save of the end is not."""
    job = job_of(
        1.0,
        AGAIN,
        tiers=(Tier("own", Medium.HOST, OWN, "state"), remote()),
        captures=(saves("own", 1 / 49), saves("remote", 0.5, 0.0, 0.25)),
    )
    return Case.of(job, [], Draws())


def none_holds() -> Case:
    """Nothing has been saved when all would go back to what the peers have."""
    back = rule("all", stage("load", 0.5), sources=("peers",))
    job = job_of(12.0, back, tiers=(peers(),), captures=(saves("peers", 4.0),))
    return Case.of(job, [failure(3.0, 1), failure(9.0, 2)], Draws())


def regrouping_takes(*hours: float) -> Case:
    """By how many units are missing: one, two, and one again."""
    shrinks = Elastic("state", (1.0, 0.5, 0.25), regroup_h=hours)
    grow = rule("nobody", stage("regroup"), stage("wait", blocks=False), stage("regroup"))
    job = job_of(20.0, grow, n_spares=0, elastic=shrinks)
    failures = [failure(2.0, 0, repair_h=(9.0,)), failure(6.0, 2, repair_h=(2.5,))]
    return Case.of(job, failures, Draws())


def roles_one_by_one() -> Case:
    """Rules for one role, for the others, and for all; struck are some of one, or of two."""
    roles = (Role("first", 2, Holds.NOTHING), STATE, TRAINERS)
    job = job_of(
        40.0,
        rule("struck", stage("regroup", 0.25), sources=("remote",), roles=("state",)),
        rule("all", stage("regroup", 0.5), sources=("remote",), roles=("first", "trainers")),
        rule("all", stage("regroup", 0.75), to=To.STEP_BEFORE, roles=("first", "state")),
        rule("all", stage("reschedule", 1.0), sources=("remote",)),
        tiers=(remote(),),
        captures=(saves("remote", 4.0),),
        roles=roles,
        step_h=0.375,
    )
    struck = [(0,), (1,), (2,), (5,), (6,), (7,), (0, 7), (1, 2), (5, 6), (1, 5, 6), (2, 5)]
    return Case.of(job, [failure(3.125 * n, *one) for n, one in enumerate(struck, 1)], Draws())


def process_of_a_group_that_lost_two() -> Case:
    """Its own memory is there, but its group is not."""
    job = job_of(
        12.0,
        rule("nobody", stage("rebuild", 4.0, blocks=False), scopes=("nobody",)),
        rule("struck", stage("load", 0.5), sources=("peers",)),
        AGAIN,
        tiers=(PARITY,),
        captures=(saves("peers", 2.0),),
    )
    failures = [failure(3.0, 1, 2, scope=NOBODY), failure(3.5, 0, scope=PROCESS)]
    return Case.of(with_processes(job), failures, Draws())


def as_the_job_grows(every_h: float) -> Case:
    """At once, or at a multiple of 0.1 h, beyond it by rounding."""
    grow = Stage(StageKind.WAIT, blocks=False, grows_h=every_h)
    job = job_of(
        12.0,
        rule("nobody", stage("regroup", 0.1), stage("wait"), grow),
        AGAIN,
        elastic=Elastic("state", (1.0, 0.5)),
    )
    return Case.of(job, [failure(0.2, 1)], Draws())


def copies_made_again() -> Iterator[Case]:
    """Some slots leave the copies, and others are struck, which are not the first of all."""
    places = (
        Ring(2), Ring(3), Groups(2, 1), Groups(4, 1), Groups(8, 6),
        Groups(2, 1, strided=True), Groups(4, 1, strided=True),
    )  # fmt: skip
    leaving = [(1,), (4,), (8,), (1, 2), (2, 5), (0, 3), (3, 9), tuple(range(1, 7)), range(1, 9)]
    roles = (
        Role("first", 1, Holds.NOTHING), replace(STATE, n_nodes=8), Role("last", 1, Holds.NOTHING)
    )  # fmt: skip
    for place in places:
        again = replace(stage("regroup", 0.25), copies_again=True)
        job = job_of(
            3000.0,
            rule("nobody", again, stage("rebuild", 5.0, blocks=False), scopes=("nobody",)),
            rule("nobody", stage("regroup", 0.5), needs=("live",)),
            AGAIN,
            tiers=(Tier("live", Medium.DEVICE, place, "state"),),
            roles=roles,
            horizon_h=3000.0,
        )
        pairs = [(a, b) for a, b in combinations(range(1, 9), 2) if b - a in (1, 2, 3, 4, 7)]
        struck = [*pairs, (1, 3, 5), (3, 6, 7), (7, 8)]
        failures = [
            one
            for n, (some, others) in enumerate(product(leaving, struck))
            for one in (
                failure(10.0 * n + 1.0, *some, scope=NOBODY),
                failure(10.0 * n + 2.0, *others),
            )
        ]
        yield Case.of(job, failures, Draws())


def out_of_rhythm() -> Iterator[Case]:
    """Saves that are tried again later than the grid has them are in the way of the next."""
    for stall_h, tax, in_flight in ((0.0, 0.0, 1), (0.25, 0.0, 1), (0.25, 0.25, 1), (0.0, 0.25, 2)):
        cycle_h = 1.0 + tax + stall_h
        behind_h = in_flight * cycle_h - stall_h - 0.0625
        job = job_of(
            80.0,
            rule("nobody", stage("regroup", 0.5), scopes=("nobody",)),
            AGAIN,
            tiers=(remote(),),
            captures=(saves("remote", 1.0, stall_h, behind_h, in_flight=in_flight),),
            tax=Tax(compute=tax),
        )
        failures = [failure(20.3 * n + 0.17 * n * n, 0, scope=NOBODY) for n in (1, 2, 3)]
        yield Case.of(job, failures, RandomDraws(5, 1.0))
    job, fails = off_the_grid()
    yield Case.of(job, [fails], RandomDraws(6, 1.0))


def skipping() -> Iterator[Case]:
    """All go back now and then, far from each other: to what cycles that were skipped have left."""
    back = rule("all", stage("load", 0.25), sources=("remote",))
    failures = [failure(sum(range(40, 40 + n)) * 1.09 + 0.03 * n, 0) for n in range(1, 9)]
    corrupt = {"generations": 2, "p_corrupt": 0.5}
    on_remote = [
        (saves("remote", 1.0, 0.25, parts=3), corrupt),
        (saves("remote", 1.0, 0.0, 2.5, in_flight=3), {}),
        (saves("remote", 0.25, 0.0, 0.6, in_flight=3), {}),
        (saves("remote", 0.25, 0.125, 0.7, in_flight=3, parts=2), corrupt),
    ]
    for capture, kept in on_remote:
        job = job_of(250.0, back, tiers=(remote(**kept),), captures=(capture,))
        yield Case.of(job, failures, RandomDraws(1, 1.0))
    flushed = [
        (saves("peers", 1.0, 0.25), 3, 2.5, corrupt),
        (saves("peers", 1.0, 0.0, 1.75, in_flight=2), 2, 0.5, corrupt),
        (saves("peers", 1.0, 0.0, 2.75, in_flight=3), 2, 1.5, {}),
        (saves("peers", 0.25, 0.0, 0.6, in_flight=3), 4, 0.6, {"generations": 3}),
        (saves("peers", 0.25), 4, 1.5, {}),
        (saves("peers", 1.0, 0.0, 4.75, in_flight=5), 1, 0.9, {}),
    ]
    for capture, nth, behind_h, kept in flushed:
        flush = Capture("remote", after="peers", every_nth=nth, background=Constant(behind_h))
        job = job_of(250.0, back, tiers=(peers(), remote(**kept)), captures=(capture, flush))
        yield Case.of(job, failures, RandomDraws(2, 1.0))
    capture = saves("peers", 1.0, 0.25)
    flush = Capture("remote", after="peers", every_nth=3, background=Constant(2.5), p_fail=0.5)
    job = job_of(250.0, back, tiers=(peers(), remote()), captures=(capture, flush))
    yield Case.of(job, failures, RandomDraws(3, 1.0))
    again = replace(AGAIN, scopes=("all",), replay_speed=2.0)
    flush = replace(flush, background=Constant(3.0), p_fail=0.0)
    job = job_of(250.0, again, back, tiers=(peers(), remote()), captures=(capture, flush))
    at_start = [failure(61.0, 0), failure(127.0, 0, scope=STRUCK), failure(290.0, 1)]
    yield Case.of(job, at_start, RandomDraws(4, 1.0))


def loading_over(*rules: Rule, sizes: tuple[float, ...] = ()) -> SimulatedJob:
    """That of `sharing`, over a link that two servers fill."""
    job = sharing(*rules)
    link = Storage(4.0, 2.0, 4.0, tuple(sizes[n % 3] for n in job.cluster.shard_slots if sizes))
    tiers = tuple(replace(tier, load=link) for tier in job.policy.tiers)
    return replace(job, policy=replace(job.policy, tiers=tiers))


def behind_readers(job: SimulatedJob) -> SimulatedJob:
    """The same with a role in front that holds nothing."""
    roles = (Role("readers", 1, Holds.NOTHING), *job.cluster.roles)
    return replace(job, cluster=replace(job.cluster, roles=roles))


@cache
def for_compiled() -> tuple[Case, ...]:
    """Those for what only the compiled engine tells: that saves may begin beside those skipped."""
    job = job_of(
        200.0,
        AGAIN,
        tiers=(remote(), replace(remote(), name="beside")),
        captures=(
            saves("remote", 2.0, 0.25),
            saves("beside", 13.0, 0.0, 5.0, when_busy=WhenBusy.SKIP),
        ),
    )
    back = loading_over(loads("struck", stage("load")))
    failures = [failure(5.0, 0), failure(9.0, 1, 2), failure(16.0, 0, 2, 3)]
    drawn = [case for case in cases() if isinstance(case.draws, RandomDraws)]
    drawn = [case for case in drawn if case not in by_hand()]
    draws = RandomDraws(0, 1.0)
    return (
        Case.of(job, [], draws),
        Case.of(back, failures, draws),
        *(
            Case.of(
                behind_readers(loading_over(loads(who, stage("load")), sizes=sizes)), some, draws
            )
            for who, some in (("struck", failures), ("all", failures[:1]))
            for sizes in ((2.0, 4.0, 5.0), (5.0, 3.0, 5.0))
        ),
        *drawn[:15],
        *out_of_rhythm(),
        *skipping(),
    )


# --------------------------------------------------------------------------- what kills a mutant


class TooLate(BaseException):
    """A replication goes on and on."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooLate in what takes too much of the processor's time."""

    def stop(*_: Any) -> None:
        raise TooLate

    before = signal(SIGVTALRM, stop)
    setitimer(ITIMER_VIRTUAL, LIMIT_S)
    try:
        yield
    finally:
        setitimer(ITIMER_VIRTUAL, 0.0)
        signal(SIGVTALRM, before)


def is_wrong(engine: Callable[[ModuleType, Case], bool], module: ModuleType, case: Case) -> bool:
    """Whether an engine on these transitions says something else, breaks, or does not end."""
    try:
        with limited():
            return not engine(module, case)
    except (Exception, TooLate):
        return True


def simpy_is_right(module: ModuleType, case: Case) -> bool:
    of_link = patch.object(links, "rate_of_each", module.rate_of_each)
    with patch.object(events, "transitions", module), of_link:
        outcome = events.run(case.job, iter(case.failures), case.draws, logged=False).outcome
    expected = case.expected
    return counts_of(outcome) == counts_of(expected) and are_close(
        [*hours_of(outcome), *rows_of(outcome)], [*hours_of(expected), *rows_of(expected)]
    )


def compiled_is_right(module: ModuleType, case: Case) -> bool:
    """The compiled engine, as plain Python."""
    assert isinstance(case.draws, RandomDraws)
    status, of_job, hours, counts = by_fast.run(
        case.job, case.failures, case.draws, loops_of(as_python(module))
    )
    if status == LEFT:
        return True
    same = counts_of(case.expected) == (status == FINISHED, *counts)
    return same and are_close([*of_job, *hours], hours_of(case.expected))


def are_close(ours: list[float], theirs: list[float]) -> bool:
    pairs = zip_longest(ours, theirs, fillvalue=nan)
    return all(isclose(*pair, rel_tol=1e-9, abs_tol=1e-7) for pair in pairs)


def dies(mutant: Mutant, in_order: list[Case]) -> bool:
    """Whether a mutant is found out; the case that does so comes sooner next time."""
    module = module_of(mutant)
    for place, case in enumerate(in_order):
        if is_wrong(simpy_is_right, module, case):
            in_order.insert(place // 2, in_order.pop(place))
            return True
    if mutant.function not in (*SKIPPING, *IN_COMPILED) or only_slows(mutant):
        return False
    return any(is_wrong(compiled_is_right, module, case) for case in for_compiled())


# --------------------------------------------------------------------------- what only takes time


def only_slows(mutant: Mutant) -> bool:
    """Whether fewer cycles are skipped at most, in all cases: that takes time alone."""
    if mutant.function not in SKIPPING:
        return False
    function = getattr(module_of(mutant), mutant.function)
    return all(
        function(*arguments) <= answer
        for name, arguments, answer in calls()
        if name == mutant.function
    )


@cache
def calls() -> list[tuple[str, tuple[Any, ...], float]]:
    """All questions how much may be skipped, in either engine, with what they are given."""
    found: list[tuple[str, tuple[Any, ...], float]] = []
    module = ModuleType("recording")
    vars(module).update(vars(transitions))

    def recorded(name: str) -> Callable[..., float]:
        def call(*arguments: Any) -> float:
            answer: float = getattr(transitions, name)(*arguments)
            found.append((name, arguments, answer))
            return answer

        return call

    for name in SKIPPING:
        setattr(module, name, recorded(name))
    for case in cases():
        simpy_is_right(module, case)
    for case in for_compiled():
        compiled_is_right(module, case)
    return found


# --------------------------------------------------------------------------- tests


@pytest.mark.long
def test_both_engines_are_right_in_all_cases() -> None:
    assert not [n for n, case in enumerate(cases()) if not simpy_is_right(transitions, case)]
    assert all(compiled_is_right(transitions, case) for case in for_compiled())


@pytest.mark.long
def test_fifty_random_mutants_die() -> None:
    mutants = [one for one in all_mutants() if one.what not in EQUIVALENT]
    in_order = list(cases())
    chosen = random.Random(SEED).sample(mutants, len(mutants))
    survivors, n_dead = [], 0
    for mutant in chosen:
        if dies(mutant, in_order):
            n_dead += 1
        elif not only_slows(mutant):
            survivors.append(str(mutant))
        if n_dead == N_MUTANTS:
            break
    assert survivors == []
    assert n_dead == N_MUTANTS
