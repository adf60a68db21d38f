"""GEMINI: small cases by hand; what survives, and what is wasted, is in the study `systems`."""

from __future__ import annotations

from math import inf

import pytest

from cprsim.failures.distributions import Constant
from cprsim.recovery.policy import Policy, Reach, Scope
from cprsim.recovery.system import JobFacts
from tests.recovery.systems import by_hand
from tests.recovery.systems.by_hand import approx

PROCESS, NODE, EVERYTHING = range(3)
SCOPES = (
    Scope("process", Reach.PROCESS, Constant(0.0), needs_node=False),
    Scope("node", Reach.NODE, Constant(0.25)),
    Scope("all", Reach.ALL, Constant(0.0)),
)
FETCH_H, LOAD_H = 0.0625, 2.0


def facts(n_nodes: int = 4, **changes: object) -> JobFacts:
    """A job of 16 h in steps of half an hour; a shard takes 1/16 h from node to node."""
    own = {
        "scopes": SCOPES, "mtbf_h": inf, "save_stall": Constant(0.25), "save_background": None,
        "step_h": 0.5, "node_bytes_per_h": 1.0 / FETCH_H,
        "remote_bytes_per_h": 4.0 * n_nodes,  # 1/4 h for all
    }  # fmt: skip
    return by_hand.facts(n_nodes, **{**own, **changes})


def planned(job: JobFacts, **options: object) -> Policy:
    return by_hand.planned("gemini", job, **options)


def failure(at_h: float, *slots: int, scope: int = NODE) -> tuple[float, tuple[int, ...], int]:
    return at_h, slots, scope


def hours(
    job: JobFacts, *failures: tuple[float, tuple[int, ...], int], **options: object
) -> dict[str, object]:
    """Parts of one replication that took any time."""
    found = by_hand.spent(planned(job, **options), *failures, job=job, scopes=SCOPES)
    return {part: approx(spent_h) for part, spent_h in found.items()}


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
