"""Forward, loss and 100 training steps against PyTorch: same weights, same batches."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.kernel.clicks.generated import generate
from cprsim.kernel.model import Dlrm, Workspace
from cprsim.kernel.optimizers import optimizer_for
from cprsim.kernel.shape import ModelShape, TableLayout

torch = pytest.importorskip("torch", reason="the oracle is PyTorch: pip install cprsim[torch]")
torch.set_num_threads(1)

SHAPE = ModelShape(TableLayout((300, 4, 70, 1000, 30)), dimension=16, bottom=(32, 24), top=(40, 20))
BATCH, STEPS, EPSILON = 64, 100, 1e-10
RATES = {"sgd": 0.2, "adagrad": 0.02, "adam": 0.003}
TOLERANCE = 1e-5


class TorchDlrm(torch.nn.Module):
    """The same model in PyTorch's words, started from our weights."""

    def __init__(self, ours: Dlrm) -> None:
        super().__init__()
        f = ours.shape.n_fields
        self.lower = torch.tril_indices(f, f, -1)
        self.table = torch.nn.Parameter(torch.tensor(ours.table))
        self.bottom = self._stack(ours.bottom.layers, relu_last=True)
        self.top = self._stack(ours.top.layers, relu_last=False)

    @staticmethod
    def _stack(layers, relu_last: bool):
        modules = []
        for number, (weight, bias) in enumerate(layers):
            linear = torch.nn.Linear(*weight.shape)
            linear.weight.data = torch.tensor(weight.T.copy())
            linear.bias.data = torch.tensor(bias)
            modules.append(linear)
            if relu_last or number < len(layers) - 1:
                modules.append(torch.nn.ReLU())
        return torch.nn.Sequential(*modules)

    def forward(self, integers, rows):
        bottom = self.bottom(integers)
        looked_up = torch.nn.functional.embedding(rows, self.table, sparse=True)
        fields = torch.cat([bottom[:, None], looked_up], dim=1)
        pairs = (fields @ fields.transpose(1, 2))[:, self.lower[0], self.lower[1]]
        return self.top(torch.cat([bottom, pairs], dim=1))[:, 0]


class TorchUpdate:
    """SGD, Adam of the rows looked up, or Adagrad with one sum of mean squares per row."""

    def __init__(self, model: TorchDlrm, name: str) -> None:
        self.table = model.table
        self.rate = RATES[name]
        self.squares = torch.zeros(len(model.table)) if name == "adagrad" else None
        dense = [*model.bottom.parameters(), *model.top.parameters()]
        kinds = {"adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        self.layers = kinds[name](dense, lr=self.rate)
        self.sparse = torch.optim.SparseAdam([self.table], lr=self.rate) if name == "adam" else None

    @torch.no_grad()
    def step(self) -> None:
        self.layers.step()
        if self.sparse is not None:
            self.sparse.step()
        else:
            self._step_rows(self.table.grad.to_dense())
        self.table.grad = None
        self.layers.zero_grad()

    def _step_rows(self, gradient) -> None:
        if self.squares is None:
            self.table -= self.rate * gradient
        else:
            self.squares += (gradient**2).mean(dim=1)
            self.table -= self.rate * gradient / (self.squares.sqrt() + EPSILON)[:, None]


@pytest.mark.parametrize("name", RATES)
def test_a_hundred_steps_are_pytorchs(name):
    clicks = generate(SHAPE.tables, BATCH * STEPS, seed=2).clicks
    ours = Dlrm(SHAPE)
    ours.initialise(seed=4)
    theirs = TorchDlrm(ours)
    our_update, their_update = optimizer_for(name, ours), TorchUpdate(theirs, name)
    work, changed = Workspace(ours, BATCH), np.zeros(len(ours.table), np.uint8)
    start = ours.table.copy()
    for first in range(0, BATCH * STEPS, BATCH):
        some = slice(first, first + BATCH)
        integers, rows, label = clicks.integers[some], clicks.rows[some], clicks.label[some]
        logits = ours.forward(integers, rows, work).copy()
        loss = ours.backward(integers, label, work)
        our_update.update(rows, work, changed, RATES[name])

        their_logits = theirs(torch.tensor(integers), torch.tensor(rows.astype(np.int64)))
        their_loss = torch.nn.functional.binary_cross_entropy_with_logits(
            their_logits, torch.tensor(label)
        )
        their_loss.backward()
        their_update.step()
        np.testing.assert_allclose(logits, their_logits.detach(), atol=TOLERANCE)
        assert loss == pytest.approx(their_loss.item(), abs=TOLERANCE)
    np.testing.assert_allclose(ours.table, theirs.table.detach(), atol=TOLERANCE)
    for ours_layers, stack in ((ours.bottom.layers, theirs.bottom), (ours.top.layers, theirs.top)):
        linears = [module for module in stack if isinstance(module, torch.nn.Linear)]
        for (weight, bias), linear in zip(ours_layers, linears, strict=True):
            np.testing.assert_allclose(weight, linear.weight.detach().T, atol=TOLERANCE)
            np.testing.assert_allclose(bias, linear.bias.detach(), atol=TOLERANCE)
    assert np.abs(ours.table - start).max() > 0.01  # a hundred steps went somewhere
