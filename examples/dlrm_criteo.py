"""A DLRM of one's own in PyTorch on a click log in Criteo's format, for `cprsim measure`.

kernel:
  trainer: dlrm_criteo:make
  options: {file: train.tsv, samples: 100000}

Options: file (tab-separated, plain, .gz or .xz), samples (read at most), rows (of each table:
values are hashed into it), dimension, rate, batch, optimizer (sgd, adagrad, rowwise-adagrad, adam).
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cprsim.torch import RowWiseAdagrad, TensorBatches, Trainer
from cprsim.training.measuring.protocol import Predictions

N_INTEGERS, N_CATEGORIES = 13, 26
TEST_SHARE = 1 / 7  # the last of Criteo's seven days


class Dlrm(torch.nn.Module):
    """Bottom MLP, embedding bags, dots of all pairs, top MLP."""

    def __init__(
        self, rows: Sequence[int], dimension: int, bottom: Sequence[int], top: Sequence[int]
    ) -> None:
        super().__init__()
        self.embeddings = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(n, dimension, mode="sum", sparse=True) for n in rows
        )
        n_fields = len(rows) + 1
        self.register_buffer("lower", torch.tril_indices(n_fields, n_fields, -1), persistent=False)
        n_pairs = n_fields * (n_fields - 1) // 2
        self.bottom = mlp([N_INTEGERS, *bottom, dimension], relu_last=True)
        self.top = mlp([dimension + n_pairs, *top, 1], relu_last=False)
        for one in self.embeddings:
            bound = one.num_embeddings**-0.5
            torch.nn.init.uniform_(one.weight, -bound, bound)

    def forward(self, integers: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Logits (n,) of integers (n, 13) and rows (n, n_tables), counted in each table."""
        dense = self.bottom(integers)
        looked_up = [one(rows[:, t : t + 1]) for t, one in enumerate(self.embeddings)]
        fields = torch.stack([dense, *looked_up], dim=1)
        dots = torch.bmm(fields, fields.transpose(1, 2))[:, self.lower[0], self.lower[1]]
        return self.top(torch.cat([dense, dots], dim=1))[:, 0]


def mlp(widths: Sequence[int], relu_last: bool) -> torch.nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[torch.nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*(layers if relu_last else layers[:-1]))


def loss_of(module: Dlrm, batch: Any) -> torch.Tensor:
    """Mean cross-entropy of a batch: integers, rows, labels."""
    integers, rows, label = batch
    return torch.nn.functional.binary_cross_entropy_with_logits(module(integers, rows), label)


def optimizers_of(module: Dlrm, name: str, rate: float) -> list[torch.optim.Optimizer]:
    """One for the tables, whose gradients are sparse, and one for the layers."""
    tables = list(module.embeddings.parameters())
    layers = [*module.bottom.parameters(), *module.top.parameters()]
    if name == "sgd":
        return [torch.optim.SGD(tables + layers, lr=rate)]
    if name == "adam":
        return [torch.optim.SparseAdam(tables, lr=rate), torch.optim.Adam(layers, lr=rate)]
    if name == "rowwise-adagrad":
        return [RowWiseAdagrad(tables, lr=rate), torch.optim.Adagrad(layers, lr=rate)]
    return [torch.optim.Adagrad(tables + layers, lr=rate)]


def read(path: Path, most: int, n_rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Integers (n, 13), hashed categories (n, 26) and labels (n,) of a log."""
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)(path, "rt")
    with opened as file:
        lines = [line.rstrip("\n").split("\t") for line in islice(file, most)]
    label = np.array([line[0] for line in lines], np.float32)
    numbers = np.array([[float(x or 0) for x in line[1:14]] for line in lines])
    integers = np.log1p(np.maximum(numbers, 0)).astype(np.float32)
    rows = np.array([[zlib.crc32(x.encode()) % n_rows for x in line[14:40]] for line in lines])
    return torch.tensor(integers), torch.tensor(rows), torch.tensor(label)


def make(seed: int, options: Mapping[str, Any]) -> Trainer:
    """The trainer of one seed: the log stays, weights begin anew."""
    torch.manual_seed(seed)
    n_rows, batch = int(options.get("rows", 2000)), int(options.get("batch", 128))
    data = read(Path(options["file"]), int(options.get("samples", 1_000_000)), n_rows)
    at = int(len(data[0]) * (1 - TEST_SHARE))
    train, test = [part[:at] for part in data], [part[at:] for part in data]
    module = Dlrm([n_rows] * N_CATEGORIES, int(options.get("dimension", 16)), (64, 32), (64, 32))

    def evaluate(module: Dlrm) -> Predictions:
        return Predictions(test[2].numpy(), module(test[0], test[1]).numpy())

    optimizers = optimizers_of(
        module, options.get("optimizer", "rowwise-adagrad"), float(options.get("rate", 0.02))
    )
    return Trainer(module, optimizers, TensorBatches(*train, batch=batch), loss_of, evaluate)
