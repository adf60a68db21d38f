"""How gradients become updates: SGD and row-wise Adagrad, and the learning rate over a run.

Row-wise Adagrad keeps one number per embedding row (the sum of mean squared gradients), 1/d of
what Adagrad would keep; the dense layers get plain Adagrad. A row's gradient is the sum over all
its occurrences in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.loops import Array, adagrad_dense, adagrad_rows, sgd_dense, sgd_rows, sum_by_row
from cprsim.kernel.model import Dlrm

EPSILON = 1e-10  # torch.optim.Adagrad's


class RowGradients(Protocol):
    """What the rows' part of a step takes of a batch."""

    d_fields: Array  # (n, 1 + n_tables, d): the gradient of each occurrence of a row, from 1 on


class BatchGradients(RowGradients, Protocol):
    """What a whole step takes."""

    d_dense: Array  # (n_dense,)


class Optimizer(Protocol):
    """Updates a model in place from the gradients of a batch."""

    row_state: Array  # (n_rows,) what it keeps per embedding row; (0,) where nothing
    dense_state: Array  # (n_dense,) or (0,)

    def update(self, rows: Array, work: BatchGradients, changed: Array, rate: float) -> None:
        """One step for the batch with these rows (n, n_tables); sets changed[row] (n_rows,)."""

    def update_rows(self, rows: Array, work: RowGradients, changed: Array, rate: float) -> None:
        """The part of a step that concerns the embedding rows."""

    def update_dense(self, gradient: Array, rate: float) -> None:
        """The part that concerns the layers; `gradient` is (n_dense,)."""


class Sgd:
    """Plain stochastic gradient descent; keeps nothing."""

    def __init__(self, model: Dlrm) -> None:
        self.model = model
        self.row_state = np.zeros(0, np.float32)
        self.dense_state = np.zeros(0, np.float32)

    def update(self, rows: Array, work: BatchGradients, changed: Array, rate: float) -> None:
        self.update_rows(rows, work, changed, rate)
        self.update_dense(work.d_dense, rate)

    def update_rows(self, rows: Array, work: RowGradients, changed: Array, rate: float) -> None:
        sgd_rows(self.model.table, changed, rows, work.d_fields, rate)

    def update_dense(self, gradient: Array, rate: float) -> None:
        sgd_dense(self.model.dense, gradient, rate)


class RowwiseAdagrad:
    """Adagrad with one sum of squares per embedding row, elementwise in the dense layers."""

    def __init__(self, model: Dlrm) -> None:
        self.model = model
        dtype = model.dense.dtype
        self.row_state = np.zeros(len(model.table), dtype)
        self.dense_state = np.zeros_like(model.dense)
        self._place = np.zeros(len(model.table), np.int32)
        self._unique = np.zeros(0, np.int32)
        self._sums = np.zeros((0, model.shape.dimension), dtype)

    def update(self, rows: Array, work: BatchGradients, changed: Array, rate: float) -> None:
        self.update_rows(rows, work, changed, rate)
        self.update_dense(work.d_dense, rate)

    def update_rows(self, rows: Array, work: RowGradients, changed: Array, rate: float) -> None:
        self._reserve(rows.size)
        m = sum_by_row(rows, work.d_fields, self._place, self._unique, self._sums)
        adagrad_rows(
            self.model.table,
            self.row_state,
            changed,
            self._unique[:m],
            self._sums[:m],
            rate,
            EPSILON,
        )

    def update_dense(self, gradient: Array, rate: float) -> None:
        adagrad_dense(self.model.dense, self.dense_state, gradient, rate, EPSILON)

    def _reserve(self, n_occurrences: int) -> None:
        if len(self._unique) < n_occurrences:
            self._unique = np.zeros(n_occurrences, np.int32)
            self._sums = np.zeros((n_occurrences, self._sums.shape[1]), self._sums.dtype)


OPTIMIZERS: dict[str, type[Sgd] | type[RowwiseAdagrad]] = {"sgd": Sgd, "adagrad": RowwiseAdagrad}


def constant(rate: float, progress_fraction: float) -> float:
    """The same rate throughout, as in the paper."""
    del progress_fraction
    return rate


def linear(rate: float, progress_fraction: float) -> float:
    """From `rate` at the start down to 0 at the end of the run."""
    return rate * (1.0 - progress_fraction)


SCHEDULES: dict[str, Callable[[float, float], float]] = {"constant": constant, "linear": linear}


def optimizer_for(name: str, model: Dlrm) -> Optimizer:
    """The optimiser of this name for this model. Raises ParameterError for an unknown name."""
    if name not in OPTIMIZERS:
        raise ParameterError(f"unknown optimizer `{name}`; one of {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name](model)
