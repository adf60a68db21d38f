"""A DLRM in PyTorch, plugged in by the protocol, gives the numbers of the built-in one."""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

from cprsim.scenario.reading import load_scenario
from cprsim.torch import TensorBatches, Trainer
from cprsim.training.measuring.own_model import OwnModel
from cprsim.training.measuring.protocol import Predictions
from cprsim.training.measuring.runs import setting_of
from tests.measuring.conftest import JOB

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from dlrm_criteo import Dlrm, loss_of, optimizers_of

KERNEL = (
    "{{samples: 7600, most_rows: 200, dimension: 8, bottom: [16], top: [16], optimizer: {}, "
    "rate: {}, batch: 64, schedule: constant}}"
)
OPTIMIZERS = {"sgd": ("sgd", 0.2), "adagrad": ("rowwise-adagrad", 0.02), "adam": ("adam", 0.003)}


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


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_logits_are_the_built_ins_for_a_hundred_steps(name, tmp_path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(JOB.replace("KERNEL", KERNEL.format(name, OPTIMIZERS[name][1])))
    built_in = setting_of(load_scenario(path), 1)
    ours, theirs = built_in.trainer(), plugged(built_in, name)
    for step in range(10, 101, 10):
        ours.run(step * 64)
        theirs.run(step * 64)
        logit = theirs.trainer.evaluate().logit
        np.testing.assert_allclose(ours.predict(built_in.test), logit, atol=1e-5)
    assert np.abs(logit).max() > 0.5
