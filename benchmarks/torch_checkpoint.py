"""What `cprsim.torch.PriorityCheckpoint` costs: per training step, per save, per restore.

    python benchmarks/torch_checkpoint.py [--rows 1000000] [--tables 4] [--steps 60]

Steps are timed in turns with a tracker and without, in CPU time, which a busy machine stretches
little. Saves are beside `torch.save` of the same tables, both with fsync, the least of three turns
each. Needs PyTorch: pip install 'cprsim[torch]'.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import torch

from cprsim.torch import PriorityCheckpoint, RowWiseAdagrad

BATCH, DIMENSION = 2048, 64


class Model(torch.nn.Module):
    """Tables of one size, and an MLP of some weight."""

    def __init__(self, n_tables: int, n_rows: int) -> None:
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(n_rows, DIMENSION, mode="sum", sparse=True)
            for _ in range(n_tables)
        )
        self.top = torch.nn.Sequential(
            torch.nn.Linear(DIMENSION * n_tables, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256),
            torch.nn.ReLU(), torch.nn.Linear(256, 1),
        )  # fmt: skip

    def forward(self, rows):
        columns = [one(rows[:, i : i + 1]) for i, one in enumerate(self.tables)]
        return self.top(torch.cat(columns, dim=1))[:, 0]


def timed(what, clock=perf_counter) -> float:
    began = clock()
    what()
    return clock() - began


def in_turns(one, other, n: int = 3) -> tuple[str, str, str]:
    """Least wall time of each, and least CPU time, in n turns; the ratio of both."""
    wall, cpu = ([[], []] for _ in range(2))
    for _ in range(n):
        for number, what in enumerate((one, other)):
            began = process_time()
            wall[number].append(timed(what))
            cpu[number].append(process_time() - began)
    (a, b), (c, d) = (map(min, times) for times in (wall, cpu))
    return f"{a:.2f} s (CPU {c:.2f})", f"{b:.2f} s (CPU {d:.2f})", f"{b / a:.2f} x, CPU {d / c:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()
    rng = np.random.default_rng(1)
    model = Model(asked.tables, asked.rows)
    tables, layers = list(model.tables.parameters()), list(model.top.parameters())
    optimizers = [RowWiseAdagrad(tables, lr=0.01), torch.optim.Adagrad(layers, lr=0.01)]

    def step() -> None:
        rows = torch.tensor((rng.random((BATCH, asked.tables)) ** 4 * asked.rows).astype(np.int64))
        for one in optimizers:
            one.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            model(rows), (rows[:, 0] % 2).float()
        )
        loss.backward()
        for one in optimizers:
            one.step()

    n_bytes = sum(table.numel() * 4 + len(table) * 4 for table in tables)
    print(f"{asked.tables} tables of {asked.rows:,} rows of {DIMENSION}: {n_bytes / 1e9:.2f} GB")
    with tempfile.TemporaryDirectory() as folder:
        for strategy in ("mfu", "ssu", "scar"):
            measure(Path(folder) / strategy, model, optimizers, strategy, step, asked.steps)
        compare(Path(folder), model, optimizers, n_bytes)


def measure(folder, model, optimizers, strategy, step, n_steps) -> None:
    """CPU time of a step alone, and of listening and bookkeeping beside it; one sub-save."""
    checkpoint = PriorityCheckpoint(folder, model, optimizers, strategy=strategy, n_shards=8)
    listening = checkpoint.followed.accesses
    steps, heard, kept = [], [], []
    for number in range(n_steps + 5):
        listening.listens = False
        alone = timed(step, process_time)
        listening.listens = True
        listened = timed(step, process_time)
        beside = timed(lambda: checkpoint.step(BATCH), process_time)
        if number >= 5:  # the first compile
            steps.append(alone)
            heard.append(listened - alone)
            kept.append(beside)
    saving = timed(lambda: checkpoint.save(False))
    step_ms, kept_share = 1e3 * median(steps), median(kept) / median(steps)
    print(
        f"{strategy:6} step {step_ms:7.2f} ms, bookkeeping {1e3 * median(kept):6.3f} ms "
        f"({kept_share:.2%}), listening {median(heard) / median(steps):.2%} (two steps' "
        f"difference: noisy); sub-save {saving:.2f} s"
    )
    checkpoint.followed.close()
    for path in folder.iterdir():
        path.unlink()


def compare(folder: Path, model, optimizers, n_bytes: int) -> None:
    """Whole saves and restores beside torch.save and torch.load of the same tables."""
    path = folder / "torch.pt"

    def torch_save() -> None:
        state = [
            {"w": t.weight.data, "s": optimizers[0].state[t.weight]["sum"]} for t in model.tables
        ]
        with path.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())

    def torch_load() -> None:
        for table, one in zip(model.tables, torch.load(path), strict=True):
            table.weight.data.copy_(one["w"])
            optimizers[0].state[table.weight]["sum"].copy_(one["s"])

    checkpoint = PriorityCheckpoint(folder / "whole", model, optimizers, n_shards=8)
    theirs, ours, ratio = in_turns(torch_save, checkpoint.save_all)
    print(f"whole save: torch.save {theirs}, ours {ours}: {ratio}")
    theirs, ours, ratio = in_turns(torch_load, checkpoint.restore_all)
    print(f"whole restore: torch.load {theirs}, ours {ours}: {ratio}")
    some = timed(lambda: checkpoint.restore([3]))
    print(f"restore of 1 shard of 8: {some:.2f} s, {n_bytes / 8 / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
