"""Lives of jobs, worked out by hand: a short notation, and their comparison with every engine.

Jobs have 10 h of work on the slots 0 to 3, and failures on the wall clock, unless said otherwise.
Hours are sums of powers of 2, so that they are exact.

Stages are words: ``detect, reschedule 1, load, rebuild 2~, wait each, grow 1.5``. A number is the
stage's own cost [h], ~ says that the job works meanwhile, `again` that copies are made again.
Failures are words too (`tests.engines.failures`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Duration, Holds, Role, Storage
from cprsim.recovery.policy import (
    Capture,
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
    Tier,
    To,
)
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from tests.engines import ENGINES, draws_of, failures, logged, ran, told

# Failures of the last four strike a node, and name their rule
SCOPES = (
    Scope("process", Reach.PROCESS, Constant(0.125), needs_node=False),
    Scope("node", Reach.NODE, Constant(0.25)),
    Scope("everything", Reach.ALL, Constant(0.5)),
    *(Scope(name, Reach.NODE, Constant(0.5)) for name in ("back", "struck", "nobody", "quiet")),
)
STATE = Role("state", 4, Holds.SHARD)
READERS = Role("readers", 2, Holds.NOTHING)
TRAINERS = Role("trainers", 2, Holds.REPLICA)
N_SPOILED = 8  # first saves of a tier that are as a life says


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
    each, again = "each" in marks, "again" in marks
    return Stage(StageKind(kind), _cost(hours), "~" not in word, each=each, copies_again=again)


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
) -> Capture:
    return Capture(tier, every_h, stall=_cost(stall_h), background=_cost(behind_h), **more)


def job(
    *rules: Rule,
    captures: Sequence[Capture] = (),
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


@dataclass(frozen=True, slots=True)
class Life:
    """A job, its failures, and what becomes of it; None: not said.

    The log is of SimPy: its lines, from the first given one on, are those given.
    """

    name: str
    job: SimulatedJob
    failures: list[ScopedFailure]
    parts: dict[str, float]
    saves: int | None = None
    failed: int | None = None  # failures that were not missed; None: all
    stale: list[tuple[float, int, float]] | None = None  # progress, slot, content; None: none
    log: str = ""
    useful_h: float | None = None
    finished: bool = True
    spoiled: dict[str, tuple[int, ...]] | None = None  # saves of a tier with u below 1/2


def life(
    name: str, job: SimulatedJob, struck: str | list[ScopedFailure] = "", **expected: Any
) -> Life:
    """A life; the hours of each part are named as the part is."""
    known = {one: expected.pop(one) for one in Life.__slots__ if one in expected}
    if isinstance(struck, str):
        struck = failures(struck, [scope.name for scope in job.scopes])
    return Life(name, job, struck, expected, **known)


def check(engine: str, life: Life) -> None:
    """One engine says of a life what its hand-made account says."""
    draws = draws_of(life.job, seed_of(life))
    found = ran(engine, life.job, life.failures, draws)
    named = zip(life.job.policy.parts, found.hours, strict=True)
    parts = {part: hours for part, hours in named if hours > 1e-12}
    assert parts == pytest.approx(life.parts, abs=1e-9)
    useful_h = life.job.useful_h if life.useful_h is None else life.useful_h
    assert found.finished == life.finished
    assert found.useful_h == pytest.approx(useful_h)
    assert found.wall_h == pytest.approx(useful_h + sum(parts.values()))
    failed = len(life.failures) if life.failed is None else life.failed
    assert found.n_failures == failed
    assert life.saves is None or found.n_saves == life.saves
    stale = [(one.progress_h, one.slot, one.content_h) for one in found.stale]
    assert stale == [pytest.approx(one) for one in life.stale or []]
    if engine == "simpy" and life.log:
        lines, of_log = life.log.split("; "), told(logged(life.job, life.failures, draws))
        first = of_log.index(lines[0])
        assert of_log[first : first + len(lines)] == lines


def seed_of(life: Life) -> int:
    """Of draws in which those of the first saves that a life names, and no others, are spoiled."""
    for seed in count():
        draws = draws_of(life.job, seed).of(0)
        if all(
            (draws.uniform(tier, n) < 0.5) == (n in spoiled)
            for tier, spoiled in (life.spoiled or {}).items()
            for n in range(N_SPOILED)
        ):
            return seed
    raise AssertionError


def lived(lives: Sequence[Life]) -> Callable[..., None]:
    """A test of lives by all engines."""

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("one", lives, ids=[one.name for one in lives])
    def test(engine: str, one: Life) -> None:
        check(engine, one)

    return test
