"""ECRec: small cases by hand, and losses beyond the parity."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import pytest

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Holds, Role
from cprsim.recovery.policy import Policy, Reach, Scope
from cprsim.recovery.system import JobFacts
from cprsim.simulate.blocks import BlockDraws, run_block
from cprsim.simulate.job import SimulatedJob
from tests.recovery.poisson import PoissonFailures
from tests.recovery.systems import by_hand
from tests.recovery.systems.by_hand import DETECT_H, LOAD_H, RESCHEDULE_H, approx

REBUILD_H = 1.0  # 4 shards of 1/4 h
V = 0.875
NODE = (Scope("node", Reach.NODE, Constant(DETECT_H)),)


def facts(n_servers: int = 5, **changes: object) -> JobFacts:
    """The paper's servers are 5 (published)."""
    rare = {"scopes": NODE, "mtbf_h": 1000.0, "save_background": None, "replicas": 1}
    return by_hand.facts(n_servers, **{**rare, **changes})


def planned(job: JobFacts, **options: object) -> Policy:
    return by_hand.planned("ecrec", job, **options)


def hours(job: JobFacts, *struck: tuple[float, int], **options: object) -> dict[str, object]:
    """Parts of one replication that took any time, for failures of the wall clock."""
    policy = planned(job, **{"backstop": 4.0, "speed_meanwhile": V} | options)
    found = by_hand.spent(policy, *((at, (slot,), 0) for at, slot in struck), job=job, scopes=NODE)
    return {part: approx(spent_h) for part, spent_h in found.items()}


# --------------------------------------------------------------------------- the mechanism

SAVES = {"save": 4 * 0.125}
REPLACED = {"detect": DETECT_H, "reschedule": RESCHEDULE_H}
REBUILT = {"degraded": REBUILD_H * (1.0 - V)}


def test_without_failures_it_costs_the_parity_and_the_saves() -> None:
    assert hours(facts(), tax=0.0625) == SAVES | {"tax": 1.0}
    assert hours(facts(), backstop=16.0) == {}


def test_nobody_goes_back_when_a_server_is_lost() -> None:
    assert hours(facts(), (5.3, 2)) == SAVES | REPLACED | REBUILT


def test_a_rebuild_reads_k_shards_over_a_link_unless_it_is_given() -> None:
    assert hours(facts(4), (5.3, 2), data=3)["degraded"] == approx(0.75 * (1.0 - V))
    assert hours(facts(), (5.3, 2), rebuild=0.5)["degraded"] == approx(0.5 * (1.0 - V))
    assert planned(facts(node_bytes_per_h=None), rebuild=0.5).rules[0].stages[-1].cost == Constant(
        0.5
    )


def test_a_slow_encoding_takes_longer_than_the_link() -> None:
    by_link = planned(facts()).rules[0].stages[-1].cost.mean_h
    state_bytes, data = facts().state_bytes, 4
    slow = data * state_bytes / (4.0 * by_link)  # bytes per hour
    assert planned(facts(), encoding=slow).rules[0].stages[-1].cost.mean_h == approx(4 * by_link)
    assert planned(facts(), encoding=1e12).rules[0].stages[-1].cost.mean_h == approx(by_link)


def test_two_losses_in_a_stripe_before_the_rebuild_ends_go_back_to_the_last_save() -> None:
    spent = hours(facts(), (5.3, 2), (6.8, 0))  # progress 5.175 + 0.75 * V
    assert spent["lost"] == approx(5.175 + 0.75 * V - 4.0)
    assert spent["load"] == approx(LOAD_H)


def test_two_losses_while_the_first_is_not_yet_replaced_do_so_too() -> None:
    assert hours(facts(), (5.3, 2), (5.6, 0))["lost"] == approx(5.175 - 4.0)


def test_a_loss_after_the_rebuild_finds_the_parity_whole_again() -> None:
    spent = hours(facts(), (5.3, 2), (7.1, 0))  # rebuilt at 7.05
    assert spent == SAVES | {part: approx(2.0 * h) for part, h in (REPLACED | REBUILT).items()}


def test_losses_in_two_stripes_are_rebuilt_side_by_side() -> None:
    after = hours(facts(10), (5.3, 2), (7.1, 7))  # the first is rebuilt at 7.05
    assert after == SAVES | {part: approx(2.0 * h) for part, h in (REPLACED | REBUILT).items()}
    during = hours(facts(10), (5.3, 2), (6.8, 7))  # it stops all for the last 1/4 h of that
    assert during["degraded"] == approx((REBUILD_H - 0.25 + REBUILD_H) * (1.0 - V))
    overlapping = hours(facts(10), (5.3, 2), (5.4, 7))  # blocked until 6.15, rebuilt until 7.15
    blocked = {"detect": 0.35, "reschedule": 0.5}
    assert overlapping == SAVES | blocked | {"degraded": approx(1.0 * (1.0 - V))}


def test_a_second_parity_outlives_two_losses() -> None:
    assert "lost" not in hours(facts(6), (5.3, 2), (6.8, 0), parity=2)
    assert "lost" in hours(facts(6), (5.3, 2), (6.8, 0), data=5)


def test_parity_takes_a_share_of_memory_of_one_in_k() -> None:
    assert planned(facts()).tax.memory == 0.25  # published
    assert planned(facts(6), parity=2).tax.memory == 0.5


# --------------------------------------------------------------------------- the backstop


def test_the_backstop_is_young_s_interval_for_the_losses_beyond_the_parity() -> None:
    def every_h(job: JobFacts) -> float | None:
        return planned(job).captures[0].every_h

    job = facts(useful_h=1e6)
    # of the failures of 5 servers, each of 4 others is down for 1.75 h of each 5000 h
    beyond_per_h = 1e-3 * 4 * 1.75 / 5000.0
    assert every_h(job) == pytest.approx(sqrt(2.0 * 0.125 / beyond_per_h))
    with_workers = replace(
        job,
        cluster=Cluster((Role("worker", 5, Holds.SHARD), Role("others", 15, Holds.REPLICA))),
    )
    assert every_h(with_workers) == pytest.approx(4.0 * sqrt(2.0 * 0.125 / beyond_per_h))
    assert every_h(facts()) == 16.0  # longer than the job: no saves
    assert every_h(facts(mtbf_h=inf)) == 16.0
    stalls_nobody = {"save_stall": Constant(0.0), "mtbf_h": 10.0}
    assert every_h(facts(**stalls_nobody, save_background=Constant(0.5))) == 0.5
    with pytest.raises(ParameterError, match="give `backstop`"):
        planned(facts(**stalls_nobody))


N_REPLICATIONS = 40_000


def test_losses_beyond_the_parity_are_as_frequent_as_the_backstop_counts_on() -> None:
    given = facts(useful_h=1000.0, mtbf_h=250.0)
    policy = planned(given, backstop=100.0)
    job = SimulatedJob(given.useful_h, given.cluster, Clock.WALL, NODE, policy)
    n = range(N_REPLICATIONS)
    failures = PoissonFailures.draw(job, (1.0 / 250.0,), len(n), until_h=2000.0, seed=11)
    costs = run_block(job, failures, BlockDraws(job, 0, 0, len(n), n), n).costs
    beyond = costs.hours_of("load") / LOAD_H
    down_h = DETECT_H + RESCHEDULE_H + REBUILD_H
    share = 4.0 / 5.0 * down_h / 250.0  # first order
    theory = costs.n_failures.mean() * share
    standard_error = float(beyond.std(ddof=1)) / sqrt(N_REPLICATIONS)
    assert abs(beyond.mean() - theory) <= 4.0 * standard_error, (
        f"{beyond.mean():.5f} simulated, {theory:.5f} counted, standard error {standard_error:.2g}"
    )


def test_saves_besides_are_for_the_time_until_the_slowest_scope_is_noticed() -> None:
    quick, slow = (Scope(name, Reach.NODE, Constant(h)) for name, h in (("a", 0.5), ("b", 4.0)))
    every_h = [
        planned(facts(scopes=scopes, useful_h=1e6)).captures[0].every_h
        for scopes in ((quick,), (slow,), (quick, slow))
    ]
    assert every_h[0] > every_h[1] == every_h[2]
