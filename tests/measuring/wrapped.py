"""The built-in model behind the protocol of one's own: its forks have to be what they are without.

Also the factories that tests name in scenarios.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import Clicks, split
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan
from cprsim.training.measuring.own_model import CopiedTable
from cprsim.training.measuring.protocol import Predictions


class Wrapped:
    """The built-in trainer, as if somebody else had written it."""

    moves_only_accessed = True

    def __init__(self, shape: ModelShape, train: Clicks, test: Clicks, plan: TrainingPlan) -> None:
        self.inner = ProxyTrainer(shape, train, plan)
        self.test = test
        inner, tables = self.inner, shape.tables
        state = inner.optimizer.row_state
        parts = (inner.model.table, state) if state.size else (inner.model.table,)
        self.tables = {
            f"table {number}": CopiedTable(
                tuple(part[tables.of(number)] for part in parts)
            )  # views
            for number in range(tables.n_tables)
        }
        self.first_row = tables.first_row[:-1]
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

    def get_dense(self) -> bytes:
        return b"".join(array.tobytes() for array in self.inner.weights.read_dense())

    def set_dense(self, blob: bytes) -> None:
        both, n = np.frombuffer(blob, np.float32), len(self.inner.model.dense)
        self.inner.weights.write_dense((both[:n], both[n:]))

    def describe(self) -> dict[str, Any]:
        return {"framework": "numpy", "data": len(self.inner.clicks)}


def make(seed: int, options: Mapping[str, Any]) -> Wrapped:
    """A small one on generated clicks, as `cprsim measure` would make it."""
    train, test = split(generate(TableLayout((40, 3, 300)), options["samples"], seed)[0])
    shape = ModelShape(train.tables, 4, (8,), (8,))
    plan = TrainingPlan(50, rate=0.03, schedule="linear", optimizer="adagrad", seed=seed)
    return Wrapped(shape, train, test, plan)
