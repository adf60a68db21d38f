"""What systems make of a job without any failure: intervals, times of saves, nodes and memory.

Also the rules that papers give: CheckFreq's, Check-N-Run's, ReCycle's, MoC's turns of experts.
"""

from dataclasses import replace
from itertools import combinations
from math import comb, exp, inf, sqrt
from typing import Any

import numpy as np
import pytest

from cprsim.commands.reproduce.systems import expert_staleness, poisson, portion_of_lost_tokens
from cprsim.job.distributions import Constant
from cprsim.job.policy import Reach, Scope
from cprsim.job.records import Clock, Storage
from cprsim.recovery.systems.behind import bits_for, checkfreq_steps, mean_fractions
from cprsim.recovery.systems.elastic import recycled_speeds
from cprsim.recovery.systems.memory import standbys
from cprsim.simulation.job import SimulatedJob
from tests.recovery.lives import approx
from tests.recovery.systems.by_hand import (
    COPY_H,
    DETECT_H,
    LOAD_H,
    PERSIST_H,
    RESCHEDULE_H,
    SCOPES,
    SNAPSHOT_H,
    STEP_H,
    facts,
    planned,
    spent,
)
from tests.simulators import run_many, z_score

ANNOUNCED = tuple(replace(scope, notice_h=0.5) for scope in SCOPES)
NODES = tuple(replace(scope, notice_h=0.5 * (scope.name == "node")) for scope in SCOPES)
Q = (DETECT_H + RESCHEDULE_H) / (64.0 * 8)  # of the time that a node is down
RATE = 1 / 64.0 / 5  # of each of five scopes [1/h]
BOTH, THREE = RATE * 2 * Q, RATE * comb(3, 2) * Q**2
DISK_H, PARTNER_H = 0.125, 0.125 + COPY_H
DISK = {"disk": 8.0}
LEVELS = DISK | {"data": 2, "parity": 2}
# of the failures of 5 servers each of 4 others is down for 1.75 h of each 5000 h
BEYOND = 1e-3 * 4 * (DETECT_H + RESCHEDULE_H + 4 * COPY_H) / 5000.0
NODE = {"scopes": (Scope("node", Reach.NODE, Constant(DETECT_H)),), "mtbf_h": 1000.0}
SERVERS = NODE | {"n_nodes": 5, "useful_h": 1e6, "replicas": 1, "save_background": None}
GROUPS = {"useful_h": 1e6, "mtbf_h": 1000.0, "shares": (0.0, 0.0, 1.0, 0.0, 0.0)}
MOC = {"experts": 4, "saved_each": 4}
COPIES = {"step_h": 0.5, "node_bytes_per_h": 16.0, "n_nodes": 4}  # a shard takes 1/16 h
LONG = {"useful_h": 1e6}
PLANS: list[tuple[str, dict[str, Any], dict[str, Any], str, float | tuple[float, ...]]] = [
    # options, changes of the job, what of the policy: of a capture by number, or the tax
    ("pccheck", {"in_flight": 4}, {}, "every 0", (SNAPSHOT_H + PERSIST_H) / 4),  # as there is room
    # one copy of half the state takes the storage .5 h: four at a time take 2 h each
    ("pccheck", {"in_flight": 4, "every": 0.25},
     {"replicas": 2, "storage": Storage(8.0, shard_bytes=1.0)}, "takes 0", (0.0, 2.0)),
    ("checkfreq", {}, {}, "every 0", 21 * STEP_H),  # 9 steps written; .0625 in 19 is 5.3 %
    # of .125 h of snapshot a step hides half; the rest and the copy of .25 h take 5 steps
    ("byterobust", {}, {"save_background": Constant(SNAPSHOT_H)}, "every 0", 5 * STEP_H),
    ("gemini", {}, {}, "every 0", 4 * STEP_H),
    ("gemini", {}, {}, "every 1", 3.0),  # published
    ("swift", {"replay_speed": 4.0}, LONG, "every 0", sqrt(2 * SNAPSHOT_H * 4 * 64.0)),
    ("parcae", {}, LONG | {"scopes": NODES}, "every 0", sqrt(2 * SNAPSHOT_H * 64 * 5 / 4)),
    ("scr", DISK, LONG, "every 0", sqrt(2 * DISK_H / (2 * RATE))),  # process and restart
    # a code takes the racks and what is down at once, but for three of four
    ("fti", LEVELS, {"useful_h": 1e9}, "every 2", sqrt(2 * PARTNER_H / (RATE + BOTH - THREE))),
    ("ecrec", {}, SERVERS, "every 0", sqrt(2 * SNAPSHOT_H / BEYOND)),
    ("hsdp", {"group": 4, "stall": 0.0625}, GROUPS, "every 0",  # the other group of 4 is out
     sqrt(2 * SNAPSHOT_H / (1e-3 * 4 * (0.0625 + RESCHEDULE_H + COPY_H) / 8000.0))),
    ("moc", MOC, {"mtbf_h": 6.0}, "every 0", sqrt(2 * (SNAPSHOT_H - STEP_H) * 6.0)),
    # of 8 replicas one is written
    ("paracckpt", {"other_paths": 8.0}, {}, "takes 0", (SNAPSHOT_H, 1.0 / (8.0 + 8.0))),
    ("fti", LEVELS | {"encoding": 2.0}, {"useful_h": 1e9}, "takes 2", (PARTNER_H + 0.5, 0.0)),
    ("gemini", {}, COPIES, "takes 0", (0.0, 0.0625)),
    ("gemini", {"idle": 0.03125, "every": 0.5}, COPIES, "takes 0", (0.03125, 0.5)),  # B/r - h
    ("moc", MOC | {"saved_each": 1, "snapshot": 2.0, "window": 0.5}, {}, "takes 0",
     (2.0 * 0.355 - 0.5, 0.5)),  # .14 + .86/4 of the bytes
    # of nodes and of memory
    ("checkmate", {"shadow_nodes": 3}, {}, "tax", (3.0, 0.0)),
    ("gemini", {}, {}, "tax", (0.0, 2.0)),
    # three of five scopes take nodes: 2.4 per hour, 1.2 while one is replaced
    ("byterobust", {"every": 4.0}, {"mtbf_h": 0.25}, "tax", (4.0, 2.0)),
    ("trainmover", {}, {"mtbf_h": 0.75}, "tax", (2.0, 0.0)),  # 0.4 are being replaced
]  # fmt: skip


@pytest.mark.parametrize(("system", "options", "changes", "quantity", "expected"), PLANS)
def test_a_plan(
    system: str, options: dict[str, Any], changes: dict[str, Any], quantity: str,
    expected: float | tuple[float, ...],
) -> None:  # fmt: skip
    policy = planned(system, facts(**changes), **options)
    name, _, number = quantity.rpartition(" ")
    capture = policy.captures[int(number)] if name else None
    planned_value: Any = policy.tax.nodes, policy.tax.memory
    if name == "takes":
        costs = capture.stall, capture.background
        planned_value = tuple(cost.mean_h if cost else 0.0 for cost in costs)
    elif capture is not None:
        planned_value = capture.every_h if name == "every" else capture.every_nth
    assert planned_value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_what_no_failure_needs_is_not_saved() -> None:
    policy = planned("scr", facts(scopes=SCOPES[-1:]), disk=8.0)  # of all nodes
    assert [tier.name for tier in policy.tiers] == ["remote"]
    (on_notice,) = planned("on-notice", facts(scopes=ANNOUNCED), every=inf).captures
    assert on_notice.on_notice


def test_a_notice_as_long_as_the_state_takes_to_a_standby_is_enough() -> None:
    scopes = tuple(replace(scope, notice_h=COPY_H * (scope.name == "node")) for scope in SCOPES)
    assert len(planned("trainmover", facts(scopes=scopes)).rules) == 2
    assert len(planned("trainmover").rules) == 1


# --------------------------------------------------------------------------- backstops


def test_saves_besides_are_for_the_time_until_the_slowest_scope_is_noticed() -> None:
    quick, slow = (Scope(name, Reach.NODE, Constant(h)) for name, h in (("a", 0.5), ("b", 4.0)))
    every_h = [
        planned("ecrec", facts(**SERVERS | {"scopes": scopes})).captures[0].every_h
        for scopes in ((quick,), (slow,), (quick, slow))
    ]
    assert every_h[0] > every_h[1] == every_h[2]


def test_losses_beyond_the_parity_are_as_frequent_as_the_backstop_counts_on() -> None:
    n_replications = 40_000
    fact = facts(**SERVERS | {"useful_h": 1000.0, "mtbf_h": 250.0})
    policy = planned("ecrec", fact, backstop=100.0)
    job = SimulatedJob(fact.useful_h, fact.cluster, Clock.WALL, fact.scopes, policy)
    failures = poisson(job, n_replications, "ecrec", 1.0 / 250.0, until_h=2000.0)
    costs, _ = run_many(job, failures)
    beyond = costs.hours_of("load") / LOAD_H
    share = 4.0 / 5.0 * (DETECT_H + RESCHEDULE_H + 4 * COPY_H) / 250.0  # first order
    theory = costs.n_failures.mean() * share
    assert abs(z_score(beyond, theory)) <= 4.0


# --------------------------------------------------------------------------- rules of papers


@pytest.mark.parametrize(
    ("step_h", "save_h", "stall_h", "steps"),
    [
        (1.0, 10.0, 0.0, 10),
        (1.0, 10.5, 0.5, 10),  # .5 in 10 steps is 5 %, the budget
        (1.0, 10.5, 0.6, 12),  # 10 steps; .6 in 10 is 6 %, in 12 it is 5 %
        (1.0, 3.0, 1.0, 20),  # 2 steps; 1 in 2, 4, ... 18 is more than 5 %
        (1.0, 0.5, 0.5, 11),  # 1 step at least; .5 in 9 is 5.6 %
        (4.0, 10.0, 0.1, 3),
    ],
)
def test_checkfreq_s_rule(step_h: float, save_h: float, stall_h: float, steps: int) -> None:
    assert checkfreq_steps(step_h, save_h, stall_h) == steps


SIZES = [0.26 * i**0.28 for i in range(1, 9)]  # the 8 increments between two whole saves
WRITTEN, READ = (1 + sum(SIZES)) / 9, 1 + sum(SIZES) / 9


@pytest.mark.parametrize(
    ("chain", "first", "growth", "n_saves", "written", "read"),
    [
        ("intermittent", 0.26, 0.28, 1000, WRITTEN, READ),
        ("intermittent", 0.26, 0.28, 3, (1 + sum(SIZES[:2])) / 3, 1 + sum(SIZES[:2]) / 3),  # short
        ("one-shot", 0.26, 0.28, 1, 1.0, 1.0),
        ("one-shot", 0.5, 1.0, 4, (1 + 0.5 + 1 + 1) / 4, 1 + 2.5 / 4),  # .5, then whole
        ("consecutive", 0.25, 0.0, 5, (1 + 4 * 0.25) / 5, 1 + 0.25 * (0 + 1 + 2 + 3 + 4) / 5),
    ],
)
def test_what_increments_write_and_a_restore_reads(
    chain: str, first: float, growth: float, n_saves: int, written: float, read: float
) -> None:
    assert mean_fractions(chain, first, growth, n_saves) == approx((written, read))


def test_check_n_run_writes_and_reads_by_its_rule_and_its_bits() -> None:
    assert pytest.approx(0.4515, abs=5e-5) == WRITTEN
    assert [bits_for(n) for n in (0, 1, 2, 3, 20, 21)] == [2, 2, 3, 3, 4, 8]
    policy = planned("check-n-run", bits=8)
    assert policy.captures[0].background.mean_h == approx(WRITTEN * 8 / 32 * PERSIST_H)
    hours = spent(policy, "0.96 node 0")
    assert hours["load"] == approx(READ * 8 / 32 * LOAD_H)
    few, many = (planned("check-n-run", facts(mtbf_h=m)).captures[0] for m in (16.0, 0.5))
    assert many.background.mean_h == approx(4 * few.background.mean_h)  # 8 bits and 2


@pytest.mark.parametrize(("d", "stages"), [(2, 3), (3, 2), (4, 2)])
def test_recycle_s_speed_is_that_of_the_slowest_stage_over_all_sets(d: int, stages: int) -> None:
    nodes = [(pipeline, stage) for pipeline in range(d) for stage in range(stages)]
    speeds = recycled_speeds(d, stages)
    assert len(speeds) == d * stages + 1
    for missing, speed in enumerate(speeds):
        counted = [
            1 - max(sum(stage == s for _, s in lost) for stage in range(stages)) / d
            for lost in combinations(nodes, missing)
        ]
        assert speed == approx(sum(counted) / len(counted))


@pytest.mark.parametrize(
    ("n_lost", "p_enough", "n"),
    [
        (0.0, 0.99, 0), (0.01, 0.99, 0), (0.02, 0.99, 1), (1.0, 0.99, 4), (1.0, 0.5, 1),
        (1.0, exp(-1.0), 0),  # enough with this very probability
    ],
)  # fmt: skip
def test_so_many_standbys_are_enough(n_lost: float, p_enough: float, n: int) -> None:
    # by the table of the Poisson distribution: P(X <= 3) is .981 and P(X <= 4) .996 for a mean of 1
    assert standbys(n_lost, p_enough) == n


@pytest.mark.parametrize(("n_experts", "n_saved_each"), [(16, 1), (16, 4), (8, 8), (7, 3), (10, 4)])
def test_staleness_is_that_of_experts_saved_in_turn(n_experts: int, n_saved_each: int) -> None:
    queue, saved_in = list(range(n_experts)), [0] * n_experts
    for number in range(3 * n_experts):
        if number:
            turn, queue = queue[:n_saved_each], queue[n_saved_each:] + queue[:n_saved_each]
            for expert in turn:
                saved_in[expert] = number
        stale = [number - saved for saved in saved_in]
        assert expert_staleness(n_experts, n_saved_each, number).tolist() == stale
        if 0 not in saved_in and n_experts % n_saved_each == 0:
            assert np.mean(stale) == (n_experts / n_saved_each - 1) / 2  # half of a turn but one


def test_lost_tokens_are_staleness_over_the_work_of_the_job() -> None:
    # 4 experts, one each: after save 3 they are 0, 1, 2 saves old, and one has none (3 of 3)
    assert portion_of_lost_tokens(4, 1, [3], 2.0, 100.0) == pytest.approx((0 + 1 + 2 + 3) / 4 / 50)
    assert portion_of_lost_tokens(4, 1, [9, 20], 2.0, 100.0) == pytest.approx(2 * 1.5 / 50)
    assert portion_of_lost_tokens(4, 4, [9, 20], 2.0, 100.0) == 0.0
