"""Runs that are taken up again: from a snapshot, after everything was lost."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.kernel.saving import Saver
from cprsim.kernel.shards import Shards
from cprsim.kernel.trackers import TRACKERS
from cprsim.records import SubSaves
from tests.kernel.states import joint_state, restore, take

END, SAVE_EVERY = 1500, 150


@pytest.fixture
def new_run(new_trainer):
    def new(tracker: str | None = None, optimizer: str = "adagrad"):
        trainer = new_trainer(optimizer, schedule="linear")
        shards = Shards(trainer.shape.tables, 4)
        return trainer, Saver(trainer, shards, tracker and SubSaves(tracker, 0.5, n_large_tables=3))

    return new


def go_on(trainer, saver, until: int, failures: dict[int, list[int]]) -> None:
    """Train, save and fail on a fixed schedule: the same whoever takes it up where."""
    while trainer.position < until:
        trainer.run(trainer.position + 50)
        if trainer.position in failures:
            saver.lose(failures[trainer.position])
        if trainer.position % SAVE_EVERY == 0:
            saver.save(ends_interval=trainer.position % (2 * SAVE_EVERY) == 0)


def assert_equal_bits(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("tracker", [None, *TRACKERS])
def test_a_fork_is_bitwise_a_run_from_scratch(new_run, tracker):
    base, scratch, fork = (new_run(tracker) for _ in range(3))
    go_on(*base, 650, {})
    snapshot = take(*base)
    go_on(*base, END, {})  # what the base does later is nothing to the fork
    restore(snapshot, *fork)
    go_on(*fork, END, {700: [0, 2], 1100: [3]})
    go_on(*scratch, END, {700: [0, 2], 1100: [3]})
    assert_equal_bits(joint_state(*fork), joint_state(*scratch))
    assert not np.array_equal(fork[0].model.table, base[0].model.table)  # the failures mattered


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_reverting_everything_equals_resuming(new_run, optimizer):
    trainer, saver = new_run(optimizer=optimizer)
    trainer.run(600)
    saver.save()
    saved = take(trainer)
    trainer.run(1000)
    saver.lose(range(4))  # all shards, and so the layers
    trainer.rewind(600)

    resumed, _ = new_run(optimizer=optimizer)
    restore(saved, resumed)
    for run in (trainer, resumed):
        run.run(END)
    ours, theirs = trainer.state(), resumed.state()
    assert_equal_bits(ours, theirs)


def test_a_rate_that_diverges_says_so(new_trainer):
    with pytest.raises(
        ParameterError, match="diverged before sample 3000: the learning rate 1e\\+06"
    ):
        new_trainer("sgd", rate=1e6).run()


def test_the_rate_falls_to_zero(new_trainer):
    trainer = new_trainer("sgd", schedule="linear", rate=0.5)
    trainer.run(2950)
    before = trainer.model.dense.copy()
    trainer.run()
    last_step = np.abs(trainer.model.dense - before).max()
    trainer = new_trainer("sgd", schedule="constant", rate=0.5)
    trainer.run(2950)
    before = trainer.model.dense.copy()
    trainer.run()
    assert last_step < 0.05 * np.abs(trainer.model.dense - before).max()


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("n_parts", [2, 3])
def test_trainers_in_step_learn_what_one_learns_of_the_whole_batch(new_trainer, optimizer, n_parts):
    """Batches of 70 of 3,000 samples: the last has 60; parts are not even."""
    alone, in_step = (new_trainer(optimizer, batch=70, n_parts=n) for n in (1, n_parts))
    losses = [trainer.run(700) for trainer in (alone, in_step)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name in ("table", "dense"):
        ours, theirs = (getattr(trainer.model, name) for trainer in (alone, in_step))
        np.testing.assert_allclose(ours, theirs, atol=4e-5)  # sums of other orders, by processor
        assert ours.tobytes() != theirs.tobytes()
