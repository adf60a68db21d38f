"""The built-in model behind the protocol of one's own: its forks have to be what they are without.

Also the factories that tests name in scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import Clicks, split
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan
from cprsim.training.measuring.protocol import Predictions


class WrappedTable:
    """One table of the fused one."""

    def __init__(self, trainer: ProxyTrainer, of: slice) -> None:
        self.trainer, self.of = trainer, of

    @property
    def n_rows(self) -> int:
        return self.of.stop - self.of.start

    def _parts(self):
        state = self.trainer.optimizer.row_state
        return (self.trainer.model.table, state) if len(state) else (self.trainer.model.table,)

    def get_rows(self, rows):
        return [part[self.of.start + rows] for part in self._parts()]

    def set_rows(self, rows, parts) -> None:
        for ours, theirs in zip(self._parts(), parts, strict=True):
            ours[self.of.start + rows] = theirs


class Wrapped:
    """The built-in trainer, as if somebody else had written it."""

    moves_only_accessed = True

    def __init__(self, shape: ModelShape, train: Clicks, test: Clicks, plan: TrainingPlan) -> None:
        self.inner = ProxyTrainer(shape, train, plan)
        self.test = test
        self.tables = {
            f"table {number}": WrappedTable(self.inner, shape.tables.of(number))
            for number in range(shape.tables.n_tables)
        }
        self.first_row = shape.tables.first_row[:-1]
        inner = self.inner
        self.n_samples, self.on_grid = inner.n_samples, inner.on_grid
        self.state, self.restore = inner.state, inner.restore

    def train(self, first: int, last: int, note) -> None:
        def observe(rows) -> None:
            note(dict(zip(self.tables, (rows - self.first_row).T, strict=True)))

        assert self.inner.position == first
        self.inner.observe = observe
        self.inner.run(last)

    def evaluate(self) -> Predictions:
        return Predictions(self.test.label, self.inner.predict(self.test))

    def _dense(self):
        return self.inner.model.dense, self.inner.optimizer.dense_state

    def get_dense(self) -> bytes:
        return b"".join(array.tobytes() for array in self._dense())

    def set_dense(self, blob: bytes) -> None:
        both = np.frombuffer(blob, np.float32)
        n = len(self.inner.model.dense)
        for array, part in zip(self._dense(), (both[:n], both[n:]), strict=True):
            array[:] = part

    def describe(self) -> dict[str, Any]:
        return {"framework": "numpy", "data": self.inner.clicks.digest()}


def make(seed: int, options: Mapping[str, Any]) -> Wrapped:
    """A small one on generated clicks, as `cprsim measure` would make it."""
    train, test = split(generate(TableLayout((40, 3, 300)), options["samples"], seed)[0])
    shape = ModelShape(train.tables, 4, (8,), (8,))
    plan = TrainingPlan(50, rate=0.03, schedule="linear", optimizer="adagrad", seed=seed)
    return Wrapped(shape, train, test, plan)
