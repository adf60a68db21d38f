"""Recovery systems cost what closed forms say, on the clock that each test names.

The formulas (`tests/closed_forms`) share no code with the engines. Means lie within 4 errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Floats, Holds, Role
from cprsim.recovery.legal import require_legal
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
    Rule,
    Scope,
    Stage,
    StageKind,
    Tax,
    Tier,
    To,
)
from cprsim.simulate.blocks import BlockDraws, by_events, run_block
from cprsim.simulate.job import SimulatedJob
from tests.closed_forms import (
    content_age_h,
    corrupt_saves_loss_h,
    elastic_wall_h,
    erasure_coded_overhead_fraction,
    full_uptime_h,
    full_wall_h,
    nested_uptime_h,
    nested_wall_h,
    tier_overhead_fraction,
)
from tests.recovery.poisson import PoissonFailures

N, N_BY_EVENTS = 20_000, 2_000
SEED = 21
N_NODES = 4
NODES = (Role("nodes", N_NODES, Holds.SHARD),)
REMOTE = Tier("remote", Medium.REMOTE, Outside(), "nodes")
REPLICAS = Tier("replicas", Medium.DEVICE, Groups(N_NODES, N_NODES - 1), "nodes")
DETECT, LOAD = Stage(StageKind.DETECT), Stage(StageKind.LOAD)


# --------------------------------------------------------------------------- simulation


@dataclass(frozen=True, slots=True)
class Ran:
    """What replications came to, (n,) each."""

    wall_h: Floats
    useful_h: Floats
    hours: dict[str, Floats]
    n_failures: Floats
    n_saves: Floats


def by_fast(job: SimulatedJob, failures: PoissonFailures) -> Ran:
    n = failures.n_replications
    ran = run_block(job, failures, BlockDraws(job, SEED, 0, n, range(n)), range(n))
    costs = ran.costs
    assert costs.finished.all()
    hours = {part: costs.hours_of(part) for part in costs.parts}
    n_failures, n_saves = costs.n_failures.astype(float), costs.n_saves.astype(float)
    return Ran(costs.wall_h, costs.useful_h, hours, n_failures, n_saves)


def by_simpy(job: SimulatedJob, failures: PoissonFailures) -> Ran:
    n = failures.n_replications
    draws = BlockDraws(job, SEED, 0, n, range(n))
    outcomes = [by_events(job, failures, draws, row) for row in range(n)]
    assert all(outcome.finished for outcome in outcomes)
    hours = np.array([outcome.hours for outcome in outcomes])
    return Ran(
        np.array([outcome.wall_h for outcome in outcomes]),
        np.array([outcome.useful_h for outcome in outcomes]),
        {part: hours[:, column] for column, part in enumerate(job.policy.parts)},
        np.array([float(outcome.n_failures) for outcome in outcomes]),
        np.array([float(outcome.n_saves) for outcome in outcomes]),
    )


Runs = Callable[[SimulatedJob, PoissonFailures], Ran]


def fast_and_simpy(fast: Sequence[Any], simpy: Sequence[Any]) -> list[Any]:
    """Cases of the fast engine, and those of them that SimPy runs too, with fewer jobs."""
    return [
        *(pytest.param(by_fast, N, *case) for case in fast),
        *(pytest.param(by_simpy, N_BY_EVENTS, *case, marks=pytest.mark.long) for case in simpy),
    ]


def job_of(
    policy: Policy,
    useful_h: float,
    clock: Clock,
    scopes: Sequence[Scope],
    n_spares: int | None = None,
) -> SimulatedJob:
    cluster = Cluster(NODES, n_spares=n_spares)
    require_legal(policy, cluster, tuple(scopes))
    return SimulatedJob(useful_h, cluster, clock, tuple(scopes), policy)


def failing(
    job: SimulatedJob, rates_per_h: Sequence[float], n: int = N, **how: Any
) -> PoissonFailures:
    """Failures at these rates by scope, for long enough that none is missing."""
    longest = 1.0 if job.clock is Clock.PROGRESS else 6.0
    how = {"until_h": longest * job.useful_h, "seed": SEED} | how
    return PoissonFailures.draw(job, rates_per_h, n, **how)


def node_scope(name: str = "node", detect_h: float = 0.0, needs_node: bool = True) -> Scope:
    return Scope(name, Reach.NODE, Constant(detect_h), needs_node)


def process_scope(detect_h: float = 0.0) -> Scope:
    return Scope("process", Reach.PROCESS, Constant(detect_h), needs_node=False)


def saved(every_h: float, stall_h: float = 0.0, background_h: float = 0.0, n: int = 1) -> Capture:
    return Capture(
        "remote", every_h, stall=Constant(stall_h), background=Constant(background_h), in_flight=n
    )


def periodic(every_h: float, stall_h: float, **how: Any) -> Policy:
    """All go back to the newest save."""
    rule = Rule(Reverts.ALL, (DETECT,), sources=("remote",))
    return Policy("periodic", (rule,), (REMOTE,), (saved(every_h, stall_h),), **how)


def assert_mean(values: Floats, theory: float, what: str) -> None:
    mean, error = float(values.mean()), float(values.std(ddof=1) / sqrt(len(values)))
    message = f"{what}: mean {mean:.6g}, theory {theory:.6g}, standard error {error:.2g}"
    print(message)
    assert abs(mean - theory) <= 4.0 * error, message


def assert_loss_per_failure(ran: Ran, theory: float) -> None:
    """Hours lost by a failure, over all of them; the error is that of a ratio."""
    per_job, n = ran.n_failures.mean(), len(ran.n_failures)
    mean = float(ran.hours["lost"].mean() / per_job)
    error = float((ran.hours["lost"] - theory * ran.n_failures).std(ddof=1) / sqrt(n) / per_job)
    message = f"lost per failure: mean {mean:.6g}, theory {theory:.6g}, standard error {error:.2g}"
    print(message)
    assert abs(mean - theory) <= 4.0 * error, message


# --------------------------------------------------------------------------- the age of content


@pytest.mark.parametrize(
    ("run", "n", "background_h", "n_in_flight"),
    fast_and_simpy(
        [(0.0, 1), (0.75, 1), (1.25, 1), (2.0, 2), (3.0, 3), (8.75, 7)], [(1.25, 1), (3.0, 3)]
    ),
)
def test_the_age_of_content_on_the_progress_clock(
    run: Runs, n: int, background_h: float, n_in_flight: int
) -> None:
    capture = saved(1.25, background_h=background_h, n=n_in_flight)
    rule = Rule(Reverts.ALL, (DETECT,), sources=("remote",))
    job = job_of(
        Policy("async", (rule,), (REMOTE,), (capture,)), 50.0, Clock.PROGRESS, [node_scope()]
    )
    ran = run(job, failing(job, [0.2], n))
    assert_loss_per_failure(ran, content_age_h(50.0, 1.25, background_h, n_in_flight))


# --------------------------------------------------------------------------- nested levels

EVERY = (1, 4)


def nested(
    interval_h: float,
    every: Sequence[int],
    stalls_h: Sequence[float],
    recoveries_h: Sequence[float] = (0.0, 0.0),
) -> Policy:
    """Host memory, which the failure of a process spares, and remote saves at some of its points.

    What a recovery takes follows from the scope, whichever tier it loads from.
    """
    sources = ("memory", "remote")
    process, node = (Stage(StageKind.REGROUP, Constant(hours)) for hours in recoveries_h)
    return Policy(
        "nested",
        rules=(
            Rule(Reverts.ALL, (process,), scopes=("process",), sources=sources),
            Rule(Reverts.ALL, (node,), sources=sources),
        ),
        tiers=(Tier("memory", Medium.HOST, OWN, "nodes"), REMOTE),
        captures=tuple(
            Capture(tier, interval_h * nth, stall=Constant(stall_h))
            for tier, nth, stall_h in zip(sources, every, stalls_h, strict=True)
        ),
    )


SCOPES = (process_scope(), node_scope())


@pytest.mark.parametrize(
    ("clock", "theory_h", "recoveries_h"),
    [
        (Clock.UPTIME, nested_uptime_h, (0.125, 0.5)),
        (Clock.WALL, nested_wall_h, (0.25, 0.25)),
    ],
)
def test_nested_tiers_cost_what_the_linear_system_says(
    clock: Clock, theory_h: Callable[..., float], recoveries_h: tuple[float, float]
) -> None:
    # On the wall clock a process that fails while a node is recovered has recovery begin anew, by
    # its own rule: the same for equal recoveries.
    stalls_h, rates = (0.125, 0.0), (0.15, 0.05)
    job = job_of(nested(1.0, EVERY, stalls_h, recoveries_h), 24.0, clock, SCOPES)
    ran = by_fast(job, failing(job, rates))
    theory = theory_h(24.0, 1.0, EVERY, stalls_h, recoveries_h, rates)
    assert_mean(ran.wall_h - 24.0, theory, f"overhead, {clock} clock")


def test_nested_tiers_whose_saves_are_struck_on_the_uptime_clock() -> None:
    stalls_h, recoveries_h, rates = (0.125, 0.5), (0.125, 0.5), (0.3, 0.05)
    job = job_of(nested(1.0, EVERY, stalls_h, recoveries_h), 24.0, Clock.UPTIME, SCOPES)
    ran = by_fast(job, failing(job, rates))
    theory = nested_uptime_h(24.0, 1.0, EVERY, stalls_h, recoveries_h, rates)
    assert_mean(ran.wall_h - 24.0, theory, "overhead, uptime clock")


def test_nested_tiers_cost_the_first_order_and_saves_made_again_on_the_progress_clock() -> None:
    stalls_h, recoveries_h, rates = (0.125, 0.5), (0.25, 0.5), (0.15, 0.05)
    job = job_of(nested(1.0, EVERY, stalls_h, recoveries_h), 24.0, Clock.PROGRESS, SCOPES)
    ran = by_fast(job, failing(job, rates))
    theory = tier_overhead_fraction((1.0, 4.0), stalls_h, rates, recoveries_h)
    # on the way back from a remote save, those to host memory are made again: 0 to 3 of them
    theory += rates[1] * stalls_h[0] * (EVERY[1] - 1) / 2.0
    assert_mean(ran.wall_h - 24.0, 24.0 * theory, "overhead")


# --------------------------------------------------------------------------- elastic jobs


@pytest.mark.parametrize(
    ("run", "n", "speed"), fast_and_simpy([(0.25,), (0.75,), (1.0,)], [(0.25,)])
)
def test_a_job_of_lower_speed_after_its_first_failure_on_the_wall_clock(
    run: Runs, n: int, speed: float
) -> None:
    rule = Rule(Reverts.NOBODY, (Stage(StageKind.WAIT, blocks=False),))
    elastic = Elastic("nodes", (1.0, *(speed for _ in range(N_NODES))))
    policy = Policy("elastic", (rule,), elastic=elastic)
    job = job_of(policy, 20.0, Clock.WALL, [node_scope()], n_spares=0)
    ran = run(job, failing(job, [1 / 15], n, repair_h=inf))
    theory = elastic_wall_h(20.0, 15.0, speed)
    if speed == 1.0:
        assert ran.wall_h == pytest.approx(theory, rel=1e-12)
    else:
        assert_mean(ran.wall_h, theory, "wall time, wall clock")


# --------------------------------------------------------------------------- replicas, just in time

STEP_H = 0.25


def retrying(to: To, *more: Stage) -> Policy:
    """As long as one replica is left, only the step in hand is lost."""
    rules = (
        Rule(Reverts.ALL, (DETECT, *more), to, needs=("replicas",)),
        Rule(Reverts.ALL, (DETECT,), To.START),
    )
    return Policy("replicas", rules, (REPLICAS,), step_h=STEP_H)


def test_replicas_that_retry_a_step_lose_half_of_it_on_the_progress_clock() -> None:
    job = job_of(retrying(To.STEP_BEGUN), 20.0, Clock.PROGRESS, [node_scope()])
    ran = by_fast(job, failing(job, [0.2]))
    assert_loss_per_failure(ran, STEP_H / 2.0)


def test_replicas_that_undo_a_step_and_do_it_again_lose_all_of_it_on_the_progress_clock() -> None:
    job = job_of(retrying(To.STEP_BEFORE), 20.0, Clock.PROGRESS, [node_scope()])
    failures = failing(job, [0.2])
    ran = by_fast(job, failures)
    # in the first step there is less to undo
    drawn = failures.drawn
    in_first_step = np.clip(STEP_H - drawn.at_h, 0.0, None)
    row = np.repeat(np.arange(N), np.diff(drawn.first[0]))
    less_h = np.bincount(row, in_first_step, minlength=N)
    theory_h = STEP_H * ran.n_failures - less_h
    assert ran.hours["lost"] == pytest.approx(theory_h, abs=1e-9)


# --------------------------------------------------------------------------- parity and tax

REBUILD_H = 0.125


def parity(tax: float, speed: float) -> Policy:
    """Lost shards are rebuilt from parity while the job goes on, however many are lost at once."""
    rule = Rule(
        Reverts.NOBODY,
        (DETECT, Stage(StageKind.REBUILD, Constant(REBUILD_H), blocks=False)),
        speed_meanwhile=speed,
    )
    return Policy("parity", (rule,), tax=Tax(compute=tax))


def test_parity_that_costs_nothing_leaves_detection_alone_on_the_progress_clock() -> None:
    job = job_of(parity(0.0, 1.0), 40.0, Clock.PROGRESS, [node_scope(detect_h=0.25)])
    ran = by_fast(job, failing(job, [0.1]))
    assert ran.wall_h - 40.0 == pytest.approx(0.25 * ran.n_failures, abs=1e-9)
    theory = erasure_coded_overhead_fraction(0.1, 0.0, 0.25, REBUILD_H, 1.0)
    assert_mean(ran.wall_h - 40.0, 40.0 * theory, "overhead")


def test_parity_costs_tax_detection_and_slow_rebuilds_on_the_progress_clock() -> None:
    # exact but for rebuilds that overlap or outlast the job: a thousandth of what they cost
    rate = 0.005
    job = job_of(parity(0.125, 0.5), 100.0, Clock.PROGRESS, [node_scope(detect_h=0.25)])
    ran = by_fast(job, failing(job, [rate]))
    theory = erasure_coded_overhead_fraction(rate, 0.125, 0.25, REBUILD_H, 0.5)
    assert_mean(ran.wall_h - 100.0, 100.0 * theory, "overhead")


def test_a_tax_is_paid_on_all_work_also_on_that_done_again_on_the_progress_clock() -> None:
    tax, rate, useful_h = 0.125, 0.1, 40.0
    policy = periodic(2.0, 0.25, tax=Tax(compute=tax))
    job = job_of(policy, useful_h, Clock.PROGRESS, [node_scope(detect_h=0.5)])
    ran = by_fast(job, failing(job, [rate]))
    again_h = tax * (useful_h + ran.hours["lost"])
    assert ran.hours["tax"] == pytest.approx(again_h, rel=1e-9)
    theory = tax + tier_overhead_fraction([2.0], [0.25], [rate], [0.5 + tax * 1.0])
    assert_mean(ran.wall_h - useful_h, useful_h * theory, "overhead")


# --------------------------------------------------------------------------- corrupt saves


def test_corrupt_saves_take_a_job_back_by_a_geometric_number_on_the_progress_clock() -> None:
    # Few failures in a long job: one that follows another finds a save that is known to be whole
    q, interval_h, useful_h = 0.15, 1.0, 1000.0
    tier = Tier("remote", Medium.REMOTE, Outside(), "nodes", generations=8, p_corrupt=q)
    rule = Rule(Reverts.ALL, (DETECT,), sources=("remote",))
    policy = Policy("corrupt", (rule,), (tier,), (saved(interval_h),))
    job = job_of(policy, useful_h, Clock.PROGRESS, [node_scope()])
    ran = by_fast(job, failing(job, [1.0 / useful_h]))
    assert_loss_per_failure(ran, corrupt_saves_loss_h(interval_h, q))


# --------------------------------------------------------------------------- several scopes


ON_UPTIME = (Clock.UPTIME, full_uptime_h, (0.125, 0.75))
ON_WALL = (Clock.WALL, full_wall_h, (0.25, 0.25))


@pytest.mark.parametrize(
    ("run", "n", "clock", "theory_h", "detect_h"),
    fast_and_simpy([ON_UPTIME, ON_WALL], [ON_UPTIME, ON_WALL]),
)
def test_two_scopes_are_one_poisson_process_of_both_rates(
    run: Runs,
    n: int,
    clock: Clock,
    theory_h: Callable[..., float],
    detect_h: tuple[float, float],
) -> None:
    # clocks of uptime and of wall time; the latter strikes recoveries, here equally long ones
    mtbfs_h = (15.0, 30.0)
    rates = [1.0 / mtbf_h for mtbf_h in mtbfs_h]
    scopes = (process_scope(detect_h[0]), node_scope(detect_h=detect_h[1]))
    job = job_of(periodic(2.0, 0.25), 24.0, clock, scopes)
    ran = run(job, failing(job, rates, n))
    mtbf_h = 1.0 / sum(rates)
    recovery_h = sum(rate * hours for rate, hours in zip(rates, detect_h, strict=True)) * mtbf_h
    theory = theory_h(24.0, 2.0, 0.25, recovery_h, mtbf_h)
    assert_mean(ran.wall_h - 24.0, theory, f"overhead, {clock} clock")


def test_scopes_that_are_told_apart_cost_the_sum_of_both_on_the_progress_clock() -> None:
    # one loses the step in hand, the other what was done since the last save
    rates, useful_h = (0.1, 0.05), 40.0
    rules = (
        Rule(Reverts.ALL, (DETECT,), To.STEP_BEGUN, scopes=("process",)),
        Rule(Reverts.ALL, (DETECT,), sources=("remote",)),
    )
    policy = Policy("two", rules, (REMOTE,), (saved(2.0, 0.25),), step_h=STEP_H)
    scopes = (process_scope(0.125), node_scope(detect_h=0.5))
    job = job_of(policy, useful_h, Clock.PROGRESS, scopes)
    ran = by_fast(job, failing(job, rates))
    alone = rates[0] * (0.125 + STEP_H / 2.0)
    saves = tier_overhead_fraction([2.0], [0.25], [rates[1]], [0.5])
    assert_mean(ran.wall_h - useful_h, useful_h * (alone + saves), "overhead")
