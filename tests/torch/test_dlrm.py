"""A DLRM in PyTorch, plugged in by the protocol, gives the numbers of the built-in one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

from cprsim.measuring.design import Design
from cprsim.measuring.own_model import OwnModel
from cprsim.measuring.protocol import Predictions
from cprsim.measuring.runs import forked, setting_of
from cprsim.scenario.reading import load_scenario
from cprsim.torch import TensorBatches, Trainer
from tests.measuring.conftest import JOB

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from dlrm_criteo import Dlrm, loss_of, optimizers_of

KERNEL = (
    "{{samples: 7600, most_rows: 200, dimension: 8, bottom: [16], top: [16], optimizer: {}, "
    "rate: {}, batch: 64, schedule: constant}}"
)
OPTIMIZERS = {"sgd": ("sgd", 0.2), "adagrad": ("rowwise-adagrad", 0.02), "adam": ("adam", 0.003)}
# SCAR is left out: of rows that moved nearly as far, the last digits decide which is saved
DESIGN = Design(
    strategies=("partial", "ssu"), n_more=0, shortest=0.3
)  # fmt: skip


def plugged(built_in, name: str):
    """The same model as PyTorch's modules, from the same weights, on the same batches."""
    shape, start = built_in.shape, built_in.trainer()
    first = shape.tables.first_row[:-1]
    module = Dlrm(shape.tables.rows, shape.dimension, shape.bottom, shape.top)
    for table, one in enumerate(module.embeddings):
        one.weight.data = torch.tensor(start.model.table[shape.tables.of(table)])
    for stack, layers in ((module.bottom, start.model.bottom), (module.top, start.model.top)):
        linears = [one for one in stack if isinstance(one, torch.nn.Linear)]
        for linear, (weight, bias) in zip(linears, layers.layers, strict=True):
            linear.weight.data, linear.bias.data = torch.tensor(weight.T.copy()), torch.tensor(bias)

    def tensors(clicks):
        rows = torch.tensor(clicks.rows - first)
        return torch.tensor(clicks.integers), rows, torch.tensor(clicks.label)

    test = tensors(built_in.test)
    optimizers = optimizers_of(module, *OPTIMIZERS[name])
    batches = TensorBatches(*tensors(built_in.train), batch=built_in.plan.batch)
    evaluate = lambda module: Predictions(test[2].numpy(), module(test[0], test[1]).numpy())  # noqa: E731
    own = Trainer(module, optimizers, batches, loss_of, evaluate)
    return OwnModel(own, built_in.plan.seed)


@pytest.fixture(params=OPTIMIZERS)
def both(request, tmp_path):
    path = tmp_path / "small.yaml"
    kernel = KERNEL.format(request.param, OPTIMIZERS[request.param][1])
    path.write_text(JOB.replace("KERNEL", kernel))
    built_in = setting_of(load_scenario(path), 1)
    return built_in, plugged(built_in, request.param)


def test_logits_are_the_built_ins_for_a_hundred_steps(both) -> None:
    built_in, theirs = both
    ours = built_in.trainer()
    for step in range(10, 101, 10):
        ours.run(step * 64)
        theirs.run(step * 64)
        logit = theirs.trainer.evaluate().logit
        np.testing.assert_allclose(ours.predict(built_in.test), logit, atol=1e-5)
    assert np.abs(logit).max() > 0.5


def later(failure):
    return replace(failure, at_fraction=0.4 + 0.6 * failure.at_fraction)


def test_losses_of_whole_runs_are_the_built_ins(both) -> None:
    built_in, own = both
    # in the last 0.6: of runs that part early, rounding alone drives the ends apart
    trials = [replace(t, failures=tuple(map(later, t.failures))) for t in DESIGN.trials(3, 4)]
    all_fail = [replace(one, servers=(0, 1, 2, 3)) for one in trials[-1].failures]
    trials.append(replace(trials[-1], failures=tuple(all_fail)))
    ours, theirs = (forked(model, built_in.shards, trials) for model in (built_in.trainer(), own))
    lost = []
    for trial in trials:
        for metric in ("auc", "log_loss"):
            one, other = (
                getattr(quality, metric) - getattr(twin, metric)
                for twin, quality in ((who[0], who[1][trial]) for who in (ours, theirs))
            )
            lost.append(abs(one))
            assert one == pytest.approx(other, abs=2e-5), (trial, metric)
    assert max(lost) > 1e-3  # failures did cost something
