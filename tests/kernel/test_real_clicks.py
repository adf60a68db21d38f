"""Real clicks, where CPRSIM_DATA names the folder that holds them."""

import os
from pathlib import Path

import numpy as np
import pytest

from cprsim.job.model_shape import ModelShape
from cprsim.training.kernel.clicks.criteo import read_log
from cprsim.training.kernel.clicks.encoding import encode
from cprsim.training.kernel.clicks.records import n_train
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan

LOG = "ctr/criteo-kaggle-137k/train.tsv.xz"


@pytest.mark.skipif("CPRSIM_DATA" not in os.environ, reason="CPRSIM_DATA names no click logs")
def test_one_pass_of_adagrad_predicts_the_seventh_day():
    raw, skipped = read_log(Path(os.environ["CPRSIM_DATA"]) / LOG)
    assert (len(raw), skipped) == (137_139, 0)
    assert raw.label.mean() == pytest.approx(0.2568, abs=5e-5)
    assert np.isnan(raw.integers[:, 11]).mean() == pytest.approx(0.765, abs=5e-4)
    at = n_train(len(raw))
    train, test = encode(raw[:at], raw[at:], least_count=2)
    plan = TrainingPlan(rate=0.03, optimizer="adagrad")  # chosen on the sixth day
    trainer = ProxyTrainer(ModelShape(train.tables), train, plan, test=test)
    trainer.run()
    reached = trainer.evaluate()
    assert reached.auc >= 0.755  # logistic regression: 0.7613
    assert reached.log_loss <= 0.492
