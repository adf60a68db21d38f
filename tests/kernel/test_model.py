"""The model's loss and gradients; training at a rate, and by trainers in step."""

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.training.kernel.model import Dlrm, Workspace

SHAPE = ModelShape(TableLayout((5, 2, 9)), dimension=4, bottom=(6,), top=(7, 3), n_integers=3)
N = 6


@pytest.fixture
def model() -> Dlrm:
    model = Dlrm(SHAPE, np.float64)
    model.initialise(seed=3)
    return model


@pytest.fixture
def batch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    integers = rng.standard_normal((N, 3))
    rows = np.stack([rng.integers(a, b, N) for a, b in ((0, 5), (5, 7), (7, 16))], axis=1).astype(
        np.int32
    )
    return integers, rows, (rng.random(N) < 0.4).astype(np.float64)


def test_loss_is_cross_entropy_also_where_logits_are_huge(model, batch):
    integers, rows, _ = batch
    work = Workspace(model, 2)
    for label, loss in (([1.0, 0.0], 0.0), ([0.0, 1.0], 800.0)):
        model.forward(integers[:2], rows[:2], work)
        work.top[-1][:, 0] = [800.0, -800.0]
        assert model.backward(integers[:2], np.array(label), work) == loss


def central_difference(loss, parameters: np.ndarray, at: int, step: float = 1e-6) -> float:
    flat = parameters.reshape(-1)
    before = flat[at]
    flat[at] = before + step
    above = loss()
    flat[at] = before - step
    below = loss()
    flat[at] = before
    return (above - below) / (2 * step)


@pytest.mark.parametrize("label_share", ["mixed", "none", "all"])
def test_gradients_are_central_differences(model, batch, label_share):
    integers, rows, label = batch
    label = {"mixed": label, "none": 0 * label, "all": 0 * label + 1}[label_share]
    work = Workspace(model, N)
    model.forward(integers, rows, work)
    model.backward(integers, label, work)
    d_dense = work.d_dense.copy()
    d_table = np.zeros_like(model.table)
    np.add.at(d_table, rows, work.d_fields[:, 1:])

    def loss() -> float:
        z = model.forward(integers, rows, work)
        return float(np.mean(np.logaddexp(0, z) - z * label))

    for parameters, gradient in ((model.dense, d_dense), (model.table, d_table)):
        numeric = [central_difference(loss, parameters, i) for i in range(parameters.size)]
        np.testing.assert_allclose(gradient.reshape(-1), numeric, atol=2e-8)
        assert np.abs(gradient).max() > 1e-3  # else anything would agree


def test_a_row_that_a_batch_does_not_touch_has_no_gradient_and_does_not_move(new_trainer):
    trainer = new_trainer("sgd")
    before = trainer.model.table.copy()
    trainer.run(50)
    touched = np.zeros(len(before), bool)
    touched[trainer.clicks.rows[:50]] = True
    assert (trainer.model.table[~touched] == before[~touched]).all()
    assert (trainer.changed.astype(bool) == touched).all()


# --------------------------------------------------------------------------- training


def test_a_rate_that_diverges_says_so(new_trainer):
    with pytest.raises(ParameterError, match=r"before sample 3000: the learning rate 1e\+06"):
        new_trainer("sgd", rate=1e6).run()


def test_the_rate_falls_to_zero(new_trainer):
    last_steps = []
    for schedule in ("linear", "constant"):
        trainer = new_trainer("sgd", schedule=schedule, rate=0.5)
        trainer.run(2950)
        before = trainer.model.dense.copy()
        trainer.run()
        last_steps.append(np.abs(trainer.model.dense - before).max())
    assert last_steps[0] < 0.05 * last_steps[1]


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("n_parts", [2, 3])
def test_trainers_in_step_learn_what_one_learns_of_the_whole_batch(new_trainer, optimizer, n_parts):
    """Batches of 70 of 3,000 samples: the last has 60; parts are not even."""
    alone, in_step = (new_trainer(optimizer, batch=70, n_parts=n) for n in (1, n_parts))
    losses = [trainer.run(700) for trainer in (alone, in_step)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name in ("table", "dense"):
        ours, theirs = (getattr(trainer.model, name) for trainer in (alone, in_step))
        off = np.abs(ours - theirs)  # sums of other orders, by processor
        # where a gradient is rounding alone, Adam moves by its whole rate: one number in 10,000
        assert off.mean() < 2e-7
        assert np.quantile(off, 0.999) < 4e-6
        assert ours.tobytes() != theirs.tobytes()
