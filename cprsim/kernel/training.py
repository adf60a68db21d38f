"""The training loop: batches in the order of the data, nothing allocated, nothing random.

A position is a number of samples. It stands on the grid of batches: the loop stops only between
two batches, and what happens in between (saves, failures) is rounded to the nearest one.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.blas import one_thread
from cprsim.kernel.clicks.records import Clicks
from cprsim.kernel.loops import Array
from cprsim.kernel.metrics import Quality, quality
from cprsim.kernel.model import Dlrm, Workspace
from cprsim.kernel.optimizers import SCHEDULES, optimizer_for
from cprsim.kernel.shape import ModelShape
from cprsim.kernel.weights import FusedWeights

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

    def __post_init__(self) -> None:
        if self.batch < 1 or self.epochs < 1 or not 0 < self.rate < np.inf:
            raise ParameterError("batch, epochs and learning rate must be positive")
        if self.schedule not in SCHEDULES:
            raise ParameterError(
                f"unknown schedule `{self.schedule}`; one of {', '.join(SCHEDULES)}"
            )

    def on_grid(self, samples: float, n_clicks: int) -> int:
        """The position between two batches that is nearest to a number of samples.

        Parameters
        ----------
        n_clicks : of one epoch
        """
        epoch, within = divmod(min(max(samples, 0), n_clicks * self.epochs), n_clicks)
        before = int(within // self.batch) * self.batch
        after = min(before + self.batch, n_clicks)  # the last batch may be shorter
        nearest = before if within - before <= after - within else after
        return int(epoch) * n_clicks + nearest


class ProxyTrainer:
    """A model on its way through the clicks.

    `changed` (n_rows,) marks the embedding rows that moved; a save clears it.
    `observe`, where given, sees the rows (n, n_tables) of each batch after its update.
    """

    def __init__(
        self,
        shape: ModelShape,
        clicks: Clicks,
        plan: TrainingPlan,
        observe: Callable[[Array], None] | None = None,
    ) -> None:
        if clicks.tables != shape.tables:
            raise ParameterError("the clicks were encoded for other tables than the model's")
        self.shape, self.clicks, self.plan, self.observe = shape, clicks, plan, observe
        self.model = Dlrm(shape)
        self.optimizer = optimizer_for(plan.optimizer, self.model)
        self.changed = np.zeros(shape.tables.n_rows, np.uint8)
        self._position = np.zeros(1, np.int64)
        self._schedule = SCHEDULES[plan.schedule]
        self._workspaces: dict[int, Workspace] = {}

    def follower(self) -> ProxyTrainer:
        """The same run seen by one more saver: it moves with this one, its marks are its own."""
        one = copy(self)
        one.changed = np.zeros_like(self.changed)
        one.observe = None
        return one

    @property
    def n_samples(self) -> int:
        """Samples in the whole run, all epochs."""
        return len(self.clicks) * self.plan.epochs

    @property
    def position(self) -> int:
        """Samples trained so far."""
        return int(self._position[0])

    @property
    def weights(self) -> FusedWeights:
        """What a save holds of the run, live."""
        model, optimizer = self.model, self.optimizer
        return FusedWeights(model.table, optimizer.row_state, model.dense, optimizer.dense_state)

    @property
    def seed(self) -> int:
        """Of the plan."""
        return self.plan.seed

    def initialise(self) -> None:
        """The start of a run: fresh weights, position 0."""
        self.model.initialise(self.plan.seed)

    def rewind(self, position: int) -> None:
        """Go back in the data only, to a position on the grid; the weights stay."""
        if not 0 <= position <= self.position or position != self.on_grid(position):
            raise ParameterError(f"can't rewind from sample {self.position} to {position}")
        self._position[0] = position

    def on_grid(self, samples: float) -> int:
        """The position between two batches that is nearest to a number of samples."""
        return self.plan.on_grid(samples, len(self.clicks))

    def run(self, until: int | None = None) -> float:
        """Train up to a position on the grid (None: the end); the mean loss on the way [nats].

        Raises ParameterError where `until` is off the grid, behind the position or past the end,
        and where the loss is no longer finite: the rate is too high.
        """
        until = self.n_samples if until is None else until
        if not self.position <= until <= self.n_samples or until != self.on_grid(until):
            raise ParameterError(f"can't train from sample {self.position} to {until}")
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
        integers, rows = self.clicks.integers[batch], self.clicks.rows[batch]
        work = self._workspace(len(rows))
        rate = self._schedule(self.plan.rate, self.position / self.n_samples)
        self.model.forward(integers, rows, work)
        loss = self.model.backward(integers, self.clicks.label[batch], work)
        self.optimizer.update(rows, work, self.changed, rate)
        if self.observe is not None:
            self.observe(rows)
        self._position += len(rows)
        return loss * len(rows)

    def _workspace(self, n: int) -> Workspace:
        if n not in self._workspaces:
            self._workspaces[n] = Workspace(self.model, n)
        return self._workspaces[n]

    def predict(self, clicks: Clicks) -> Array:
        """Logits (n,) of clicks that the model is not trained on."""
        return predict(self.model, clicks, self._workspace)

    def evaluate(self, clicks: Clicks) -> Quality:
        """AUC and log-loss on clicks that the model is not trained on."""
        return quality(clicks.label, self.predict(clicks))

    def state(self) -> dict[str, Array]:
        """Every array that decides how the run goes on, live; restoring them resumes it exactly."""
        return {
            **self.model.state(),
            "row_state": self.optimizer.row_state,
            "dense_state": self.optimizer.dense_state,
            "changed": self.changed,
            "position": self._position,
        }


def predict(model: Dlrm, clicks: Clicks, workspace: Callable[[int], Workspace]) -> Array:
    """Logits (n,) of clicks; `workspace` gives the buffers for so many samples."""
    logits = np.empty(len(clicks), np.float32)
    with one_thread():
        for first in range(0, len(clicks), EVALUATION_BATCH):
            some = slice(first, min(first + EVALUATION_BATCH, len(clicks)))
            work = workspace(some.stop - some.start)
            logits[some] = model.forward(clicks.integers[some], clicks.rows[some], work)
    return logits
