"""Failure schedules by hand and by hypothesis: the compiled loop gives SimPy's rows or leaves them.

Times are whole sixty-fourths of an hour, so that all add them without rounding and ties
are ties.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cprsim.failures.block import BlockFailures
from cprsim.failures.sources import FailureSource, trace_of
from cprsim.records import Clock, Cluster, Failure, FailureTrace, OnFailure
from cprsim.simulate.blocks import Rows
from tests.simulate.agreeing import assert_rows_agree, assert_same, both_ways
from tests.simulate.building import (
    FULL,
    NONE,
    PARTIAL,
    JobSetting,
    failures,
    policy,
    run,
    setting,
)
from tests.simulate.folding import cost_breakdown, shard_loss

N_EMB_PS, N_TRAINERS = 3, 2


class Listed:
    """One replication's failures in two chunks, as a source."""

    clock = Clock.WALL  # does not matter here

    def __init__(self, strikes: list[Failure], border_h: float = inf) -> None:
        self._chunks = [
            self._chunk([f for f in strikes if f.at_h < border_h], border_h),
            self._chunk([f for f in strikes if f.at_h >= border_h], inf),
        ]

    def _chunk(self, strikes: list[Failure], until_h: float) -> FailureTrace:
        sizes = [len(strike.slots) for strike in strikes]
        return trace_of(
            until_h,
            1,
            np.zeros(sum(sizes), dtype=np.int64),
            np.repeat([strike.at_h for strike in strikes], sizes).astype(float),
            np.array([slot for strike in strikes for slot in strike.slots], dtype=np.int64),
            np.zeros(sum(sizes)),
        )

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        return 1

    def draw(self, *what: object) -> Iterator[FailureTrace]:
        return iter(self._chunks)


def check(
    job: JobSetting, how: OnFailure, interval_h: float, strikes: list[Failure], border_h: float
) -> Rows:
    """The rows of the compiled loop, as good as SimPy's and as the event log."""
    plan = policy(how, interval_h)
    source = cast(FailureSource, Listed(strikes, border_h))
    failing = BlockFailures(source, job.cluster, 1, 0, job.useful_h)
    fast, simpy = both_ways(job, plan, failing, 1)
    log = run(job, plan, strikes)
    costs, losses = cost_breakdown(log, job.useful_h), shard_loss(log, N_EMB_PS)
    for rows in (fast, simpy):
        assert_rows_agree(rows, simpy)
        assert_same(rows.costs, costs)
        assert_same(rows.losses, losses)
    return fast


def sixty_fourths(most_h: float, least_h: float = 0.0) -> st.SearchStrategy[float]:
    return st.integers(int(least_h * 64), int(most_h * 64)).map(lambda n: n / 64)


instants = st.lists(
    st.tuples(
        sixty_fourths(30.0, 1 / 64),
        st.sets(st.integers(0, N_EMB_PS + N_TRAINERS - 1), min_size=1),
    ),
    max_size=8,
    unique_by=lambda strike: strike[0],
).map(sorted)


@st.composite
def jobs(draw: st.DrawFn) -> JobSetting:
    return setting(
        10.0,
        clock=draw(st.sampled_from(Clock)),
        n_emb_ps=N_EMB_PS,
        n_trainers=draw(st.sampled_from([0, N_TRAINERS])),
        save_h=draw(sixty_fourths(1.5)),
        load_h=draw(sixty_fourths(2.0)),
        detect_h=draw(sixty_fourths(1.0)),
        reschedule_h=draw(sixty_fourths(2.0)),
    )


@hypothesis_settings(max_examples=300)
@given(
    jobs(),
    st.sampled_from([OnFailure.RESTART, OnFailure.ROLL_BACK, OnFailure.RELOAD]),
    st.sampled_from([0.75, 1.0, 2.5, 3.25, 10.0, inf]),
    instants,
    st.sampled_from([4.0, 10.0, inf]),
)
def test_any_schedule(
    job: JobSetting,
    how: OnFailure,
    interval_h: float,
    when: list[tuple[float, set[int]]],
    border_h: float,
) -> None:
    n_nodes = job.cluster.n_nodes
    strikes = [(at_h, {slot % n_nodes for slot in slots}) for at_h, slots in when]
    check(job, how, interval_h, failures(*strikes), border_h)


def test_a_second_server_fails_while_the_first_recovers() -> None:
    job = setting(10.0, n_emb_ps=3, save_h=0.25, load_h=0.5, detect_h=0.25, reschedule_h=0.5)
    ran = check(job, PARTIAL, 4.0, failures((3.0, [0]), (3.765625, [1]), (9.0, [1])), inf)
    assert ran.costs.hours_of("detect").tolist() == [0.25 * 3]
    assert ran.losses.slot.tolist() == [0, 1, 1]
    assert ran.losses.since_save_h.tolist() == [3.0, 3.0, 2.734375]


def test_a_failure_on_the_edge_of_a_commit_comes_after_it() -> None:
    job = setting(10.0, n_emb_ps=3, save_h=0.25)
    for at_h, lost_h in ((4.25, 0.0), (4.2, 4.0)):
        ran = check(job, FULL, 4.0, failures((at_h, [0])), inf)
        assert ran.costs.hours_of("lost").tolist() == [lost_h]
        ran = check(job, PARTIAL, 4.0, failures((at_h, [0])), inf)
        assert ran.losses.since_save_h.tolist() == [lost_h]


def test_all_trainers_at_once_take_the_shards_with_them() -> None:
    job = setting(10.0, n_emb_ps=3, n_trainers=2, load_h=0.5)
    ran = check(job, PARTIAL, 4.0, failures((3.0, [3, 4])), inf)
    assert ran.losses.slot.tolist() == [0, 1, 2]


def endless(period_h: float) -> Iterator[Failure]:
    number = 0
    while True:
        number += 1
        yield Failure(number * period_h, (0,), (0.0,))


def test_a_job_that_gets_no_further_is_given_up_at_the_same_failure() -> None:
    job = setting(10.0, n_emb_ps=3, reschedule_h=0.5)
    strikes = [strike for _, strike in zip(range(1500), endless(0.375), strict=False)]
    for how in (FULL, NONE, PARTIAL):
        ran = check(job, how, 2.0, strikes, inf)
        assert not ran.costs.finished[0]
        assert ran.costs.n_failures[0] == 1000


def test_a_job_beyond_its_deadline_is_stopped_there() -> None:
    for clock in Clock:
        slow = setting(1.0, clock=clock, n_emb_ps=3, reschedule_h=60.0)
        ran = check(slow, FULL, inf, failures(0.25, 0.4375, 0.6), inf)
        assert ran.costs.wall_h.tolist() == ([100.0] if clock is not Clock.WALL else [61.6])
