"""A trainer of one's own is failed exactly as the built-in one is."""

from unittest.mock import Mock

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.job.losses import RESPONSE_KEYS
from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.job.records import EventKind as K
from cprsim.job.records import SubSaves
from cprsim.training.kernel import weights
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.playing import play
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.schedule import of_log
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.shared_run import run_trials
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial
from cprsim.training.measuring.own_model import (
    CopiedTable,
    ModelWeights,
    OwnModel,
    fused_rows,
)
from tests.kernel.test_replay import SLOTS, USEFUL_H, log_of
from tests.kernel.test_shared_run import ONE, TABLES, THREE
from tests.measuring.wrapped import Wrapped, make

ALL = (ShardFailure(0.5, (0, 1, 2, 3)),)  # the dense state goes back too


# copies in memory, and all in files
@pytest.mark.long
@pytest.mark.parametrize(("optimizer", "free_bytes"), [("sgd", 1 << 30), ("adagrad", 0)])
def test_behind_the_protocol_every_trial_is_bit_by_bit_the_same(
    optimizer, free_bytes, monkeypatch
) -> None:
    monkeypatch.setattr(weights, "free_bytes", lambda: free_bytes)
    mapped = Mock(wraps=np.memmap)
    monkeypatch.setattr(np, "memmap", mapped)
    shape, clicks = ModelShape(TABLES, 8, (12,), (16,)), generate(TABLES, 3000, seed=5)[0]
    plan = TrainingPlan(50, rate=0.2, schedule="linear", optimizer=optimizer)
    shards = Shards(shape.tables, 4)
    train, test = clicks[:2500], clicks[2500:]
    own = OwnModel(Wrapped(shape, train, test, plan), plan.seed)
    assert own.layout == TABLES
    built_in = ProxyTrainer(shape, train, plan, test=test)
    without = "momentum" if optimizer == "sgd" else "none such"  # sgd keeps none
    kept = [name for name in RESPONSE_KEYS if without not in str(name)]
    trials = [
        Trial(Saving(strategy, interval), failures)
        for strategy in kept
        for interval, failures in ((0.25, ONE), (0.3, THREE), (0.2, ALL))
    ]
    savings = [Saving(strategy, 0.1) for strategy in kept]
    ours, theirs = (list(run_trials(model, shards, trials, savings)) for model in (own, built_in))
    assert ours == theirs  # quality of each trial and the twin, bytes of each way of saving
    assert len({str(quality) for _, quality in theirs[:-1]}) > len(trials) // 2
    assert mapped.called == (free_bytes == 0)


def test_a_log_leaves_the_weights_that_it_leaves_the_built_in_model() -> None:
    """Also one that goes back in its data, and whose save is struck."""
    log = log_of(
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
    wrapped = make(1, {"samples": 3000})
    built_in = make(1, {"samples": 3000}).inner
    for model in (OwnModel(wrapped, 1), built_in):
        saver = Saver(model, Shards(built_in.shape.tables, 4), SubSaves("mfu", 0.5))
        play(model, saver, of_log(log, USEFUL_H, SLOTS, range(0)))
    for name, array in wrapped.inner.arrays().items():
        assert name == "changed" or np.array_equal(array, built_in.arrays()[name]), name


def counted(n_rows: int, width: int) -> CopiedTable:
    """A table whose rows have vectors of a width of its own, and a count beside them."""
    vectors = np.arange(n_rows * width, dtype=np.float32).reshape(n_rows, width)
    return CopiedTable((vectors, np.zeros((n_rows, 2, 3), np.int64)))


def test_tables_of_several_widths_and_state_of_any_shape_are_read_and_written_back() -> None:
    wide, narrow = counted(5, 8), counted(3, 2)
    live = ModelWeights((wide, narrow), TableLayout((5, 3)), dense=b"dense")
    stored = live.copy()
    rows = np.array([6, 0, 7, 4])  # of both tables, in no order
    wide.parts[0][[0, 4]] = -1
    narrow.parts[1][1:] = 9
    live.write_dense(b"longer than before")
    parcel = live.read(rows)
    live.write(rows, stored.read(rows))
    np.testing.assert_array_equal(wide.parts[0], counted(5, 8).parts[0])
    assert not narrow.parts[1].any()
    stored.write(rows, parcel)
    assert (stored.table[slice(0, 5, 4)] == -1).all()
    assert stored.table[slice(5, 8, 1)].shape == (3, 2)
    assert live.bytes_of(slice(0, 8)) == 5 * (8 * 4 + 48) + 3 * (2 * 4 + 48)
    assert live.bytes_of(rows) == 2 * (8 * 4 + 48) + 2 * (2 * 4 + 48)
    stored.write_dense(live.read_dense())
    assert stored.dense_bytes == len(b"longer than before")


def test_looked_up_rows_of_bags_are_filled_up() -> None:
    layout, column = TableLayout((5, 3)), {"wide": 0, "narrow": 1}
    bags = {"wide": np.array([[0, 4, -1], [2, -1, -1]]), "narrow": np.array([1, 2])}
    assert fused_rows(bags, column, layout).tolist() == [
        [[0, 6], [4, -1], [-1, -1]],
        [[2, 7], [-1, -1], [-1, -1]],
    ]
    assert fused_rows({"narrow": np.array([1, 2])}, column, layout).tolist() == [[-1, 6], [-1, 7]]
    with pytest.raises(ParameterError, match="row 3 of 'narrow', which has 3"):
        fused_rows({"narrow": np.array([3])}, column, layout)
    with pytest.raises(ParameterError, match="'other', which is not one of its tables"):
        fused_rows({"other": np.array([3])}, column, layout)
    with pytest.raises(ParameterError, match=r"\[1, 2\] samples of one batch"):
        fused_rows({"wide": np.array([3]), "narrow": np.array([1, 1])}, column, layout)
