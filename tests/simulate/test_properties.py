"""What holds for any job, any failures, any strategy."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cprsim.records import Clock, EventKind, EventLog, Holds, SubSaves
from cprsim.recovery.policy import RELOAD, RESTART
from tests.simulate.building import FULL, NONE, PARTIAL, JobSetting, failures, policy, run, setting
from tests.simulate.folding import cost_breakdown, shard_loss

N_EMB_PS, N_TRAINERS = 3, 2
ENDS_A_SAVE = (
    EventKind.SAVE_COMMITTED,
    EventKind.SUB_SAVE_COMMITTED,
    EventKind.SAVE_ABANDONED,
)

hours = st.floats(0.0, 2.0).map(lambda h: round(h, 3))
strikes = st.lists(
    st.tuples(
        st.floats(0.001, 30.0).map(lambda h: round(h, 3)),
        st.sets(st.integers(0, N_EMB_PS + N_TRAINERS - 1), min_size=1),
    ),
    max_size=6,
    unique_by=lambda strike: strike[0],
).map(sorted)


def in_step(job: JobSetting) -> JobSetting:
    """The same with trainers that go on without each other."""
    roles = [replace(one, others_go_on=one.holds is Holds.REPLICA) for one in job.cluster.roles]
    return replace(job, cluster=replace(job.cluster, roles=tuple(roles)))


@st.composite
def logs(draw: st.DrawFn) -> tuple[float, str, EventLog]:
    """One replication of a job of 10 h: with and without background saves, spares, a team."""
    how = draw(st.sampled_from([FULL, PARTIAL, NONE]))
    plain = setting(
        10.0,
        clock=draw(st.sampled_from(Clock)),
        n_emb_ps=N_EMB_PS,
        n_trainers=N_TRAINERS,
        n_spares=draw(st.sampled_from([None, 0, 1, 3])),
        save_h=draw(hours),
        background_h=draw(st.none() | hours),
        load_h=draw(hours),
        detect_h=draw(hours),
        reschedule_h=draw(hours),
    )
    job = in_step(plain) if draw(st.booleans()) else plain
    interval_h = draw(st.sampled_from([0.7, 1.0, 2.5, 3.3, 10.0, inf]))
    sub_saves = draw(st.sampled_from([None, SubSaves("mfu", 0.5), SubSaves("ssu", 0.125, 0.01)]))
    when = failures(*draw(strikes), repair_h=draw(hours))
    return (
        interval_h,
        how,
        run(job, policy(how, interval_h, sub_saves if how is PARTIAL else None), when),
    )


@settings(max_examples=400)
@given(logs())
def test_of_any_replication(made: tuple[float, str, EventLog]) -> None:
    """One test: to draw a replication takes as long as to look at it in all these ways."""
    _, how, log = made
    parts_add_up_and_the_log_is_in_order(how, log)
    staleness_is_bounded(how, log)
    a_save_is_committed_or_abandoned_before_the_next_begins(log)


def parts_add_up_and_the_log_is_in_order(how: str, log: EventLog) -> None:
    costs = cost_breakdown(log, 10.0)  # raises where the accounting does not hold
    assert costs.finished[0]
    assert costs.useful_h[0] == np.float64(10.0) or abs(costs.useful_h[0] - 10.0) < 1e-9
    assert (np.diff(log.at_h) >= 0).all()
    if how is RELOAD:
        assert costs.hours_of("lost")[0] == 0.0
        assert (np.diff(log.progress_h) >= -1e-12).all()
    if how is RESTART:
        assert costs.hours_of("load")[0] == 0.0


def staleness_is_bounded(how: str, log: EventLog) -> None:
    loss = shard_loss(log, N_EMB_PS)
    assert (how is RELOAD) or len(loss.slot) == 0
    assert (loss.since_reload_h <= loss.since_save_h + 1e-12).all()
    assert (loss.since_reload_h >= -1e-12).all()
    assert (loss.since_save_h <= loss.progress_h + 1e-12).all()


def a_save_is_committed_or_abandoned_before_the_next_begins(log: EventLog) -> None:
    open_saves = 0
    for kind in log.kind:
        open_saves += kind in (EventKind.SAVE_STARTED, EventKind.SUB_SAVE_STARTED)
        open_saves -= kind in ENDS_A_SAVE
        assert open_saves in (0, 1)
    assert open_saves == 0
