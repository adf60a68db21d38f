"""Data of every process of a rehearsal: model, clicks, plan, and the server of each row.

The fork server gets it once, and the processes that it forks share its memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.job.model_shape import ModelShape
from cprsim.job.records import Ints
from cprsim.training.kernel.clicks.records import Clicks
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.model import Dlrm
from cprsim.training.kernel.shards import Segment, Shards
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """The model and the clicks that are trained, and the shards of its rows."""

    shape: ModelShape
    clicks: Clicks
    plan: TrainingPlan
    shards: Shards
    n_trainers: int = 1  # in step: each has a part of every batch

    def trainer(self) -> ProxyTrainer:
        """The kernel at the start of the same run."""
        return ProxyTrainer(self.shape, self.clicks, self.plan, n_parts=self.n_trainers)

    @property
    def n_samples(self) -> int:
        """Samples of the whole run, all epochs."""
        return len(self.clicks) * self.plan.epochs

    def on_grid(self, samples: float) -> int:
        """The position between two batches that is nearest to a number of samples."""
        return self.plan.on_grid(samples, len(self.clicks))

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, its optimiser state included."""
        d = self.shape.dimension
        return 4 * (d + {"sgd": 0, "adagrad": 1, "adam": 2 * d}[self.plan.optimizer])


def image_bytes(material: Material) -> float:
    """Bytes of the largest shard."""
    return float(material.shards.share.max()) * material.shards.layout.n_rows * material.row_bytes


def places(shards: Shards) -> tuple[Array, Array]:
    """Where each row of the fused table (n_rows,) lies: on which server, and at which place."""
    n_rows = shards.layout.n_rows
    server, place = np.zeros(n_rows, np.int32), np.zeros(n_rows, np.int32)
    for number in range(shards.n_servers):
        rows = rows_of(shards, number)
        server[rows], place[rows] = number, np.arange(len(rows))
    return server, place


def segments_of(shards: Shards, server: int) -> tuple[Segment, ...]:
    """The segments of one server in the order of the tables."""
    return tuple(sorted(shards.of_servers([server]), key=lambda segment: segment.table))


def rows_of(shards: Shards, server: int) -> Ints:
    """Fused ids of a server's rows, in the order in which they lie there."""
    segments = segments_of(shards, server)
    if not segments:
        return np.zeros(0, np.int64)
    return np.concatenate([segment.ids(np.arange(segment.n_rows)) for segment in segments])


def fresh_model(material: Material) -> Dlrm:
    """The weights at the start of a run."""
    model = Dlrm(material.shape)
    model.initialise(material.plan.seed)
    return model
