"""All three say the same of a job: the compiled engine, SimPy, and the naive interpreter.

A case is a random one of `random_policies`, by its seed, or one that is made from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import zip_longest
from math import inf, isclose, nan
from typing import Any

import numpy as np
import pytest

from cprsim.failures.distributions import Constant, Exponential
from cprsim.records import Clock, Cluster, Duration, EventKind, Holds, Role, Storage
from cprsim.recovery.legal import problems
from cprsim.recovery.policy import (
    Capture,
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
from cprsim.simulate import blocks
from cprsim.simulate.blocks import BlockDraws, SystemRan
from cprsim.simulate.cluster import run as run_events
from cprsim.simulate.fast import replications
from cprsim.simulate.fast.interpreting import interpreted
from cprsim.simulate.job import ReplicationOutcome, ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import FINISHED, LEFT, LOSS, link_of
from cprsim.simulate.strikes import GivenFailures
from tests.recovery import by_fast, naive
from tests.recovery.random_policies import (
    READERS,
    STATE,
    Dice,
    RandomDraws,
    kinds,
    random_case,
    random_failures,
    random_job,
    random_rule,
    with_parts,
    with_policy,
    with_shared_loads,
)
from tests.recovery.test_events import saving_often

Case = tuple[SimulatedJob, list[ScopedFailure], RandomDraws]

# --------------------------------------------------------------------------- cases


def often(seed: int) -> Case:
    """Saves come twelve times as often, so that cycles are skipped."""
    job, failures, draws = random_case(seed)
    return saving_often(job), failures[:100], draws


def corrupt(seed: int) -> Case:
    """Every other content is corrupt, and readers have the first slots."""
    job, failures, draws = random_case(seed)
    policy = job.policy
    tiers = tuple(
        replace(of_its_own_link(tier), generations=3, p_corrupt=0.5)
        if tier.name in policy.written
        else tier
        for tier in policy.tiers
    )
    roles = tuple(reversed(job.cluster.roles))
    if len(roles) == 1:
        roles = (Role(READERS, 1 + seed % 3, Holds.NOTHING), *roles)
    cluster = Cluster(roles, job.cluster.n_spares)
    return replace(job, cluster=cluster, policy=replace(policy, tiers=tiers)), failures, draws


def of_its_own_link(tier: Tier) -> Tier:
    """Loads over a shared one may find nothing corrupt."""
    if not isinstance(tier.load, Storage):
        return tier
    return replace(tier, load=Constant(tier.load.transfer_h(1)))


def together(seed: int) -> Case:
    """Failure upon failure while jobs save in parts and load over one link."""
    dice = Dice(np.random.default_rng([seed, 5]))
    job = with_shared_loads(dice, with_parts(dice, random_job(dice)))
    failures = random_failures(dice, job, bursts=(0.6, 0.9))
    return job, failures[:100], RandomDraws(seed, 0.02 * job.useful_h)


def uneven(seed: int) -> Case:
    """Shards of three sizes load over one link, mostly one recovery at a time."""
    dice = Dice(np.random.default_rng([seed, 6]))
    job = with_shared_loads(dice, random_job(dice))
    link = link_of(job.policy)
    sizes = [link.shard_bytes * share for share in (0.37, 1.0, 1.81)]
    link = replace(link, bytes_of_shards=tuple(dice.one_of(sizes) for _ in job.cluster.shard_slots))
    tiers = tuple(
        replace(of_its_own_link(tier), load=link if tier.role == STATE else Constant(0.5))
        if isinstance(tier.load, Storage)
        else tier
        for tier in job.policy.tiers
    )
    failures = random_failures(dice, job, bursts=(0.0, 0.3))
    draws = RandomDraws(seed, 0.02 * job.useful_h)
    return with_policy(job, tiers=tiers), failures[:100], draws


def on_grid(seed: int, unit_h: float = 1.0) -> Case:
    """All times are multiples of some minutes, so that saves, stages and failures coincide."""
    job, failures, draws = random_case(seed)
    whole = partial(some_units, unit_h)
    policy = job.policy

    def cost(given: Any, n_per_h: float) -> Any:
        return None if given is None else Constant(whole(given.mean_h, n_per_h))

    tiers = (of_its_own_link(tier) for tier in policy.tiers)
    job = with_policy(
        job,
        tiers=tuple(replace(tier, load=cost(tier.load, 16.0)) for tier in tiers),
        captures=tuple(
            replace(
                one,
                every_h=None if one.every_h is None else whole(one.every_h, 2.0),
                stall=cost(one.stall, 8.0),
                background=cost(one.background, 4.0),
            )
            for one in policy.captures
        ),
        rules=tuple(
            replace(
                rule,
                stages=tuple(
                    replace(
                        one,
                        cost=cost(one.cost, 8.0),
                        grows_h=whole(one.grows_h, 4.0)
                        if 0.0 < (one.grows_h or 0.0) < inf
                        else one.grows_h,
                    )
                    for one in rule.stages
                ),
                replay_speed=1.0 if rule.replay_speed < 1.5 else 2.0,
                speed_meanwhile=exact(rule.speed_meanwhile),
            )
            for rule in policy.rules
        ),
        elastic=None
        if policy.elastic is None
        else replace(
            policy.elastic,
            speed=tuple(map(exact, policy.elastic.speed)),
            regroup_h=(0.125 * unit_h,),
        ),
        tax=Tax(1.0 if policy.tax.compute else 0.0),
        step_h=whole(policy.step_h, 8.0),
    )
    scopes = tuple(replace(scope, detect=cost(scope.detect, 8.0)) for scope in job.scopes)
    horizon_h = None if job.horizon_h is None else whole(job.horizon_h, 2.0)
    job = replace(job, useful_h=whole(job.useful_h, 1.0), scopes=scopes, horizon_h=horizon_h)
    at_h, strikes = 0.0, []
    for one in failures:
        at_h = max(whole(one.at_h, 4.0), at_h + whole(0.0, 4.0))
        strikes.append(
            replace(one, at_h=at_h, repair_h=tuple(whole(hours, 4.0) for hours in one.repair_h))
        )
    return job, strikes, draws


REVERTS = (
    *((Reverts.ALL, to) for to in (To.NEWEST, To.STEP_BEGUN, To.STEP_BEFORE, To.START)),
    *((reverts, To.NEWEST) for reverts in (Reverts.STRUCK, Reverts.SHARDS, Reverts.NOBODY)),
)


def pairs(seed: int) -> Case:
    """One kind of rule strikes in another's recovery: a scope for each, all 49 pairs in turn."""
    dice = Dice(np.random.default_rng([seed, 8]))
    while True:
        job = random_job(dice)
        tiers = tuple(of_its_own_link(tier) for tier in job.policy.tiers)
        of_state = [t.name for t in tiers if t.name in job.policy.written and t.role == STATE]
        if len(job.scopes) > 1 and of_state:
            break
    rules = []
    for scope, kind in zip(job.scopes, (seed % 7, seed // 7 % 7), strict=False):
        reverts, to = REVERTS[kind]
        loads = to is To.NEWEST and reverts is not Reverts.NOBODY
        sources = tuple(dice.some_of(of_state)) if loads else ()
        waits = job.cluster.n_spares is not None
        rule = random_rule(
            dice, job.useful_h, waits, reverts, to, scopes=(scope.name,), sources=sources
        )
        again = Stage(StageKind.DETECT, Constant(0.02 * job.useful_h), dice.chance(0.5))
        rules.append(replace(rule, stages=(again, *rule.stages)))
    last = job.policy.rules[-1]
    if dice.chance(0.3):
        last = replace(last, to=To.NEWEST, sources=(dice.one_of(of_state),))
    job = with_policy(job, tiers=tiers, rules=(*rules, last))
    job = replace(job, scopes=job.scopes[:2])
    failures = random_failures(dice, job, bursts=(0.6, 0.9))
    return job, failures[:150], RandomDraws(seed, 0.02 * job.useful_h)


def some_units(unit_h: float, hours: float, n_per_h: float) -> float:
    """The nearest multiple of a part of an hour, above 0, a unit for each hour."""
    return unit_h * (max(1.0, round(hours * n_per_h)) / n_per_h)


def exact(speed: float) -> float:
    """A speed near this one, by which hours are divided exactly."""
    return 0.0 if speed == 0.0 else 0.25 if speed < 0.4 else 0.5 if speed < 0.75 else 1.0


def steady(seed: int) -> Case:
    """Some ten saves between two failures, and all that may be in the way of skipping them."""
    dice = Dice(np.random.default_rng([seed, 2]))
    useful_h = dice.one_of([10.0, 100.0])
    every_h = useful_h / dice.one_of([60, 80, 97.3, 120])
    tiers, captures = steady_saves(dice, every_h)
    reverts = dice.one_of([Reverts.ALL, Reverts.ALL, Reverts.STRUCK, Reverts.SHARDS])
    rules = (
        Rule(
            reverts,
            (Stage(StageKind.DETECT, blocks=dice.chance(0.8)), Stage(StageKind.LOAD)),
            sources=tuple(dice.some_of([tier.name for tier in tiers], len(tiers))),
            replay_speed=dice.one_of([1.0, 2.0]),
            speed_meanwhile=0.6,
        ),
        Rule(Reverts.ALL, (Stage(StageKind.DETECT),), To.START),
    )
    cluster = Cluster((Role(READERS, 1, Holds.NOTHING), Role(STATE, 4, Holds.SHARD)))
    scopes = (Scope("node", Reach.NODE, Constant(0.003 * useful_h)),)
    policy = Policy("steady", rules, tiers, captures, tax=Tax(dice.one_of([0.0, 0.1])))
    failures: list[ScopedFailure] = []
    at_h = 0.0
    for _ in range(10):
        gap_h = 0.15 * useful_h if dice.chance(0.8) else 0.002 * useful_h
        at_h += float(dice.rng.exponential(gap_h))
        failures.append(ScopedFailure(at_h, (dice.whole(0, 4),), 0, (1.0,)))
    job = SimulatedJob(useful_h, cluster, dice.one_of(list(Clock)), scopes, policy)
    more = dice.of_its_own()
    if more.chance(0.35):
        job = with_parts(more, job)
    if more.chance(0.2):
        job = with_shared_loads(more, job)
    return job, failures, RandomDraws(seed, 0.3 * every_h)


def steady_saves(dice: Dice, every_h: float) -> tuple[tuple[Tier, ...], tuple[Capture, ...]]:
    """Saves in a quick rhythm, sometimes flushes of them, and sometimes others beside them."""

    def tier(name: str, in_memory: bool, p_corrupt: float) -> Tier:
        medium, place = (Medium.HOST, Ring(2)) if in_memory else (Medium.REMOTE, Outside())
        load = Constant(0.1 * every_h)
        return Tier(name, medium, place, STATE, load, dice.whole(1, 3), p_corrupt)

    def about(*choices: float) -> float:
        """Of an interval; no two things come at one instant that have nothing to do with it."""
        return every_h * dice.one_of(choices) * dice.between(0.98, 1.02)

    def cost(hours: float) -> Duration | None:
        if hours <= 0.0:
            return None
        return Exponential(hours) if dice.chance(0.15) else Constant(hours)

    stall_h = about(0.0, 0.1, 0.5)
    in_flight = dice.whole(1, 3)
    n_cycles = dice.one_of([0.0, 0.4, 1.3, in_flight - 0.5, 0.97 * in_flight, 1.04 * in_flight])
    n_cycles *= dice.between(0.98, 1.02)
    busy = list(WhenBusy)
    tiers = [tier("quick", dice.chance(0.5), dice.one_of([0.0, 0.5, 0.7]))]
    captures = [
        Capture(
            "quick",
            every_h,
            stall=cost(stall_h),
            background=cost(n_cycles * (every_h + stall_h) - stall_h),
            in_flight=in_flight,
            when_busy=dice.one_of(busy),
            p_fail=0.3 if dice.chance(0.1) else 0.0,
        )
    ]
    if dice.chance(0.6):
        tiers.append(tier("flushed", False, dice.one_of([0.0, 0.4])))
        captures.append(
            Capture(
                "flushed",
                after="quick",
                every_nth=dice.whole(1, 6),
                background=Constant(about(0.3, 1.2, 2.3, 4.0)),
                in_flight=dice.whole(1, 2),
            )
        )
    if dice.chance(0.5):
        tiers.append(tier("beside", False, 0.0))
        captures.append(
            Capture(
                "beside",
                about(7.0, 13.3, 25.0),
                stall=cost(about(0.0, 0.1)),
                background=Constant(about(0.01, 4.0, 30.0)),
                in_flight=dice.whole(1, 2),
                when_busy=dice.one_of(busy),
            )
        )
    return tuple(tiers), tuple(dice.some_of(captures, len(captures)))


CASES: dict[str, Callable[[int], Case]] = {
    "random": random_case,
    "often": often,
    "corrupt": corrupt,
    "steady": steady,
    "together": together,
    "uneven": uneven,
    "on a grid": on_grid,
    "pairs": pairs,
}
N_QUICK = {
    "random": 40,
    "often": 8,
    "corrupt": 8,
    "steady": 16,
    "together": 16,
    "uneven": 12,
    "on a grid": 16,
    "pairs": 49,
}  # with every change
N_CASES = {
    "random": 300,
    "often": 60,
    "corrupt": 100,
    "steady": 200,
    "together": 130,
    "uneven": 60,
    "on a grid": 100,
    "pairs": 49 * 40,
}
ONCE_WRONG = (
    ("random", 500_382),  # two saves due at the end
    ("together", 500_204),
    ("on a grid", 611_943),  # two commit at one instant, and one room is wanted by the next
)

NAIVELY_H = 1e-9  # how far SimPy's hours may be off those of the naive interpreter

# --------------------------------------------------------------------------- three of a kind


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *ONCE_WRONG,
        *(
            pytest.param(kind, seed, marks=[pytest.mark.long] if seed >= N_QUICK[kind] else [])
            for kind, n_cases in N_CASES.items()
            for seed in range(n_cases)
        ),
    ],
)
def test_all_three_say_the_same(kind: str, seed: int) -> None:
    job, failures, draws = CASES[kind](seed)
    expected = naive.run(job, failures, draws)
    by_events = run_events(job, iter(failures), draws, logged=False).outcome
    assert counts_of(by_events) == counts_of(expected)
    assert_same(hours_of(by_events), hours_of(expected), within_h=NAIVELY_H)
    assert [one.slot for one in by_events.stale] == [one.slot for one in expected.stale]
    assert_same(rows_of(by_events), rows_of(expected), within_h=NAIVELY_H)
    status, of_job, hours, counts = by_fast.run(job, failures, draws)
    if status != LEFT:
        assert (status == FINISHED, *counts) == counts_of(expected)
        assert_same([*of_job, *hours], hours_of(expected))


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.long] if seed >= 15 else []) for seed in range(150)],
)
def test_rounding_decides_nothing(seed: int) -> None:
    """With 1.1 h for each hour, instants that are one differ by rounding."""
    expected = naive.run(*on_grid(seed))
    hours = [1.1 * one for one in hours_of(expected)]
    job, failures, draws = on_grid(seed, unit_h=1.1)
    by_events = run_events(job, iter(failures), draws, logged=False).outcome
    for ours in (by_events, naive.run(job, failures, draws)):
        assert counts_of(ours) == counts_of(expected)
        assert_same(hours_of(ours), hours)
    status, of_job, by_part, counts = by_fast.run(job, failures, draws)
    if status != LEFT:
        assert (status == FINISHED, *counts) == counts_of(expected)
        assert_same([*of_job, *by_part], hours)


def counts_of(outcome: ReplicationOutcome) -> tuple[bool, int, int]:
    return outcome.finished, outcome.n_failures, outcome.n_saves


def hours_of(outcome: ReplicationOutcome) -> list[float]:
    """Wall and useful hours, staleness summed over shards, and the parts."""
    stale_h = sum(one.progress_h - one.content_h for one in outcome.stale)
    return [outcome.wall_h, outcome.useful_h, stale_h, *outcome.hours]


def rows_of(outcome: ReplicationOutcome) -> list[float]:
    """Progress and content of each shard that went back."""
    return [hours for one in outcome.stale for hours in (one.progress_h, one.content_h)]


def assert_same(ours: list[float], theirs: list[float], within_h: float = 1e-7) -> None:
    pairs = zip_longest(ours, theirs, fillvalue=nan)
    assert [pair for pair in pairs if not isclose(*pair, rel_tol=1e-9, abs_tol=within_h)] == []


@pytest.mark.long
def test_the_compiled_engine_leaves_hardly_a_case_to_simpy() -> None:
    """Those in which a failure strikes as something else happens, or loads share the link."""
    left = [
        (kind, seed)
        for kind, n_cases in N_CASES.items()
        if kind != "on a grid"
        for seed in range(0, n_cases, 3)
        if by_fast.run(*CASES[kind](seed))[0] == LEFT and not loads_are_shared(CASES[kind](seed))
    ]
    assert len(left) < 0.005 * sum(N_CASES.values()), left


# --------------------------------------------------------------------------- cycles are skipped


@pytest.mark.parametrize("case", [often, steady])
def test_simpy_skips_cycles_of_jobs_that_save_often(case: Callable[[int], Case]) -> None:
    n_cases = 0
    for seed in range(20):
        job, failures, draws = case(seed)
        ran, n_saves = run_events(job, iter(failures), draws), 0
        n_saves = (ran.log.kind == EventKind.SAVE_COMMITTED).sum()
        n_cases += n_saves < ran.outcome.n_saves
    assert n_cases >= 3


@pytest.mark.parametrize("case", [often, steady])
def test_the_compiled_engine_skips_cycles_of_jobs_that_save_often(
    case: Callable[[int], Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen as it is interpreted, which changes nothing."""
    skipped: Counter[int] = Counter()

    def skip(num: object, job: object, capture: int, n: int, per_h: float) -> None:
        skipped[seed] += n
        skip_as_it_is(num, job, capture, n, per_h)

    skip_as_it_is = replications.skip
    for seed in range(12):
        job, failures, draws = case(seed)
        with monkeypatch.context() as patch:
            patch.setattr(replications, "skip", skip)
            seen = by_fast.run(job, failures[:20], draws, interpreted)
        for ours, theirs in zip(seen, by_fast.run(job, failures[:20], draws), strict=True):
            assert np.array_equal(ours, theirs), seed
    assert len(skipped) >= 3


# --------------------------------------------------------------------------- blocks


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.long] if seed >= 15 else []) for seed in range(60)],
)
def test_replications_in_a_row_are_what_simpy_makes_of_each(seed: int) -> None:
    job, failures, _ = random_case(seed)
    lists = [
        failures,
        *(random_failures(Dice(np.random.default_rng([seed, n])), job) for n in (3, 4)),
    ]
    source = GivenFailures(tuple(tuple(one[:300]) for one in lists))
    draws = BlockDraws(job, seed, 0, len(lists), range(len(lists)))
    run = partial(blocks.run_block, job, source, draws, range(len(lists)), keep_losses=True)
    ours, theirs = run(), run(simpy_alone=True)
    shares = any(isinstance(tier.load, Storage) for tier in job.policy.tiers)
    assert shares or ours.n_by_events < len(lists)
    assert_same(numbers_of_block(ours), numbers_of_block(theirs))


def numbers_of_block(ran: SystemRan) -> list[float]:
    costs = ran.costs
    columns = [
        costs.finished, costs.wall_h, costs.useful_h, costs.hours, costs.n_failures, costs.n_saves,
        ran.stale_h, ran.stale_net_h, *(ran.losses[name] for name in LOSS.names or ()),
    ]  # fmt: skip
    return [float(number) for column in columns for number in np.ravel(column)]


# --------------------------------------------------------------------------- what the cases are

KINDS = """
wall clock, uptime clock, progress clock, horizon, tax, two roles, three roles, spares, no spare
process scope, gpu scope, node scope, rack scope, all scope, scope without a new node, varying
live, written, own, ring, copies in groups, parity, strided, outside, generations, corrupt
of another role, shared load
written to host, written to ssd, written to remote
flush, flush of some, background, no background, no stall, in flight, skip, wait for a commit
fail, several captures, in parts, parts in flight
all, struck, shards, nobody, newest, step begun, step before, start
scopes, rules for roles, several rules, several sources, needs, stops nothing
replay, replay under struck
non-blocking, blocking after non-blocking, slower meanwhile, replay speed, wait for each
stage detect, stage save, stage wait, stage reschedule, stage regroup, stage load, stage replay
stage rebuild
elastic, elastic with a zero, units of several nodes, regroup by units
copies again, wait to grow, grows at the next loss
"""


@cache
def random_jobs() -> list[SimulatedJob]:
    return [random_job(Dice(np.random.default_rng([seed, 1]))) for seed in range(N_CASES["random"])]


def test_all_that_a_policy_may_contain_comes_up_at_least_20_times() -> None:
    found = Counter(kind for job in random_jobs() for kind in kinds(job))
    named = KINDS.strip().replace("\n", ", ").split(", ")
    assert {kind: found[kind] for kind in named if found[kind] < 20} == {}
    assert set(found) == set(named)


@pytest.mark.long
def test_all_that_can_happen_to_a_job_does_many_times() -> None:
    """20 times, jobs that are given up 10 times; notices are those of test_notice.py."""
    found: Counter[int] = Counter()
    fewest = dict.fromkeys(EventKind, 20) | {EventKind.STOPPED: 10}
    made = ((kind, seed) for kind in ("random", "steady") for seed in range(N_CASES[kind]))
    for of, number in made:
        job, failures, draws = CASES[of](number)
        found.update(set(run_events(job, iter(failures), draws).log.kind.tolist()))
        if all(found[what] >= n for what, n in fewest.items()):
            return
    assert {what.name: found[what] for what in EventKind if found[what] < fewest[what]} == {}


@dataclass(eq=False)
class Watched(naive.Replication):
    """The naive interpreter, that tells how often rare things happen."""

    seen: Counter[str] = field(default_factory=Counter)

    def enter_next_stage(self, recovery: naive.Recovery) -> None:
        super().enter_next_stage(recovery)
        loading = [one for one in self.recoveries if one.link is not None]
        if recovery in loading and len(loading) > 1:
            self.seen["shared loads overlap"] += 1

    def load_no_more(self, shards: set[int]) -> None:
        for recovery in self.recoveries:
            if recovery.link is not None and (recovery.shards or set()) & shards:
                self.seen["a shard is taken back again as it loads"] += 1
        super().load_no_more(shards)


def loads_are_shared(case: Case) -> bool:
    """Whether a load is under way as another begins, or loses shards to another."""
    watched = Watched(*case)
    watched.run()
    return not {"shared loads overlap", "a shard is taken back again as it loads"}.isdisjoint(
        watched.seen
    )


def test_each_policy_of_the_cases_is_legal() -> None:
    jobs = list(random_jobs())
    for kind in CASES:
        jobs += [CASES[kind](seed)[0] for seed in range(N_QUICK[kind])]
    for number, job in enumerate(jobs):
        assert list(problems(job.policy, job.cluster, job.scopes)) == [], number
