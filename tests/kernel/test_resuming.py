"""Training: the learning rate, where it is too high, and trainers in step."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.errors import ParameterError


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
