"""Forks of one run equal runs from scratch, whatever the way of saving."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.job.records import EventKind
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.playing import play
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.shared_run import run_trials
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial, stale_shards
from cprsim.training.kernel.weights import TrainableModel
from cprsim.training.measuring.design import Design, measurable

TABLES = TableLayout((40, 3, 900, 7, 250, 60, 90, 30, 12))  # two more than are prioritised
ONE = (ShardFailure(0.6, (1, 2)),)
THREE = (ShardFailure(0.2, (0,)), ShardFailure(0.45, (0, 3)), ShardFailure(0.9, (2,)))


def run_trial(model: TrainableModel, shards: Shards, trial: Trial) -> Quality:
    """One trial from scratch: what its fork has to equal."""
    play(model, Saver(model, shards, trial.saving.sub_saves), trial.schedule())
    return model.evaluate()


SHARDS = Shards(TABLES, 4)


@pytest.fixture(scope="module", params=["sgd", "adagrad", "adam"])
def new(request: pytest.FixtureRequest) -> Callable[[], ProxyTrainer]:
    """Makes the model at the start of its run."""
    shape, clicks = ModelShape(TABLES, 8, (12,), (16,)), generate(TABLES, 3000, seed=5)[0]
    plan = TrainingPlan(50, rate=0.2, schedule="linear", optimizer=request.param)
    return partial(ProxyTrainer, shape, clicks[:2500], plan, test=clicks[2500:])


def with_a_curve(model: TrainableModel) -> tuple[str, ...]:
    """The strategies that are measured: SGD has no momentum."""
    return measurable(Design(), has_momentum=model.weights.momentum is not None).strategies


def test_a_fork_is_bit_by_bit_a_run_from_scratch(new) -> None:
    trials = [
        Trial(Saving(strategy, interval), failures)
        for strategy in with_a_curve(new())
        for interval, failures in ((0.25, ONE), (0.3, THREE))
    ]
    *finished, _ = run_trials(new(), SHARDS, trials)
    forked = dict(finished)
    assert forked.keys() == set(trials)
    assert {trial: run_trial(new(), SHARDS, trial) for trial in trials} == forked
    assert len(set(forked.values())) > len(trials) // 2  # strategies do differ


def test_equal_bytes_are_equal_and_more_bytes_are_more(new) -> None:
    savings = [Saving(strategy, 0.25) for strategy in with_a_curve(new())]
    (twin,) = run_trials(new(), SHARDS, [], savings)
    written = {saving.strategy: n_bytes for saving, n_bytes in twin.bytes_written.items()}
    assert written["partial"] > 0
    for tracker in {"mfu", "ssu", "scar", "momentum"} & written.keys():
        assert written[tracker] <= written["partial"] * 1.1  # whole rows per segment: rounded up
        assert written[f"{tracker}+"] > written[tracker]
    assert written["round-robin"] == written["partial"]


def test_a_failure_right_after_a_save_loses_nothing(new) -> None:
    trial = Trial(Saving("partial", 0.25), (ShardFailure(0.5, (0, 1, 2)),))
    (_, quality), twin = run_trials(new(), SHARDS, [trial])
    assert quality == twin.quality


def test_saves_are_due_on_the_grid() -> None:
    whole = [(save.at, save.kind, save.ends_interval) for save in Saving("partial", 0.5).due(0, 1)]
    kinds = EventKind.SAVE_STARTED, EventKind.SAVE_COMMITTED
    assert whole == [(at, kind, True) for at in (0.5, 1.0) for kind in kinds]
    sub_saves = list(Saving("mfu", 0.5).due(0.5, 1.0))[::2]
    assert [save.at for save in sub_saves] == pytest.approx(np.arange(9, 17) / 16)
    assert [save.ends_interval for save in sub_saves] == [False] * 7 + [True]
    assert list(Saving("mfu", 0.5).due(0.4, 0.5))[-2:] == list(Saving("mfu", 0.5).due(0.45, 0.5))
    assert list(Saving("partial", 2.0).due(0.0, 1.0)) == []


def test_staleness_counts_from_the_later_of_save_and_reload() -> None:
    at_a_save = Trial(Saving("partial", 0.5), (ShardFailure(0.5, (1,)),))
    stale = stale_shards([Trial(Saving("partial", 0.5), THREE), at_a_save], 4)
    assert stale.replication.tolist() == [0, 0, 0, 0, 1]
    assert stale.progress_h.tolist() == [0.2, 0.45, 0.45, 0.9, 0.5]
    assert stale.slot.tolist() == [0, 0, 3, 2, 1]
    assert stale.since_save_h == pytest.approx([0.2, 0.45, 0.45, 0.4, 0.0])
    assert stale.since_reload_h == pytest.approx([0.2, 0.25, 0.45, 0.4, 0.0])
    assert set(stale.share) == {0.25}
