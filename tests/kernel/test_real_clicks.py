"""Real clicks, where CPRSIM_DATA names the folder that holds them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cprsim.kernel.clicks.criteo import read_log
from cprsim.kernel.clicks.encoding import encode
from cprsim.kernel.clicks.records import RawClicks, n_train
from cprsim.kernel.shape import ModelShape
from cprsim.kernel.training import ProxyTrainer, TrainingPlan

LOG = "ctr/criteo-kaggle-137k/train.tsv.xz"


@pytest.fixture(scope="module")
def raw() -> RawClicks:
    if "CPRSIM_DATA" not in os.environ:
        pytest.skip("CPRSIM_DATA does not name a folder with click logs")
    clicks, skipped = read_log(Path(os.environ["CPRSIM_DATA"]) / LOG)
    assert skipped == 0
    return clicks


def test_the_log_is_the_one_that_others_read(raw):
    missing = np.isnan(raw.integers).mean(axis=0)
    assert len(raw) == 137_139
    assert raw.label.mean() == pytest.approx(0.2568, abs=5e-5)
    assert missing[11] == pytest.approx(0.765, abs=5e-4)
    assert missing[[0, 9]] == pytest.approx(0.451, abs=1e-3)
    assert np.nanmin(raw.integers[:, 1]) == -2
    assert np.nanmax(raw.integers[:, 4]) == 2_071_071


def test_one_pass_of_adagrad_predicts_the_seventh_day(raw):
    at = n_train(len(raw))
    train, test = encode(raw[:at], raw[at:], least_count=2)
    plan = TrainingPlan(rate=0.03, optimizer="adagrad")  # chosen on the sixth day
    trainer = ProxyTrainer(ModelShape(train.tables), train, plan)
    trainer.run()
    reached = trainer.evaluate(test)
    assert reached.auc >= 0.755  # logistic regression: 0.7613
    assert reached.log_loss <= 0.492
