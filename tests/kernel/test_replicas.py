"""Replicas against what they must be: plain training, a recursion by hand, one another."""

from collections.abc import Callable

import numpy as np
import pytest

from cprsim.job.distributions import with_mean
from cprsim.job.sync_setting import SyncEvent, SyncLog
from cprsim.training.in_step.simulation import run_log
from cprsim.training.in_step.trainers import Outage
from cprsim.training.kernel.replicas import Replicas, easgd
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan
from tests.in_step.settings import MS, setting

FINE = TrainingPlan(8, 0.3, seed=4)
GAMMA = with_mean("gamma", 10 * MS, 5.0)
BEGAN, FINISHED, SENT, SYNCED = (
    SyncEvent.BEGAN, SyncEvent.FINISHED, SyncEvent.SENT, SyncEvent.SYNCED,
)  # fmt: skip


def log_of(*events: tuple[int, int, int]) -> SyncLog:
    """A log of (kind, trainer, thread), one event after the other."""
    kind, trainer, thread = (np.array(column) for column in zip(*events, strict=True))
    return SyncLog(np.arange(len(kind), dtype=float), kind, trainer, thread)


@pytest.fixture
def replicas(shape, clicks) -> Callable[..., Replicas]:
    def new(algorithm: str, n_trainers: int, every=None, plan=None, **more) -> Replicas:
        plan = plan or TrainingPlan(50, 0.1, "linear", seed=4)
        return Replicas(shape, clicks, plan, setting(algorithm, n_trainers, every=every, **more))

    return new


def trained(new: Replicas, **options) -> Replicas:
    new.train(run_log(new.setting, n_batches(new), **options))
    return new


def n_batches(new: Replicas) -> int:
    return -(-len(new.clicks) // new.plan.batch)


# --------------------------------------------------------------------------- one trainer


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("algorithm", ["none", "shadow-ma", "shadow-bmuf"])
def test_one_trainer_that_has_nobody_to_average_with_trains_plainly(
    replicas, new_trainer, optimizer, algorithm
) -> None:
    plan = TrainingPlan(50, 0.1, "linear", optimizer, seed=4)
    one = trained(replicas(algorithm, 1, plan=plan, n_threads=1))
    alone = new_trainer(optimizer, 50, rate=0.1, schedule="linear", seed=4)
    loss = alone.run()
    assert np.array_equal(one.dense(0), alone.model.dense)
    assert np.array_equal(one.model.table, alone.model.table)
    assert np.array_equal(one.central.changed, alone.changed)
    assert one.summed_loss / one.position == pytest.approx(loss, rel=1e-12)


def test_easgd_of_one_trainer_is_the_recursion_of_two_variables(replicas, new_trainer) -> None:
    """w and g by hand, in float32: after each batch u = a (w - g); w -= u; g += u."""
    one = trained(replicas("fr-easgd", 1, every=1, n_threads=1, elastic=0.25))
    by_hand = new_trainer("sgd", 50, rate=0.1, schedule="linear", seed=4)
    w = by_hand.model.dense
    g = w.copy()
    for at in range(50, by_hand.n_samples + 1, 50):
        by_hand.run(at)
        u = np.float32(0.25) * (w - g)
        w -= u
        g += u
    assert np.array_equal(one.dense(0), w)
    assert np.array_equal(one.model.dense, g)


def test_easgd_moves_both_by_what_was_sent() -> None:
    w, sent, g = (np.float32([number]) for number in (3.0, 2.0, 1.0))
    easgd(w, sent, g, 0.5)
    assert (w[0], g[0]) == (2.5, 1.5)


# --------------------------------------------------------------------------- several


STEPPING = {
    "shadow-ma": {"elastic": 0.25},
    "shadow-bmuf": {"elastic": 0.25, "momentum": 0.5, "block_rate": 0.8},
    "fr-ma": {"every": 1},
    "fr-bmuf": {"every": 1, "momentum": 0.5, "block_rate": 0.8},
    "shadow-easgd": {"elastic": 0.25},
    "fr-easgd": {"every": 1, "elastic": 0.25},
}


@pytest.mark.parametrize("algorithm", STEPPING)
def test_steps_of_all_move_all_by_the_step_gain(replicas, algorithm) -> None:
    """Workers that all make the same step between what a synchronisation sends and its end."""
    some = replicas(algorithm, 3, n_servers=1, **STEPPING[algorithm])
    step, (settled, rounds) = np.float32(0.01), (100, 200)
    behind = some.setting.algorithm.in_background
    everybody = (-1,) if some.setting.algorithm.is_collective else range(3)
    for round_ in range(rounds):
        if round_ == settled:
            before = np.mean([some.dense(i) for i in range(3)])
        for who in everybody:
            own = range(3) if who == -1 else (who,)
            if behind:
                some.train(log_of((SENT, who, -1)))
            for one in own:
                some.dense(one)[:] += step
            if not behind:
                some.train(log_of((SENT, who, -1)))
            some.train(log_of((SYNCED, who, -1)))
    moved = np.mean([some.dense(i) for i in range(3)]) - before
    assert moved / (step * (rounds - settled)) == pytest.approx(some.setting.step_gain, rel=1e-3)


def test_synchronous_sgd_of_two_is_one_step_with_the_mean_gradient(replicas, shape, clicks) -> None:
    two = replicas("sync-sgd", 2, plan=TrainingPlan(50, 0.1, seed=4), n_threads=1)
    before = two.dense(0).copy()
    two.train(log_of((BEGAN, 0, 0), (BEGAN, 1, 0), (FINISHED, 0, 0), (FINISHED, 1, 0),
                     (SENT, -1, -1), (SYNCED, -1, -1)))  # fmt: skip
    both = ProxyTrainer(shape, clicks[:100], TrainingPlan(100, 0.1, seed=4))
    both.run()  # the mean gradient of 2 batches of 50 is that of 100 samples
    np.testing.assert_allclose(two.dense(0) - before, both.model.dense - before, atol=2e-6)


@pytest.mark.parametrize(
    ("algorithm", "every"),
    [("shadow-easgd", None), ("fr-easgd", 2), ("shadow-ma", None), ("fr-bmuf", 2), ("none", None)],
)
def test_runs_are_repeated_bit_for_bit_and_learn(replicas, algorithm, every) -> None:
    options = {"every": every, "iteration": GAMMA, "plan": FINE}
    first, again = (trained(replicas(algorithm, 4, **options)) for _ in "12")
    assert np.array_equal(first.model.table, again.model.table)
    assert np.array_equal(first.model.dense, again.model.dense)
    assert first.position == len(first.clicks)
    assert first.summed_loss == again.summed_loss
    assert first.summed_loss / first.position < 0.7


# --------------------------------------------------------------------------- failures


def test_a_replacement_begins_with_the_central_copy(replicas) -> None:
    some = replicas("shadow-easgd", 3, plan=FINE)
    outage = Outage(60 * MS, 50 * MS, number=1)
    log = run_log(some.setting, n_batches(some), outages=[outage])
    at = int(np.flatnonzero(log.kind == SyncEvent.REPLACED)[0]) + 1
    some.train(SyncLog(log.at_h[:at], log.kind[:at], log.trainer[:at], log.thread[:at]))
    assert np.array_equal(some.dense(1), some.model.dense)
    assert not np.array_equal(some.dense(0), some.model.dense)


def test_what_a_lost_trainer_had_in_work_is_gone(replicas) -> None:
    some = replicas("none", 2)
    before = some.model.table.copy()
    some.train(log_of((BEGAN, 1, 0), (SyncEvent.LOST, 1, -1), (SyncEvent.REPLACED, 1, -1)))
    assert np.array_equal(some.model.table, before)
    assert some.position == 50, "and its samples are not trained again"


def test_a_new_sync_server_takes_its_part_from_the_next_trainer_to_exchange(replicas) -> None:
    some = replicas("fr-easgd", 2, every=1, n_servers=2, elastic=0.5)
    half = len(some.model.dense) // 2
    some.dense(1)[:] = 3.0
    before = some.model.dense.copy()
    some.train(log_of((SyncEvent.SERVER_LOST, 1, -1), (SyncEvent.SERVER_REPLACED, 1, -1),
                      (SENT, 1, 0), (SYNCED, 1, 0)))  # fmt: skip
    assert (some.model.dense[half:] == 3.0).all()
    np.testing.assert_allclose(some.model.dense[:half], (before[:half] + 3.0) / 2, atol=1e-6)
