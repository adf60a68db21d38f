"""The training loop: batches in the order of the data, nothing allocated, nothing random.

A position is a number of samples on the grid of batches: the loop stops only between two batches,
and events in between (saves, failures) are rounded to the nearest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.model_shape import ModelShape
from cprsim.training.kernel.blas import one_thread
from cprsim.training.kernel.clicks.records import Clicks
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.metrics import Quality, quality
from cprsim.training.kernel.model import Dlrm, Workspace
from cprsim.training.kernel.optimizers import OPTIMIZERS, SCHEDULES
from cprsim.training.kernel.weights import FusedWeights

EVALUATION_BATCH = 1024


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How a model is trained, apart from its shape and its data."""

    batch: int = 128
    rate: float = 0.1
    schedule: str = "constant"  # of SCHEDULES
    optimizer: str = "sgd"  # of OPTIMIZERS
    epochs: int = 1
    seed: int = 1  # of the initial weights

    def on_grid(self, samples: float, n_clicks: int) -> int:
        """The position between two batches that is nearest to a number of samples."""
        epoch, within = divmod(min(max(samples, 0), n_clicks * self.epochs), n_clicks)
        before = int(within // self.batch) * self.batch
        after = min(before + self.batch, n_clicks)  # the last batch may be shorter
        nearest = before if within - before <= after - within else after
        return int(epoch) * n_clicks + nearest


Gradients = tuple[Array, Array]
"""Of the mean loss of n samples, a batch or a part of one: of the layers (n_dense,), and of each
field (n, 1 + n_tables, d)."""


def part_of(batch: slice, part: int, n_parts: int) -> slice:
    """One of n parts of a batch, as even as can be; it may be empty."""
    n = batch.stop - batch.start
    return slice(batch.start + n * part // n_parts, batch.start + n * (part + 1) // n_parts)


def sum_of_parts(parts: Sequence[Gradients]) -> Gradients:
    """The gradients of a batch from those of its parts, in their order: always the same bits."""
    n = sum(len(d_fields) for _, d_fields in parts)
    shares = [np.float32(len(d_fields) / n) for _, d_fields in parts]
    scaled = [(share * d, share * f) for share, (d, f) in zip(shares, parts, strict=True)]
    d_dense = scaled[0][0]
    for d_dense_of_part, _ in scaled[1:]:
        d_dense += d_dense_of_part
    return d_dense, np.concatenate([d_fields for _, d_fields in scaled])


class ProxyTrainer:
    """A model in training on the clicks, at the start of its run when it is made.

    `changed` (n_rows,) marks the embedding rows that moved; a save clears it.
    `observe`, where given, sees the rows (n, n_tables) of each batch after its update.
    `test` has the samples of its evaluation.
    With `n_parts` a batch is trained as by `n_parts` trainers in step, each with a part.
    """

    def __init__(
        self,
        shape: ModelShape,
        clicks: Clicks,
        plan: TrainingPlan,
        n_parts: int = 1,
        test: Clicks | None = None,
    ) -> None:
        self.shape, self.clicks, self.plan = shape, clicks, plan
        self.observe: Callable[[Array], None] | None = None
        self.test = clicks if test is None else test
        self.n_samples, self.seed = len(clicks) * plan.epochs, plan.seed
        self._n_parts = n_parts
        self.model = Dlrm(shape)
        self.model.initialise(plan.seed)
        self.optimizer = OPTIMIZERS[plan.optimizer](self.model)
        self.changed = np.zeros(shape.tables.n_rows, np.uint8)
        self._position = np.zeros(1, np.int64)
        self._schedule = SCHEDULES[plan.schedule]
        self._workspace = cache(partial(Workspace, self.model))

    @property
    def position(self) -> int:
        return int(self._position[0])

    @property
    def weights(self) -> FusedWeights:
        model, optimizer = self.model, self.optimizer
        return FusedWeights(model.table, optimizer.row_state, model.dense, optimizer.dense_state)

    def on_grid(self, samples: float) -> int:
        return self.plan.on_grid(samples, len(self.clicks))

    def run(self, until: int | None = None) -> float:
        """Train up to a position on the grid (None: the end); the mean loss on the way [nats]."""
        until = self.n_samples if until is None else until
        first, total = self.position, 0.0
        overflow_shows_in_the_loss = np.errstate(over="ignore", invalid="ignore")
        with one_thread(), overflow_shows_in_the_loss:
            while self.position < until:
                total += self._step()
        if not np.isfinite(total):
            raise ParameterError(
                f"training diverged before sample {until}: the learning rate "
                f"{self.plan.rate:g} is too high"
            )
        return total / max(until - first, 1)

    def _step(self) -> float:
        """One batch: forward, backward, update. Returns the summed loss of its samples."""
        first = self.position % len(self.clicks)
        batch = slice(first, min(first + self.plan.batch, len(self.clicks)))
        rows = self.clicks.rows[batch]
        rate = self._schedule(self.plan.rate, self.position / self.n_samples)
        learn = self._learn if self._n_parts == 1 else self._learn_parts
        loss, (d_dense, d_fields) = learn(batch)
        row_rate = self.optimizer.row_rate(rate)
        self.optimizer.update_rows(rows, d_fields, self.changed, row_rate)
        self.optimizer.update_dense(d_dense, rate)
        if self.observe is not None:
            self.observe(rows)
        self._position += len(rows)
        return loss

    def _learn(self, some: slice) -> tuple[float, Gradients]:
        """Summed loss and gradients of some samples, which live until the next as many."""
        clicks = self.clicks
        return learned(self.model, clicks, some, clicks.rows[some], self._workspace)

    def _learn_parts(self, batch: slice) -> tuple[float, Gradients]:
        loss, parts = 0.0, []
        for part in range(self._n_parts):
            its_loss, (d_dense, d_fields) = self._learn(part_of(batch, part, self._n_parts))
            loss += its_loss
            parts.append((d_dense.copy(), d_fields.copy()))
        return loss, sum_of_parts(parts)

    def predict(self, clicks: Clicks) -> Array:
        """Logits (n,) of clicks that the model is not trained on."""
        return predict(self.model, clicks, self._workspace)

    def evaluate(self, clicks: Clicks | None = None) -> Quality:
        """On the test clicks, or on others."""
        clicks = self.test if clicks is None else clicks
        return quality(clicks.label, self.predict(clicks))

    def state(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self.arrays().items()}

    def restore(self, state: dict[str, Array]) -> None:
        for name, array in self.arrays().items():
            np.copyto(array, state[name], casting="no")

    def arrays(self) -> dict[str, Array]:
        """Live arrays that decide the rest of the run."""
        return {
            "table": self.model.table,
            "dense": self.model.dense,
            "row_state": self.optimizer.row_state,
            "dense_state": self.optimizer.dense_state,
            "changed": self.changed,
            "position": self._position,
        }


def learned(
    model: Dlrm, clicks: Clicks, some: slice, rows: Array, workspace: Callable[[int], Workspace]
) -> tuple[float, Gradients]:
    """Summed loss and gradients of some samples with these rows (n, n_tables) of the table."""
    n = len(rows)
    if not n:
        shape = model.shape
        empty = np.zeros((0, shape.n_fields, shape.dimension), np.float32)
        return 0.0, (np.zeros_like(model.dense), empty)
    work = workspace(n)
    model.forward(clicks.integers[some], rows, work)
    loss = model.backward(clicks.integers[some], clicks.label[some], work)
    return loss * n, (work.d_dense, work.d_fields)


def predict(model: Dlrm, clicks: Clicks, workspace: Callable[[int], Workspace]) -> Array:
    """Logits (n,) of clicks; `workspace` gives the buffers for a number of samples."""
    logits = np.empty(len(clicks), np.float32)
    with one_thread():
        for first in range(0, len(clicks), EVALUATION_BATCH):
            some = slice(first, min(first + EVALUATION_BATCH, len(clicks)))
            work = workspace(some.stop - some.start)
            logits[some] = model.forward(clicks.integers[some], clicks.rows[some], work)
    return logits
