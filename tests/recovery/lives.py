"""Lives of jobs, worked out by hand: a short notation, and their comparison with every simulator.

Jobs have 10 h of work on the slots 0 to 3, and failures on the wall clock, unless said otherwise.
Hours are sums of powers of 2, so that they are exact.

Stages are words: ``detect, reschedule 1, load, rebuild 2~, wait each, grow 1.5``. A number is the
stage's own cost [h], ~ says that the job works meanwhile, `again` that copies are made again.
Failures are words too (`tests.simulators.failures`).
"""

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest

from cprsim.job.distributions import Constant
from cprsim.job.policy import (
    Groups,
    Medium,
    Outside,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    SaveSchedule,
    Scope,
    Stage,
    StageKind,
    Tier,
    To,
)
from cprsim.job.records import Clock, Cluster, Duration, Holds, Role, Storage
from cprsim.simulation.job import ScopedFailure, SimulatedJob
from tests.recovery.outcome import ReplicationDraws
from tests.simulators import assert_folds, draws_of, failures, logged, ran, told

# Failures of the last four strike a node, and name their rule
SCOPES = (
    Scope("process", Reach.PROCESS, Constant(0.125), needs_node=False),
    Scope("node", Reach.NODE, Constant(0.25)),
    Scope("everything", Reach.ALL, Constant(0.5)),
    *(Scope(name, Reach.NODE, Constant(0.5)) for name in ("back", "struck", "nobody", "quiet")),
)
STATE = Role("state", 4, Holds.SHARD)
TRAINERS = Role("trainers", 2, Holds.REPLICA)
N_SPOILED = 8  # first saves of a tier that are as a life says
approx = partial(pytest.approx, abs=1e-9)


def rule(reverts: str, words: str = "", *sources: str, **how: Any) -> Rule:
    return Rule(Reverts(reverts), stages(words), sources=sources, **how)


def from_start(words: str = "", **how: Any) -> Rule:
    return rule("all", words, to=To.START, **how)


def stages(words: str) -> tuple[Stage, ...]:
    return tuple(_stage(word) for word in words.split(",") if word.strip())


def _stage(word: str) -> Stage:
    kind, *marks = word.replace("~", "").split()
    (hours,) = [float(mark) for mark in marks if mark not in ("each", "again")] or [None]
    if kind == "grow":
        return Stage(StageKind.WAIT, blocks=False, grows_h=hours)
    is_each, again = "each" in marks, "again" in marks
    return Stage(StageKind(kind), _cost(hours), "~" not in word, each=is_each, copies_again=again)


def _cost(hours: float | None) -> Duration | None:
    return None if hours is None else Constant(hours)


def remote(load_h: float | Storage | None = None, **more: Any) -> Tier:
    load = load_h if isinstance(load_h, Storage) else _cost(load_h)
    return Tier("remote", Medium.REMOTE, Outside(), "state", load, **more)


def memory(placement: Ring | Groups, load_h: float | None = None, **more: Any) -> Tier:
    return Tier("memory", Medium.HOST, placement, "state", _cost(load_h), **more)


def saves(
    tier: str = "remote",
    every_h: float | None = None,
    stall_h: float | None = None,
    behind_h: float | None = None,
    **more: Any,
) -> SaveSchedule:
    return SaveSchedule(tier, every_h, stall=_cost(stall_h), background=_cost(behind_h), **more)


def job(
    *rules: Rule,
    captures: Sequence[SaveSchedule] = (),
    tiers: Sequence[Tier] | None = None,
    spares: int | None = None,
    clock: Clock = Clock.WALL,
    horizon_h: float | None = None,
    roles: tuple[Role, ...] = (STATE,),
    useful_h: float = 10.0,
    **more: Any,
) -> SimulatedJob:
    """A job; where it saves, and no tiers are given, it saves to `remote()`."""
    if tiers is None:
        tiers = (remote(),) if captures else ()
    policy = Policy("by hand", rules, tuple(tiers), tuple(captures), **more)
    return SimulatedJob(useful_h, Cluster(roles, spares), clock, SCOPES, policy, horizon_h)


class Life(NamedTuple):
    """A job, its failures, and what becomes of it.

    What is expected are hours of parts, all that are not 0, and, where they are said: `saves`,
    `failed` (failures that were not missed; else all), `stale` (progress, slot, content; else
    none), `useful_h`, `finished`, and `log`, lines of SimPy's that follow one another. `spoiled`:
    saves of a tier with u below 1/2.
    """

    name: str
    job: SimulatedJob
    failures: list[ScopedFailure]
    expected: dict[str, Any]


def life(
    name: str, job: SimulatedJob, struck: str | list[ScopedFailure] = "", **expected: Any
) -> Life:
    if isinstance(struck, str):
        struck = failures(struck, [scope.name for scope in job.scopes])
    return Life(name, job, struck, expected)


def check(simulator: str, life: Life) -> None:
    """One simulator says of a life what its hand-made account says."""
    parts = dict(life.expected)
    useful_h, finished = parts.pop("useful_h", life.job.useful_h), parts.pop("finished", True)
    stale, log = parts.pop("stale", []), parts.pop("log", "")
    failed, n_saves = parts.pop("failed", len(life.failures)), parts.pop("saves", None)
    draws = draws_of(life.job, seed_of(life.job, parts.pop("spoiled", {})))
    outcome = ran(simulator, life.job, life.failures, draws)
    by_part = zip(life.job.policy.parts, outcome.hours, strict=True)
    assert {part: hours for part, hours in by_part if hours > 1e-12} == approx(parts)
    assert (outcome.finished, outcome.n_failures) == (finished, failed)
    assert outcome.useful_h == approx(useful_h)
    assert outcome.wall_h == approx(useful_h + sum(parts.values()))
    assert n_saves in (None, outcome.n_saves)
    assert [(shard.progress_h, shard.slot, shard.content_h) for shard in outcome.stale] == [
        approx(shard) for shard in stale
    ]
    if simulator == "simpy" and (log or life.job.policy.from_cpr_paper):
        whole = logged(life.job, life.failures, draws)
        if life.job.policy.from_cpr_paper:
            assert_folds(whole, life.job, outcome)
    if simulator == "simpy" and log:
        lines, of_log = log.split("; "), told(whole)
        first = of_log.index(lines[0])
        assert of_log[first : first + len(lines)] == lines


def seed_of(job: SimulatedJob, spoiled: dict[str, tuple[int, ...]]) -> int:
    """Of draws in which these of the first saves to a tier, and no others, are spoiled."""
    for seed in count():
        draws = ReplicationDraws(job, draws_of(job, seed))
        if all(
            (draws.uniform(tier, n) < 0.5) == (n in numbers)
            for tier, numbers in spoiled.items()
            for n in range(N_SPOILED)
        ):
            return seed
    raise AssertionError
