"""What a scenario becomes: throttles, kills, saves; and shipped can't be rehearsed says why."""

from dataclasses import replace

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.job.records import S_PER_H, EventKind
from cprsim.rehearsal.calibration import RunCalibration, calibrating, calibrating_sub_saves, extra
from cprsim.rehearsal.log import FactKind, RunFact
from cprsim.rehearsal.material import image_bytes
from cprsim.rehearsal.orders import STALLING
from cprsim.rehearsal.prediction import model_of, predict
from cprsim.rehearsal.rehearsing import Planned, require_in_time
from cprsim.rehearsal.setting import (
    holders_of,
    kills_of,
    orders_of,
    policies_to_rehearse,
    require_rehearsable,
    speeds_of,
)
from cprsim.rehearsal.supervisor import FinishedRun
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS
from tests.rehearsal.making import job as experiment
from tests.rehearsal.making import planned, shipped

CALIBRATED = RunCalibration(0.8, 0.75, 0.01, 0.005, 0.4)


def test_a_load_that_is_shared_with_nobody_takes_its_time() -> None:
    speeds, size = speeds_of(experiment("costs.load=2 s"), shipped()), image_bytes(shipped())
    assert (size / speeds.load_alone, speeds.load_together) == (pytest.approx(2.0), float("inf"))
    assert size / speeds.save_rate == pytest.approx(0.75)


def test_nobody_dies_who_is_dead_and_not_noticed() -> None:
    at = "at: [10 s, 11 s, 13 s], servers: [[0], [0, 1], [0]]"
    job = experiment(f"failures={{kind: injected, clock: wall, {at}}}")
    kills, n_left_out = kills_of(job, 0, speeds_of(job, shipped()))
    assert [(kill.at_s, kill.slots) for kill in kills] == [(10, (0,)), (11, (1,)), (13, (0,))]
    assert n_left_out == 1


@pytest.mark.parametrize("name", ["full", "partial", "cpr-mfu"])
def test_saves_are_due_where_the_simulator_has_them(name: str) -> None:
    job = experiment()
    policy, orders = planned(job, name)
    log = predict(model_of(job, policy, orders, CALIBRATED, shipped()), 0).log
    starts = np.isin(log.kind, (EventKind.SAVE_STARTED, EventKind.SUB_SAVE_STARTED))
    due_h = np.array([due.position for due in orders.due]) / shipped().n_samples * job.useful_h
    half_a_batch_h = shipped().plan.batch / shipped().n_samples * job.useful_h
    np.testing.assert_allclose(log.progress_h[starts], due_h, atol=half_a_batch_h)
    ends = [kind == EventKind.SAVE_STARTED for kind in log.kind[starts]]
    assert ends == [due.ends_interval for due in orders.due]


def test_a_prediction_knows_the_orders_and_nothing_else() -> None:
    job = experiment()
    policy, orders = planned(job, "full", trace=0)
    other = replace(
        job.simulated(seed=job.simulation.seed + 1),
        costs=replace(job.costs, reschedule=job.costs.detect),
    )
    one, two = (
        predict(model_of(of, policy, orders, CALIBRATED, shipped()), 0) for of in (job, other)
    )
    np.testing.assert_array_equal(one.log.at_h, two.log.at_h)
    failed = one.log.kind == EventKind.FAILED
    assert (one.log.at_h[failed] * S_PER_H).tolist() == pytest.approx(
        [kill.at_s for kill in orders.kills]
    )


SHADOW = (
    "sync={algorithm: shadow-ma, threads: 1, iteration: 50 ms, dense_size: 1 MB, "
    "trainer_bandwidth: 1 GB/s}"
)
SCARCE = (
    "cluster={{trainers: 1, emb_ps: 4, shard_size: 1 MB, link: 1 MB/s, spares: {}, repair: {}}}"
)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (SCARCE.format(1, "{family: exponential, mean: 3 s}"), "`cluster.repair` varies"),
        ("cluster.trainers=0", "needs a trainer"),
        (SHADOW, "wait for each other"),
        ("cluster.others={reader: 2}", "reader"),
        ("failures.clock=progress", "failures.clock: wall"),
        ("costs.save={stall: 1 s, background: 1 s}", "background"),
        ("costs.save={stall: 1 s, fails: 10 %}", "fail by chance"),
        (
            "cluster={trainers: 1, emb_ps: 4, link: 1 MB/s, "
            "shards: [{servers: 1, size: 1 MB}, {servers: 3, size: 2 MB}]}",
            "hold as much as each other",
        ),
        ("costs.detect=10 ms", "heartbeats"),
        ("costs.reschedule={family: exponential, mean: 1 s}", "costs.reschedule"),
        ("recovery=[{strategy: transom, options: {snapshot: 0.1 s}}]", "can't be rehearsed"),
        ("recovery=[varuna]", "can't be rehearsed"),  # it works with fewer nodes
        ("recovery=[{strategy: full, costs: {load: 1 s}}]", "`full` has its own costs"),
        ("recovery=[none, full]", "`none` can't be rehearsed"),
        ("recovery=[{strategy: full, interval: 0.1 s}]", "less than a training step"),
        ("cluster.trainers=2", "`async` is rehearsed with one trainer"),
    ],
)
def test_what_real_processes_can_not_do_is_refused(override: str, said: str) -> None:
    job = experiment("job.step=0.05 s", override)
    with pytest.raises(ParameterError, match=said):
        prepare(job)


def prepare(job: Experiment) -> None:
    require_rehearsable(job)
    for policy in policies_to_rehearse(job):
        orders_of(job, policy, shipped())


def test_strategies_are_chosen_by_name() -> None:
    job = experiment("cluster.trainers=2")  # which `async` can't be rehearsed with
    assert [one.name for one in policies_to_rehearse(job, ("full", "cpr"))] == ["full", "cpr"]


@pytest.mark.parametrize("name", ["async", "gemini", "cpr-mfu"])
def test_each_save_is_predicted_to_take_what_was_calibrated_beside_its_bytes(name: str) -> None:
    job, without = experiment(), replace(CALIBRATED, extra_s={"cpr-mfu": 0.0})
    longer = replace(without, pause_s=0.02, extra_s={"cpr-mfu": 0.02})
    policy, orders = planned(job, name)
    stopped_s = [
        float(predict(model_of(job, policy, orders, of, shipped()), 0).costs.hours_of("save")[0])
        * S_PER_H
        for of in (without, longer)
    ]
    assert stopped_s[1] - stopped_s[0] == pytest.approx(0.02 * len(orders.due), abs=1e-6)


@pytest.mark.parametrize(
    ("repair", "said"), [("20 s", ""), ("1400 s", "to take 1,4.. s"), ("3 h", "more than 6,000 s")]
)
def test_where_spares_are_finite_the_job_waits_but_not_beyond_its_limit(
    repair: str, said: str
) -> None:
    job = experiment(SCARCE.format(0, repair), "failures={kind: injected, clock: wall, at: [7 s]}")
    require_rehearsable(job)
    policy, orders = planned(job, "full", trace=0)
    plan = Planned(
        policy, 0, orders, predict(model_of(job, policy, orders, CALIBRATED, shipped()), 0)
    )
    if said:
        with pytest.raises(ParameterError, match=said):
            require_in_time(plan)
        return
    require_in_time(plan)
    waited_s = float(plan.predicted.costs.hours_of("wait")[0]) * S_PER_H
    assert waited_s == pytest.approx(20 - 1.6)  # of the repair, after detection


def test_a_job_without_embedding_servers_is_refused() -> None:
    job = assemble(load_scenario(SCENARIOS / "llm.yaml"))
    with pytest.raises(ParameterError, match="with embedding servers, and this one has none"):
        require_rehearsable(job)


def test_copies_in_a_ring_lie_on_the_next_servers() -> None:
    job = experiment(
        "recovery=[{strategy: gemini, options: {copies: 3, placement: ring, every: 3 s}}]"
    )
    assert holders_of(job.policies[0], 4) == ((1, 2), (2, 3), (3, 0), (0, 1))


@pytest.mark.parametrize("useful", ["1 s", "60 s", "1 h"])
def test_a_calibrating_run_has_saves_however_slow_the_pace_is(useful: str) -> None:
    job = experiment(f"job.useful={useful}")
    (policy,) = policies_to_rehearse(job, ("partial",))
    orders = orders_of(job, replace(policy, interval_h=1.0), shipped())
    short = calibrating(orders, shipped())
    assert [due.kind for due in short.due] == [STALLING, 0, 0, 0, 0] * 3  # the rest behind the job
    assert 0 < short.due[0].position < short.due[-1].position == short.until <= shipped().n_samples
    assert short.kills == ()


def test_what_a_sub_save_takes_beside_its_bytes_is_calibrated() -> None:
    _, orders = planned(experiment(), "cpr-mfu")
    short = calibrating_sub_saves(orders, shipped())
    assert [due.ends_interval for due in short.due] == [False] * 7 + [True]
    assert short.due[-1].position == short.until <= shipped().n_samples
    facts = [
        RunFact(at_s, kind, number=number)
        for number, took_s in enumerate((0.11, 0.13))
        for at_s, kind in ((0.0, FactKind.SAVE_STARTED), (took_s, FactKind.SAVE_COMMITTED))
    ]
    ran = FinishedRun(short, tuple(facts), (), 0.0, 0, (), 0)
    assert extra(ran, 0.125, 0.8) == pytest.approx(0.12 - 0.1)
    assert extra(ran, 0.5, 0.8) == 0
