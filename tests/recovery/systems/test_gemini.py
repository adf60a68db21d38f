"""GEMINI: small cases by hand, survival against counts of failed sets, and 105 wasted minutes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb, inf, sqrt
from random import Random

import numpy as np
import pytest

from cprsim.analytic.survival import p_groups_survive, p_ring_survives
from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, CostBreakdown, Holds, Role
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Policy, Reach, Scope
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems.gemini import SYSTEM, GeminiOptions
from cprsim.simulate.blocks import BlockDraws, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures
from tests import closed_forms
from tests.recovery.poisson import PoissonFailures

PROCESS, NODE, EVERYTHING = range(3)
SCOPES = (
    Scope("process", Reach.PROCESS, Constant(0.0), needs_node=False),
    Scope("node", Reach.NODE, Constant(0.25)),
    Scope("all", Reach.ALL, Constant(0.0)),
)
FETCH_H, LOAD_H = 0.0625, 2.0


def facts(n_nodes: int = 4, **changes: object) -> JobFacts:
    """A job of 16 h in steps of half an hour; a shard takes 1/16 h from node to node."""
    return replace(
        JobFacts(
            useful_h=16.0,
            cluster=Cluster((Role("state", n_nodes, Holds.SHARD),)),
            role="state",
            scopes=SCOPES,
            mtbf_h=inf,
            save_stall=Constant(0.25),
            load=Constant(LOAD_H),
            reschedule=Constant(0.5),
            step_h=0.5,
            state_bytes=1.0,
            node_bytes_per_h=1.0 / FETCH_H,
            remote_bytes_per_h=4.0 * n_nodes,  # 1/4 h for all
        ),
        **changes,
    )


def planned(job: JobFacts, **options: object) -> Policy:
    policy = SYSTEM.plan(job, GeminiOptions(**options), "gemini")
    require_legal(policy, job.cluster, job.scopes)
    return policy


def run(
    job: JobFacts, failures: GivenFailures | PoissonFailures, clock: Clock, **options: object
) -> CostBreakdown:
    simulated = simulated_job(job, clock, **options)
    n = failures.n_replications
    draws = BlockDraws(simulated, 0, 0, n, range(n))
    return run_block(simulated, failures, draws, range(n)).costs


def simulated_job(job: JobFacts, clock: Clock, **options: object) -> SimulatedJob:
    return SimulatedJob(job.useful_h, job.cluster, clock, job.scopes, planned(job, **options))


def failure(at_h: float, *slots: int, scope: int = NODE) -> ScopedFailure:
    return ScopedFailure(at_h, slots, scope, (0.0,) * len(slots))


def hours(job: JobFacts, *failures: ScopedFailure, **options: object) -> dict[str, float]:
    """Parts of one replication that took any time."""
    costs = run(job, GivenFailures((failures,)), Clock.WALL, **options)
    assert costs.wall_h[0] == pytest.approx(job.useful_h + costs.hours.sum(), abs=1e-12)
    named = zip(costs.parts, costs.hours[0].tolist(), strict=True)
    return {part: approx(spent_h) for part, spent_h in named if spent_h}


def approx(value: float) -> object:
    return pytest.approx(value, abs=1e-9)


# --------------------------------------------------------------------------- the mechanism

AT_THE_END = {"save": FETCH_H}  # the job waits for the copy of its last step


def test_without_failures_copies_cost_only_the_last_one_of_the_job() -> None:
    assert hours(facts()) == AT_THE_END


def test_a_process_restarts_from_its_own_machine_s_memory() -> None:
    spent = hours(facts(), failure(5.125, 1, scope=PROCESS))
    assert spent == {"lost": 0.125, "reschedule": 0.5} | AT_THE_END


def test_a_lost_machine_is_recovered_from_its_peer() -> None:
    spent = hours(facts(), failure(5.125, 1))
    assert spent == {"lost": 0.125, "detect": 0.25, "reschedule": 0.5, "load": FETCH_H} | AT_THE_END


def test_until_a_copy_is_complete_the_one_before_counts() -> None:
    assert hours(facts(), failure(5.03125, 1))["lost"] == approx(0.53125)


@pytest.mark.parametrize(
    ("slots", "lost_h", "load_h"), [((0, 1), 2.125, LOAD_H), ((1, 2), 0.125, FETCH_H)]
)
def test_a_lost_group_goes_back_to_the_remote_storage(
    slots: tuple[int, ...], lost_h: float, load_h: float
) -> None:
    spent = hours(facts(), failure(5.125, *slots))
    assert (spent["lost"], spent["load"]) == (lost_h, load_h)


def test_in_a_ring_any_two_neighbours_hold_the_only_copies_of_a_shard() -> None:
    assert hours(facts(), failure(5.125, 1, 2), placement="ring")["load"] == LOAD_H
    assert hours(facts(), failure(5.125, 0, 2), placement="ring")["load"] == FETCH_H
    assert hours(facts(3), failure(2.125, 2, 0), placement="ring")["load"] == LOAD_H


def test_a_process_that_fails_while_a_machine_is_away_does_not_spare_that_its_fetch() -> None:
    spent = hours(facts(), failure(5.125, 1), failure(5.25, 3, scope=PROCESS))
    assert spent["load"] == FETCH_H


def test_a_group_that_lost_a_holder_protects_nothing_until_the_next_copy() -> None:
    first = failure(5.125, 0)  # works again, from 5, at 5.9375
    before = hours(facts(), first, failure(6.1875, 1))  # at progress 5.25
    assert before["lost"] == approx(0.125 + 2.25)
    after = hours(facts(), first, failure(6.6875, 1))  # at progress 5.75
    assert after["lost"] == approx(0.125 + 0.25)


# --------------------------------------------------------------------------- how often


COPYING = [
    # copies, idle, every: then the interval, stall and background
    ({}, (0.5, 0.0, 0.0625)),
    ({"copies": 4}, (0.5, 0.0, 0.1875)),  # to three peers
    ({"idle": 0.0625}, (0.5, 0.0, 0.5)),  # fits exactly, and is spread over the step
    ({"idle": 0.03125}, (1.0, 0.0, 1.0)),  # takes two steps
    ({"idle": 0.03125, "every": 0.5}, (0.5, 0.03125, 0.5)),  # B/r - h
    ({"every": 0.03125}, (0.03125, 0.03125, 0.03125)),  # more than the link can carry
]


@pytest.mark.parametrize(("options", "expected"), COPYING)
def test_a_copy_stalls_for_what_the_idle_link_can_t_carry(
    options: dict[str, object], expected: tuple[float, float, float]
) -> None:
    capture = planned(facts(), **options).captures[0]
    assert capture.stall is not None
    assert capture.background is not None
    assert (capture.every_h, capture.stall.mean_h, capture.background.mean_h) == approx(expected)


def test_a_copy_longer_than_a_step_is_made_every_few_steps() -> None:
    assert planned(facts(step_h=0.025)).captures[0].every_h == approx(0.075)


def test_a_stall_counts_once_per_copy() -> None:
    spent = hours(facts(), idle=0.03125, every=0.5)
    assert spent == {"save": 32 * 0.03125 + 0.5}  # and the last one's way to its peer


def test_remote_saves_take_what_is_known_of_them_and_follow_one_another_at_most() -> None:
    def remote(job: JobFacts, **options: object) -> tuple[float | None, float]:
        capture = planned(job, **options).captures[1]
        assert capture.background is not None
        return capture.every_h, capture.background.mean_h

    assert remote(facts()) == (3.0, 0.25)
    assert remote(facts(remote_bytes_per_h=None)) == (3.0, 0.25)  # the job's stall
    by_job = facts(remote_bytes_per_h=None, save_background=Constant(1.0))
    assert remote(by_job) == (3.0, 1.25)
    assert remote(by_job, remote_every=0.5) == (1.25, 1.25)


REFUSED = [
    ({}, {"copies": 1}, "`copies` is 1"),
    ({}, {"copies": 5}, "at most 4, the nodes of `state`"),
    ({}, {"copies": 3}, "make no groups of 3"),
    ({}, {"placement": "random"}, "`placement` is `random`"),
    ({}, {"every": 0.0}, "`every` is 0.0 h"),
    ({}, {"idle": 0.0}, "`idle` is 0.0 h"),
    ({}, {"idle": 0.75}, "at most a step, 0.5 h"),
    ({}, {"remote_every": 0.0}, "`remote_every` is 0.0 h"),
    ({"step_h": None}, {}, "the time of a training step"),
    ({"step_h": None}, {"every": 0.5, "idle": 0.1}, "`idle` of gemini needs"),
    ({"state_bytes": None}, {}, "gemini needs the state of a node"),
    ({"node_bytes_per_h": None}, {}, "gemini needs the bandwidth between nodes"),
]


@pytest.mark.parametrize(("changes", "options", "message"), REFUSED)
def test_a_job_that_it_can_t_serve_is_refused(
    changes: dict[str, object], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        planned(facts(**changes), **options)


# --------------------------------------------------------------------------- survival

# Machines, copies, failures: exact in groups, GEMINI's formula (a bound from k = 2 m on), in a ring
SURVIVAL = [
    (16, 2, 2, 0.9333, 0.9333, 0.8667),
    (16, 2, 3, 0.8000, 0.8000, 0.6286),
    (16, 2, 4, 0.6154, 0.6000, 0.3626),
    (1000, 2, 2, 0.9990, 0.9990, None),
    (1000, 2, 3, 0.9970, 0.9970, None),
]
N_DRAWN = 20_000


def p_counted(n: int, m: int, k: int, placement: str) -> float:
    """The share of sets of k failed machines that leave each shard a holder."""
    if n > 100:  # by hand: a pair of neighbours, and for k = 3 any third machine
        return 1.0 - (n // m) * comb(n - m, k - m) / comb(n, k)
    starts = range(0, n, m) if placement == "group" else range(n)
    holders = [{(start + i) % n for i in range(m)} for start in starts]
    failed = [set(some) for some in combinations(range(n), k)]
    return sum(not any(shard <= some for shard in holders) for some in failed) / len(failed)


@pytest.mark.parametrize(("n", "m", "k", "exact", "bound", "ring"), SURVIVAL)
def test_the_probability_of_recovery_from_memory_is_the_count_s(
    n: int, m: int, k: int, exact: float, bound: float, ring: float | None
) -> None:
    counted = p_counted(n, m, k, "group")
    assert counted == pytest.approx(exact, abs=5e-5)
    assert p_groups_survive(n, m, k) == pytest.approx(counted, abs=1e-9)
    formula = max(0.0, 1.0 - n * comb(n - m, k - m) / (m * comb(n, k)))
    assert formula == pytest.approx(bound, abs=5e-5)
    assert closed_forms.p_groups_survive_bound(n, m, k) == pytest.approx(formula, abs=1e-9)
    if ring is not None:
        assert p_counted(n, m, k, "ring") == pytest.approx(ring, abs=5e-5)
        assert p_ring_survives(n, m, k) == pytest.approx(p_counted(n, m, k, "ring"), abs=1e-9)


SIMULATED = [(n, m, k, "group") for n, m, k, *_ in SURVIVAL] + [
    (16, 2, k, "ring") for k in (2, 3, 4)
]


@pytest.mark.parametrize(("n", "m", "k", "placement"), SIMULATED)
def test_simulated_jobs_recover_from_memory_as_often(
    n: int, m: int, k: int, placement: str
) -> None:
    rng, draw = np.random.default_rng(11), Random(11)
    at_h = rng.uniform(0.6, 2.9, N_DRAWN)  # after the first copy, before the first remote save
    slots = [tuple(draw.sample(range(n), k)) for _ in range(N_DRAWN)]
    failures = GivenFailures(
        tuple((failure(at, *some),) for at, some in zip(at_h.tolist(), slots, strict=True))
    )
    costs = run(facts(n, useful_h=3.25), failures, Clock.WALL, placement=placement, copies=m)
    from_memory = costs.hours_of("load") < LOAD_H / 2.0
    newest_h = 0.5 * np.floor((at_h - FETCH_H) / 0.5)
    lost_h = np.where(from_memory, at_h - newest_h, at_h)
    np.testing.assert_allclose(costs.hours_of("lost"), lost_h, atol=1e-9)
    p = p_counted(n, m, k, placement)
    standard_error = sqrt(p * (1.0 - p) / N_DRAWN)
    assert abs(from_memory.mean() - p) <= 4.0 * standard_error, (
        f"{from_memory.mean():.5f} simulated, {p:.5f} counted, standard error {standard_error:.2g}"
    )


# --------------------------------------------------------------------------- wasted time


def test_a_lost_model_of_530e9_parameters_wastes_106_minutes_from_the_remote_storage() -> None:
    # 42 min since the last save began, 21 of the next, 42 to load: 105 min in all (Wang et al.
    # 2023 as others quote it, secondary). 530e9 parameters of 12 bytes over 20 Gbit/s take
    # 42.4 min, and 2.5 times that is 106.0 (derived).
    whole_h = 530e9 * 12.0 / (20e9 / 8.0 * 3600.0)
    assert 60.0 * whole_h == pytest.approx(42.4, abs=1e-9)
    job = facts(
        16,
        useful_h=100.0 * whole_h,
        state_bytes=530e9 * 12.0 / 16.0,
        node_bytes_per_h=400e9 / 8.0 * 3600.0,
        remote_bytes_per_h=20e9 / 8.0 * 3600.0,
        load=Constant(whole_h),
        step_h=whole_h / 4.0,
    )
    options = {"remote_every": 0.01}  # as often as the storage can
    rate = 0.02
    clock = Clock.PROGRESS
    failures = PoissonFailures.draw(
        simulated_job(job, clock, **options), (0.0, 0.0, rate), 20_000, until_h=job.useful_h,
        seed=11, together=16,
    )  # fmt: skip
    costs = run(job, failures, clock, **options)
    n = costs.n_failures
    age_h = closed_forms.content_age_h(job.useful_h, whole_h, whole_h)
    assert age_h == pytest.approx(1.5 * whole_h, rel=0.007)
    assert 60.0 * (1.5 * whole_h + whole_h) == pytest.approx(106.0, abs=0.01)
    wasted_h = costs.hours_of("lost") + costs.hours_of("load")
    surplus_h = wasted_h - n * (age_h + whole_h)
    standard_error = float(surplus_h.std(ddof=1)) / sqrt(len(n)) / n.mean()
    per_failure_h = float(wasted_h.mean() / n.mean())
    assert abs(surplus_h.mean() / n.mean()) <= 4.0 * standard_error, (
        f"{60 * per_failure_h:.3f} min per failure, {60 * (age_h + whole_h):.3f} in theory, "
        f"standard error {60 * standard_error:.2g}"
    )
