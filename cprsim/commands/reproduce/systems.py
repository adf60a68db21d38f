"""Recovery systems of the literature, each compared with its published numbers.

The targets and their tolerances are in `studies.yaml`, and were written first. Each part here
returns an estimate by the target's name, from formulas of papers or from jobs of simple numbers
that are simulated under one policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from math import ceil, comb, gamma, inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from cprsim.commands.reproduce.estimates import StudyEstimate
from cprsim.commands.reproduce.overheads import simulate_cases
from cprsim.commands.reproduce.study import DATA, Summary, Work
from cprsim.commands.reproduce.verdicts import Ours, Target, Tested
from cprsim.failures.sources import stream
from cprsim.job.distributions import Constant
from cprsim.job.intervals import ROUNDING
from cprsim.job.legal import require_legal
from cprsim.job.policy import OWN, Medium, Policy, Reach, Scope, Stage, StageKind, Tier
from cprsim.job.records import (
    Z_95,
    Clock,
    Cluster,
    CostBreakdown,
    Costs,
    Holds,
    Ints,
    Role,
    Storage,
)
from cprsim.recovery import building_blocks as build
from cprsim.recovery.system import JobProfile
from cprsim.recovery.systems import SYSTEMS
from cprsim.recovery.systems.behind import checkfreq_steps, increments_before_whole, mean_fractions
from cprsim.recovery.systems.memory import save_fraction
from cprsim.simulation.blocks import run_block
from cprsim.simulation.draws import BlockDraws
from cprsim.simulation.job import ScopedFailure, SimulatedJob
from cprsim.simulation.strikes import ScopedStrikes, given_failures

SEED = 17
FloatsOf = npt.NDArray[np.floating[Any]]
Estimates = dict[str, StudyEstimate]  # by the target's name
Options = dict[str, Any]  # of a system, or what differs of a job

# --------------------------------------------------------------------------- jobs and failures

DETECT_H, RESCHEDULE_H, STALL_H, STEP_H = 0.1, 0.2, 0.02, 0.1
NO_DELAY = Constant(0.0)
SIMULATED_COSTS = Costs(
    save_stall=Constant(STALL_H), load=Constant(0.5), detect=Constant(DETECT_H),
    reschedule=Constant(RESCHEDULE_H), save_background=Constant(0.5), storage=Storage(1e3),
)  # fmt: skip
PROCESS = Scope("process", Reach.PROCESS, SIMULATED_COSTS.detect, needs_node=False)
NODE = Scope("node", Reach.NODE, SIMULATED_COSTS.detect)


def facts(n_nodes: int = 8, **changes: Any) -> JobProfile:
    """A job of simple numbers, on which no comparison depends."""
    costs = {key: changes.pop(key) for key in SIMULATED_COSTS.__slots__ if key in changes}
    job = JobProfile(
        useful_h=64.0, cluster=Cluster((Role("node", n_nodes, Holds.SHARD),)), role="node",
        scopes=(PROCESS,), mtbf_h=20.0, costs=replace(SIMULATED_COSTS, **costs), step_h=STEP_H,
        state_bytes=1.0, node_bytes_per_h=4.0, replicas=n_nodes,
    )  # fmt: skip
    return replace(job, **changes)


NO_FAILURES = given_failures(((),))


def poisson(
    job: JobProfile,
    n: int,
    name: str,
    *rates_per_h: float,
    until_h: float = 0.0,
    n_together: int = 1,
) -> ScopedStrikes:
    """Failures of each scope at its rate up to an instant, each of slots drawn at random."""
    rng, total, until_h = stream(SEED, 0, name), sum(rates_per_h), until_h or job.useful_h
    counts = rng.poisson(total * until_h, n)
    n_failures = int(counts.sum())
    row = np.repeat(np.arange(n), counts)
    at_h = rng.uniform(0.0, until_h, n_failures)
    at_h = at_h[np.lexsort((at_h, row))]
    scope = rng.choice(len(rates_per_h), n_failures, p=np.array(rates_per_h) / total)
    n_nodes = job.cluster.n_nodes
    if n_together == 1:
        slot = rng.integers(0, n_nodes, n_failures)
    else:
        slot = np.argsort(rng.random((n_failures, n_nodes)), axis=1)[:, :n_together].reshape(-1)
    first = np.concatenate([[0], np.cumsum(counts)])[None, :]
    first_slot, back_h = n_together * np.arange(n_failures + 1), np.zeros(n_together * n_failures)
    scope, slot = scope.astype(np.int64), slot.astype(np.int64)
    return ScopedStrikes(inf, first, at_h, scope, first_slot, slot, back_h)


def costs_of(
    job: JobProfile,
    policy: Policy | str,
    failures: ScopedStrikes,
    clock: Clock = Clock.PROGRESS,
    horizon_h: float | None = None,
    **options: Any,
) -> CostBreakdown:
    """Where the hours of all replications went, under a policy or a system's with its options."""
    if isinstance(policy, str):
        system = SYSTEMS[policy]
        policy = system.plan(job, options, policy)
    require_legal(policy, job.cluster, job.scopes)
    simulated = SimulatedJob(job.useful_h, job.cluster, clock, job.scopes, policy, horizon_h)
    n = failures.n_replications
    draws = BlockDraws(simulated, SEED, 0, n, range(n))
    return run_block(simulated, failures, draws, range(n)).costs


def mean_of(values: FloatsOf) -> StudyEstimate:
    """Mean of many values, its 95 % interval that of the normal distribution."""
    half = Z_95 * float(values.std(ddof=1)) / sqrt(len(values))
    return StudyEstimate.around(float(values.mean()), half)


def ratio_of(above: FloatsOf, below: FloatsOf) -> StudyEstimate:
    """Ratio of two means over replications, and its 95 % interval."""
    ratio = float(above.mean() / below.mean())
    half = Z_95 * float((above - ratio * below).std(ddof=1)) / sqrt(len(above))
    return StudyEstimate.around(ratio, half / float(below.mean()))


# --------------------------------------------------------------------------- GEMINI

SURVIVES = (  # placement of two copies, machines, how many are lost
    ("groups", 16, 2), ("groups", 16, 3), ("groups", 16, 4), ("groups", 1000, 2),
    ("groups", 1000, 3), ("ring", 16, 2), ("ring", 16, 3), ("ring", 16, 4),
)  # fmt: skip


def gemini_survives(n: int) -> Estimates:
    """Whether hosts' memory survives: its formula, and simulated jobs."""
    estimates: Estimates = {}
    for place, n_nodes, k in SURVIVES:
        case = f"gemini {place} {n_nodes} {k}"
        estimates[f"{case} simulated"] = _memory_survives(place, n_nodes, k, n)
        if place == "groups":
            estimates[f"{case} exact"] = StudyEstimate(p_groups_survive(n_nodes, 2, k))
    return estimates


def p_groups_survive(n: int, m: int, k: int) -> float:
    """Probability that k random machines of n hold no group of m whole: inclusion and exclusion."""
    terms = ((-1) ** j * comb(n // m, j) * comb(n - j * m, k - j * m) for j in range(k // m + 1))
    return float(sum(terms) / comb(n, k))


def _memory_survives(place: str, n_nodes: int, k: int, n: int) -> StudyEstimate:
    """Share of jobs that recover from memory after a simultaneous failure of k machines."""
    job = facts(
        n_nodes, useful_h=3.25, step_h=0.5, scopes=(NODE,), load=Constant(2.0), replicas=1
    )  # fmt: skip
    rng = stream(SEED, 0, f"gemini/{place}/{n_nodes}/{k}")
    at_h = rng.uniform(0.8, 2.9, n)  # after the first copy, before the first remote save
    lost = np.argsort(rng.random((n, n_nodes)), axis=1)[:, :k]
    failures = [
        (ScopedFailure(at, tuple(slots), 0, (0.0,) * k),)
        for at, slots in zip(at_h.tolist(), lost.tolist(), strict=True)
    ]
    placement = place.removesuffix("s")
    costs = costs_of(job, "gemini", given_failures(failures), Clock.WALL, placement=placement)
    return mean_of((costs.hours_of("load") < 1.0).astype(float))


def gemini_wasted(n: int) -> Estimates:
    """Minutes lost and loaded per failure that erases the memory of all machines."""
    whole_h = 530e9 * 12.0 / (20e9 / 8.0 * 3600.0)
    job = facts(
        16, useful_h=100 * whole_h, step_h=whole_h / 4.0, scopes=(NODE,), load=Constant(whole_h),
        state_bytes=530e9 * 12.0 / 16.0, node_bytes_per_h=400e9 / 8.0 * 3600.0,
        storage=Storage(20e9 / 8.0 * 3600.0), replicas=1,
    )  # fmt: skip
    failures = poisson(job, n, "gemini/wasted", 0.02, n_together=16)
    costs = costs_of(job, "gemini", failures, remote_every=0.01)
    minutes = 60.0 * (costs.hours_of("lost") + costs.hours_of("load"))
    return {
        "gemini wasted": StudyEstimate(60.0 * 2.5 * whole_h),
        "gemini wasted simulated": ratio_of(minutes, costs.n_failures.astype(float)),
    }


# --------------------------------------------------------------------------- PCcheck, CheckFreq


def pccheck(n: int) -> Estimates:
    """The age of the content beyond PCcheck's formula, and its saves per interval."""
    every_h, write_h = 1.0, 1.5
    job = facts(useful_h=400 * every_h)
    times: Options = {"every": every_h, "snapshot": 0.0, "persist": write_h, "in_flight": 2}
    costs = costs_of(job, "pccheck", poisson(job, n, "pccheck", 0.05), **times)
    charged = every_h / 2.0 + min(write_h, 2 * every_h) / 2.0  # by its code (published)
    beyond = costs.hours_of("lost") - charged * costs.n_failures
    half = 0.5 * write_h * costs.n_failures
    slow = costs_of(job, "pccheck", NO_FAILURES, **(times | {"persist": 3 * every_h}))
    return {
        "pccheck in flight": ratio_of(beyond, half),
        "pccheck throughput": StudyEstimate(job.useful_h / float(slow.wall_h[0])),
    }


def by_rule(n: int) -> Estimates:
    """Estimates without simulation: rules and sizes."""
    steps, period = checkfreq_steps(1.0, 10.5, 0.6), increments_before_whole(0.26, 0.28) + 1
    size, _ = mean_fractions("intermittent", 0.26, 0.28, period)
    two_levels = sum(sqrt(2.0 * stall_h * rate) for stall_h, rate in zip(*TWO_LEVELS, strict=True))
    return {
        "checkfreq steps": StudyEstimate(float(steps)),
        "check-n-run period": StudyEstimate(float(period)),
        "check-n-run size": StudyEstimate(size),
        "check-n-run consecutive": StudyEstimate(1.0 + 11 * 0.26),
        "moc bytes": StudyEstimate(save_fraction(64, 8, 0.86)),
        "levels formula": StudyEstimate(two_levels),
    }


# --------------------------------------------------------------------------- ECRec, MoC


def ecrec(n: int) -> Estimates:
    """Overhead with parity rebuilt during the job, divided by its closed form."""
    job, rate = facts(100, useful_h=1000.0, scopes=(NODE,)), 1 / 500.0
    options: Options = {"tax": 0.05, "speed_meanwhile": 0.9, "rebuild": 1.0}
    with_failures, without = (
        costs_of(job, "ecrec", failures, **options, backstop=1000.0).wall_h / job.useful_h - 1.0
        for failures in (poisson(job, n, "ecrec", rate), NO_FAILURES)
    )
    closed = 0.05 + rate * (DETECT_H + RESCHEDULE_H + 1.0 * (1.0 - 0.9))
    return {
        "ecrec": mean_of(with_failures).times(1.0 / closed),
        "ecrec no failures": StudyEstimate(100 * float(without[0])),
    }


def moc(n: int) -> Estimates:
    """Overhead divided by the published form, and the staleness of experts."""
    every_h, snapshot_h = 1.0, 0.2
    job = facts(useful_h=200.0)
    failures = poisson(job, n, "moc", 0.05)
    costs = costs_of(
        job, "moc", failures, experts=64, saved_each=8, every=every_h, snapshot=snapshot_h,
        window=0.0, persist=0.0,
    )  # fmt: skip
    stall_h = save_fraction(64, 8, 0.86) * snapshot_h
    per_failure_h = DETECT_H + RESCHEDULE_H + every_h / 2.0
    closed = stall_h * job.useful_h / every_h + costs.n_failures * per_failure_h
    at_h = failures.strikes(1).at_h
    went_back = np.floor(at_h / every_h).astype(int)
    picked = stream(SEED, 0, "moc/experts").integers(16, size=len(at_h))
    turns = np.array([expert_staleness(16, 4, m) for m in range(int(went_back.max()) + 1)])
    stale = turns[went_back, picked][went_back >= 4]
    tokens = portion_of_lost_tokens(64, 8, [100] * 10, 0.1, 200.0)
    return {
        "moc overhead": ratio_of(costs.wall_h - job.useful_h, closed),
        "moc staleness": mean_of(stale),
        "moc plt": StudyEstimate(100 * tokens),
    }


def expert_staleness(n_experts: int, n_saved_each: int, save_number: int) -> FloatsOf:
    """How much older each expert is than the save that a job goes back to, (N,) [intervals].

    Save m holds the K experts from ``(m - 1) K mod N`` on; others go back further, or to the start.
    """
    places_behind = (save_number * n_saved_each - 1 - np.arange(n_experts)) % n_experts
    return np.minimum(places_behind // n_saved_each, save_number).astype(np.float64)


def portion_of_lost_tokens(
    n_experts: int, n_saved_each: int, save_numbers: Iterable[int], interval_h: float,
    useful_h: float,
) -> float:  # fmt: skip
    """PLT of a job: tokens lost by its experts, as a share of their training tokens.

    The published formula is not known here. This is PLS with experts as shards, each failure
    counted from the last save, with equal numbers of tokens per expert. Source: derived here.
    """
    lost = sum(expert_staleness(n_experts, n_saved_each, m).mean() for m in save_numbers)
    return float(lost) * interval_h / useful_h


# --------------------------------------------------------------------------- replay, replicas


def swift(n: int) -> Estimates:
    """Hours that the failed nodes replay, divided by half an interval per failure."""
    every_h, estimates = 4.0, {}
    job = facts(save_stall=NO_DELAY, save_background=None)
    failures = poisson(job, n, "swift", 0.05)
    for name, speed in (("swift full redo", 1.0), ("swift replica", 1e9)):
        costs = costs_of(job, "swift", failures, every=every_h, replay_speed=speed)
        estimates[name] = ratio_of(costs.hours_of("replay"), every_h / 2.0 * costs.n_failures)
    return estimates


def just_in_time(n: int) -> Estimates:
    """Saving after the failure over saving periodically, at the rate where both cost as much."""
    job = facts()
    after_h = STALL_H + 0.5 + STEP_H / 2.0  # what just-in-time takes more
    rate = 2.0 * STALL_H / after_h**2
    every_h = sqrt(2.0 * STALL_H / rate)
    job = replace(job, useful_h=100 * every_h)
    saves = build.periodic_capture(build.REMOTE, every_h, STALL_H, 0.0)
    rules, tiers = (build.back_to_remote(job),), (build.remote_tier(job),)
    periodic = Policy("periodic", rules, tiers, (saves,))
    failures = poisson(job, n, "just-in-time", rate)
    after = costs_of(job, "just-in-time", failures, backstop=job.useful_h)
    before = costs_of(job, periodic, failures)
    return {"just-in-time": ratio_of(after.wall_h - job.useful_h, before.wall_h - job.useful_h)}


def hsdp(n: int) -> Estimates:
    """Effective time of 64 nodes in groups of two, whose absence costs no speed: not given."""
    between_h, n_evenly = 0.3, 1000
    nodes = facts(64, scopes=(NODE,), reschedule=NO_DELAY)

    def costs(minutes: float, useful_h: float, *more: Any) -> CostBreakdown:
        options: Options = {"group": 2, "stall": minutes / 60.0, "speed": 1.0, "copy": 0.0}
        job = replace(nodes, useful_h=useful_h)
        return costs_of(job, "hsdp", *more, **options, backstop=useful_h)

    evenly = [ScopedFailure(k * between_h, (k % 64,), 0, (0.0,)) for k in range(1, n_evenly)]
    estimates, window_h = {}, n_evenly * between_h
    for minutes in (10, 3):
        breakdown = costs(minutes, window_h, given_failures([evenly]), Clock.WALL, window_h)
        estimates[f"hsdp stall {minutes}"] = StudyEstimate(
            float(breakdown.useful_h[0] / breakdown.wall_h[0])
        )
    estimates["hsdp stall 3 published"] = estimates["hsdp stall 3"]
    for clock in (Clock.WALL, Clock.UPTIME):
        failures = poisson(nodes, n, f"hsdp/{clock}", 1 / between_h, until_h=40.0)
        longer = mean_of(costs(10, 6.0, failures, clock).wall_h / 6.0)
        inverse = 1 / longer.mean, 1 / longer.high, 1 / longer.low
        estimates[f"hsdp poisson {clock}"] = StudyEstimate(*inverse)
    return estimates


def spare(n: int) -> Estimates:
    """Failures until a shard has lost all of its three groups, counted, over the formula."""
    n_groups, copies, rng = 200, 3, stream(SEED, 0, "spare")
    counts = []
    for _ in range(n):
        holders = _distinct(rng, n_groups, n_groups, copies)
        fails_as = 1 + rng.permutation(n_groups)  # group -> which failure takes it
        counts.append(float(fails_as[holders].max(axis=1).min()))
    return {"spare mu 3": mean_of(np.array(counts)).times(1.0 / mu(n_groups, copies))}


def mu(n_groups: int, copies: int) -> float:
    """Mean number of failures until a shard is lost (SPARe, recalled): a limit of many groups."""
    return float(gamma(1.0 / copies) / copies * n_groups ** (1.0 - 1.0 / copies))


def _distinct(rng: np.random.Generator, rows: int, below: int, n_each: int) -> Ints:
    """Different numbers in each row, (rows, each)."""
    drawn = rng.integers(0, below, (rows, n_each))
    while True:
        in_order = np.sort(drawn, axis=1)
        again = (in_order[:, 1:] == in_order[:, :-1]).any(axis=1)
        if not again.any():
            return drawn
        drawn[again] = rng.integers(0, below, (int(again.sum()), n_each))


# --------------------------------------------------------------------------- levels

TWO_LEVELS = ((5 / 3600, 300 / 3600), (1 / 5, 1 / 100))  # stalls [h], failures per hour


def levels(n: int) -> Estimates:
    """Two levels at their optimal intervals."""
    stalls_h, rates = TWO_LEVELS
    near_h, far_h = (sqrt(2.0 * stall_h / rate) for stall_h, rate in zip(*TWO_LEVELS, strict=True))
    nth = ceil(far_h / near_h - 0.5)
    scopes = (replace(PROCESS, detect=NO_DELAY), replace(NODE, detect=NO_DELAY))
    job = facts(4, useful_h=12 * far_h, scopes=scopes)
    names = ("memory", build.REMOTE)
    policy = Policy(
        "levels",
        rules=(build.go_back((Stage(StageKind.DETECT),), *names),),
        tiers=(Tier("memory", Medium.HOST, OWN, job.role), build.remote_tier(job)),
        captures=tuple(
            build.periodic_capture(name, far_h / nth * times, stall_h, 0.0)
            for name, times, stall_h in zip(names, (1, nth), stalls_h, strict=True)
        ),
    )
    failures = poisson(job, n, "levels", *rates, until_h=1.5 * job.useful_h)
    wall_h = costs_of(job, policy, failures, Clock.UPTIME).wall_h
    return {"levels simulated": mean_of(wall_h / job.useful_h - 1.0)}


# --------------------------------------------------------------------------- fleets


def goodput(work: Work) -> Estimates:
    """Productive time of the public lab's scenario and of its variants, in percent."""
    replications = f"simulation.replications={work.pick(200, 1_000, 4_000)}"
    cases = {name: [*sets, replications] for name, sets in work.study.cases.items()}
    simulated = simulate_cases(work, "goodput.yaml", cases)
    shares = {name: case.percent("full", "ettr") for name, case in simulated.items()}
    return shares | {f"{name} expected": share for name, share in shares.items()}


GAPS_MIN = {"6 h": 360.0, "3 h": 180.0, "1 h": 60.0, "30 min": 30.0, "10 min": 10.02}
MOST, FEWEST = 30, 15  # nodes of the artifact's course
BATCH = 8192
Lost = tuple[ScopedFailure, ...]  # what a job loses
VARUNA_STALL_S = 15.8


def elastic(table: Path, trace: Path) -> Estimates:
    """Samples per second of Oobleck and Varuna on the courses of their artifact."""
    rows = pd.read_csv(table).nlargest(MOST - FEWEST + 1, "nodes")
    came = pd.read_csv(trace, names=["ms", "what", "name"])
    at_h = [ms / 3.6e6 for ms in came["ms"].tolist()]

    def per_s(name: str, window_h: float, lost: Lost, *more: float, **of: Any) -> StudyEstimate:
        speeds = (*rows[f"{name}_samples_per_s"].tolist(), *more)
        job = _elastic_job(MOST, window_h, BATCH / speeds[0] / 3600.0)
        failures = given_failures((lost,))
        costs = costs_of(job, name, failures, Clock.WALL, window_h, throughput=speeds, **of)
        return StudyEstimate(float(costs.useful_h[0] * speeds[0] / costs.wall_h[0]))

    began_h, lost = absences(zip(at_h, came["what"] == "add", came["name"], strict=True), MOST, 1)
    of_fewest = rows["oobleck_samples_per_s"].iloc[-1]  # with still fewer, as on the fewest
    more = [float(of_fewest)] * (FEWEST - 1)
    estimates: Estimates = {"oobleck gcp": per_s("oobleck", at_h[-1] - began_h, lost, *more)}
    restarts = (rows["varuna_restart_s"].iloc[1:] - VARUNA_STALL_S) / 3600.0
    for name, options in (("oobleck", {}), ("varuna", {"restarts": tuple(restarts.tolist())})):
        for gap, minutes in GAPS_MIN.items():  # one node leaves every gap; it ends as the 15th does
            gap_h, n = minutes / 60.0, MOST - FEWEST
            leave = tuple(ScopedFailure((k + 1) * gap_h, (k,), 0, (inf,)) for k in range(n - 1))
            estimates[f"{name} {gap}"] = per_s(name, n * gap_h, leave, **options)
    return estimates


def _elastic_job(n_nodes: int, useful_h: float, step_h: float, **changes: Any) -> JobProfile:
    """A job with immediate detection, whose nodes start work on arrival."""
    options: Options = {"save_stall": Constant(VARUNA_STALL_S / 3600.0)} | changes
    return facts(
        n_nodes, useful_h=useful_h, scopes=(replace(NODE, detect=NO_DELAY),), reschedule=NO_DELAY,
        load=NO_DELAY, save_background=None, step_h=step_h,
        cluster=Cluster((Role("node", n_nodes, Holds.SHARD),), n_spares=0), **options,
    )  # fmt: skip


# --------------------------------------------------------------------------- spot nodes

READY_H = 45.0 / 3600.0  # from an instance's coming until it works, in both simulators
Instances = Iterable[tuple[float, bool, Any]]  # hour, whether it comes (else it goes), and name


def absences(instances: Instances, n_nodes: int, n_needed: int) -> tuple[float, Lost]:
    """First time with `n_needed` working instances, and the absences of a job that starts then.

    Nodes that have not arrived yet count as lost at its start.
    """
    absent = dict.fromkeys(range(n_nodes), 0.0)  # slots; the first to be lost gets the first node
    present: dict[Any, tuple[float, int, float]] = {}
    gaps = []  # lost at, slot, back at
    for at_h, comes, name in instances:
        if comes:
            _, slot = min((lost_h, slot) for slot, lost_h in absent.items())
            present[name] = absent.pop(slot), slot, at_h + READY_H
        else:
            lost_h, slot, back_h = present.pop(name)
            if back_h < at_h:  # else it never worked
                gaps.append((lost_h, slot, back_h))
                lost_h = at_h
            absent[slot] = lost_h
    gaps += [*present.values(), *((lost_h, slot, inf) for slot, lost_h in absent.items())]
    began_h = sorted(back_h for lost_h, _, back_h in gaps if lost_h == 0.0)[n_needed - 1]
    lost: dict[float, dict[int, float]] = {}
    for lost_h, slot, back_h in sorted(gaps, key=lambda gap: gap[1]):
        if back_h > began_h:
            at_h = max(0.0, lost_h - began_h)
            lost.setdefault(at_h, {})[slot] = back_h - began_h - at_h
    return began_h, tuple(
        ScopedFailure(at_h, tuple(slots), 0, tuple(slots.values()))
        for at_h, slots in sorted(lost.items())
    )


def bamboo(n: int) -> Estimates:
    """Samples per second of Bamboo on the spot market of its simulator, by its code (published).

    48 nodes are pipelines of 12 stages; while one node computes two, a step takes half as much
    again. What differs here stands in the study's notes.
    """
    steps, batch = 22_194, 264
    step_s = (1.45, 1.5 * 1.45, *[1.805] * 11, *[2.39] * 12, *[4.31] * 12)  # by nodes missing
    step_h = step_s[0] / 3600.0
    job = _elastic_job(48, steps * step_s[0] / 3600.0, step_h, save_stall=NO_DELAY)
    speeds = tuple(batch / s for s in step_s)
    options: Options = {"throughput": speeds, "reconfigure": 20.0 / 3600.0, "backstop": 0.1}
    estimates = {}
    for p in (0.01, 0.05, 0.1, 0.25, 0.5):  # taken per hour
        rng = stream(SEED, 0, f"bamboo/{p}")
        courses = tuple(absences(market(p, 48, rng), 48, 12)[1] for _ in range(n))
        costs = costs_of(job, "bamboo", given_failures(courses), Clock.WALL, **options)
        estimates[f"bamboo {p:g}"] = mean_of(steps * batch / 3600.0 / costs.wall_h)
    return estimates


def market(p: float, n_nodes: int, rng: np.random.Generator) -> Iterator[tuple[float, bool, int]]:
    """Spot instances of Bamboo's simulator, for three days.

    In each hour each of them goes with a chance p; each that is missing, or goes, comes with a
    chance that is drawn for each hour of the day; both at any instant of the hour.
    """
    p_comes = rng.random(24)
    n_seen = int(rng.binomial(n_nodes, p_comes[0]))
    present = dict.fromkeys(range(n_seen))
    yield from ((0.0, True, name) for name in present)
    for hour in range(72):
        going = [(hour + rng.random(), False, name) for name in present if rng.random() < p]
        n_asked = rng.binomial(n_nodes - len(present) + len(going), p_comes[hour % 24])
        events = [*going, *((hour + rng.random(), True, -1) for _ in range(n_asked))]
        heapify(events)
        while events:
            at_h, comes, name = heappop(events)
            if not comes:
                del present[name]
            elif len(present) == n_nodes:
                continue
            else:
                name, n_seen = n_seen, n_seen + 1
                present[name] = None
                goes_h = hour + rng.random()
                if goes_h > at_h and rng.random() < p:
                    heappush(events, (goes_h, False, name))
            yield at_h, comes, name


# --------------------------------------------------------------------------- the study

PARTS_OF_SYSTEMS: dict[Callable[[int], Estimates], tuple[int, int, int]] = {
    by_rule: (1, 1, 1),
    gemini_survives: (4_000, 20_000, 100_000),
    gemini_wasted: (2_000, 10_000, 50_000),
    pccheck: (500, 2_000, 8_000),
    ecrec: (4_000, 20_000, 100_000),
    moc: (2_000, 10_000, 50_000),
    swift: (2_000, 10_000, 50_000),
    just_in_time: (2_000, 10_000, 50_000),
    hsdp: (1_000, 5_000, 20_000),
    spare: (1_000, 4_000, 20_000),
    levels: (2_000, 30_000, 100_000),
    bamboo: (40, 200, 1000),
}
"""The parts, with their replications at quick, full and large effort."""


def systems(work: Work) -> Summary:
    """The targets, judged; those of the artifact's table where the user has it."""
    parts = {
        part.__name__: partial(_plain, part, work.pick(*sizes))
        for part, sizes in PARTS_OF_SYSTEMS.items()
    }
    files = work.study.data_files()
    if files:
        parts["elastic"] = partial(_plain, elastic, *files.values())
    estimates = goodput(work)
    for outcome in work.compute(parts).values():
        estimates |= {name: StudyEstimate(*ends) for name, ends in outcome.items()}
    left_out = (
        f"Oobleck and Varuna are left out: {DATA} names no folder with "
        f"{' and '.join(work.study.data.values())}, of Oobleck's public artifact."
    )
    return work.study.summary(
        {
            name: without_noise(target, estimates[name])
            for name, target in work.study.claims.items()
            if name in estimates
        },
        {
            "SPARe: availability at 600,000 H100 (secondary), without a verdict: step time, "
            "failure target and interval rule are missing.": (
                {
                    "groups": str(n),
                    "replication, r = 3": f"{replicated} %",
                    "SPARe": f"{by_spare} %",
                    "failures until a loss, r = 3 (derived)": f"{mu(n, 3):.1f}",
                }
                for n, replicated, by_spare in ((200, 61.7, 87.0), (600, 79.9, 93.9),
                                                (1000, 84.4, 96.5))
            )
        },
        left_out="" if files else left_out,
    )  # fmt: skip


def _plain(part: Callable[..., Estimates], *of: Any) -> dict[str, tuple[float, float, float]]:
    """The estimates of a part in JSON form."""
    return {name: (estimate.mean, *estimate.ends) for name, estimate in part(*of).items()}


def without_noise(target: Target, estimate: StudyEstimate) -> Ours:
    """In five digits, where the interval has no width."""
    low, high = estimate.ends
    if high - low > ROUNDING * max(1.0, abs(estimate.mean)):
        return estimate
    value = 0.0 if abs(estimate.mean) < ROUNDING else estimate.mean
    return Tested(target.met_by(estimate), f"{value:.5g} {target.unit}".rstrip(), estimate)
