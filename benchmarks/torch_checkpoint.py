"""What `cprsim.torch.PriorityCheckpoint` costs: per training step, per save, per restore.

    python benchmarks/torch_checkpoint.py     # needs PyTorch: pip install 'cprsim[torch]'

CPU time of a step with bookkeeping and without, the medians; of whole saves and restores, both with
fsync, beside `torch.save` and `torch.load` of the same tables, the least of three.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import torch

from cprsim.torch import PriorityCheckpoint, RowWiseAdagrad

N_TABLES, N_ROWS, DIMENSION, BATCH, N_STEPS, WARM = 2, 1_000_000, 64, 2048, 60, 5


class Model(torch.nn.Module):
    """Tables of one size, and an MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(N_ROWS, DIMENSION, mode="sum", sparse=True)
            for _ in range(N_TABLES)
        )
        self.top = torch.nn.Sequential(
            torch.nn.Linear(DIMENSION * N_TABLES, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)
        )

    def forward(self, rows):
        columns = [one(rows[:, i : i + 1]) for i, one in enumerate(self.tables)]
        return self.top(torch.cat(columns, dim=1))[:, 0]


def cpu_s(what) -> float:
    began = process_time()
    what()
    return process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    model = Model()
    tables, layers = list(model.tables.parameters()), list(model.top.parameters())
    optimizers = [RowWiseAdagrad(tables, lr=0.01), torch.optim.Adagrad(layers, lr=0.01)]

    def step() -> None:
        rows = torch.tensor((rng.random((BATCH, N_TABLES)) ** 4 * N_ROWS).astype(np.int64))
        for one in optimizers:
            one.zero_grad()
        label = (rows[:, 0] % 2).float()
        torch.nn.functional.binary_cross_entropy_with_logits(model(rows), label).backward()
        for one in optimizers:
            one.step()

    def torch_save() -> None:
        sums = [optimizers[0].state[table]["sum"] for table in tables]
        with path.open("wb") as file:
            torch.save([[table.data for table in tables], sums], file)
            file.flush()
            os.fsync(file.fileno())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "torch.pt"
        checkpoint = PriorityCheckpoint(
            Path(folder) / "ours", model, optimizers, strategy="mfu", n_shards=8
        )
        listening, alone, beside = checkpoint.followed.accesses, [], []
        for _ in range(N_STEPS + WARM):
            listening.listens = False
            alone.append(cpu_s(step))
            listening.listens = True
            beside.append(cpu_s(step) + cpu_s(lambda: checkpoint.step(BATCH)))
        a, b = median(alone[WARM:]), median(beside[WARM:])
        print(f"mfu: a step of {1e3 * a:.1f} ms, {b / a - 1:.1%} more with bookkeeping")
        for name, theirs, ours in (
            ("save", torch_save, checkpoint.save_all),
            ("restore", lambda: torch.load(path), checkpoint.restore_all),
        ):
            a, b = (min(cpu_s(what) for _ in range(3)) for what in (theirs, ours))
            print(f"whole {name}: {b:.2f} s, torch {a:.2f} s: {b / a:.1f} x")


if __name__ == "__main__":
    main()
