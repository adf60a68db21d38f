"""A simulated job's failures strike a trainer of one's own as they strike the built-in one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cprsim.experiments.accuracy import measure, runs_of
from cprsim.experiments.assemble import assemble
from cprsim.experiments.proxy_model import proxy_model
from cprsim.kernel.playing import play
from cprsim.kernel.saving import Saver
from cprsim.kernel.schedule import of_log
from cprsim.measuring.own_model import OwnModel
from cprsim.records import EventKind as K
from cprsim.records import SubSaves
from cprsim.scenario.reading import load_scenario
from tests.kernel.test_replay import SLOTS, USEFUL_H, log_of
from tests.measuring.conftest import SCENARIO
from tests.measuring.wrapped import Wrapped

BACK = log_of(
    (K.SAVE_STARTED, 8.0),
    (K.SAVE_COMMITTED, 8.0),
    (K.SUB_SAVE_STARTED, 10.0),
    (K.SUB_SAVE_COMMITTED, 11.0),
    (K.ROLLED_BACK, 8.0),
    (K.SAVE_STARTED, 20.0),
    (K.SAVE_ABANDONED, 20.0),
    (K.REVERTED, 20.0, 2),
    (K.REVERTED, 20.0, 5),
    (K.FINISHED, 30.0),
)


@pytest.fixture
def loaded(tmp_path):
    path = tmp_path / "own.yaml"
    recovery = "[full, partial, {strategy: cpr-mfu, interval: 9 h}]"
    path.write_text(SCENARIO.replace("[full, partial]", recovery).replace("6000", "3000"))
    return load_scenario(path)


@pytest.fixture
def what(loaded):
    return proxy_model(loaded)


@pytest.fixture
def own(what):
    return OwnModel(Wrapped(what.shape, what.train, what.test, what.plan), 1)


def test_a_log_leaves_the_weights_that_it_leaves_the_built_in_model(what, own):
    built_in, schedule = what.trainer(), of_log(BACK, USEFUL_H, SLOTS, range(0))
    for model in (built_in, own):
        how = SubSaves("mfu", 0.5, n_large_tables=3)
        play(model, Saver(model, what.shards, how), schedule)
    for name, array in own.trainer.inner.arrays().items():
        assert name == "changed" or np.array_equal(array, built_in.arrays()[name]), name


def test_train_gives_the_accuracy_and_the_bytes_of_the_built_in_model(loaded, what, own):
    experiment = assemble(loaded)
    ours, theirs = (
        measure(experiment, 0, runs_of(experiment, model, what.shards, lambda *told: None))
        for model in (own, what.trainer())
    )
    assert ours.whole.quality == theirs.whole.quality
    for one, other in zip(ours.strategies, theirs.strategies, strict=True):
        assert one.trained.quality == other.trained.quality
        written = replace(one, trained=None, reverted_at=None)
        assert written == replace(other, trained=None, reverted_at=None)
    assert ours.strategies[1].trained.quality != ours.whole.quality
