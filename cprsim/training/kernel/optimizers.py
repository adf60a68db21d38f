"""How gradients become updates: SGD, row-wise Adagrad, Adam, and the learning rate over a run.

Row-wise Adagrad keeps one number per embedding row (the sum of mean squared gradients), 1/d of
what Adagrad would keep; the dense layers get plain Adagrad. Adam (Kingma & Ba 2015) keeps 2 d
numbers per row and moves the rows that a batch touches alone, corrected by all steps of the run, as
torch.optim.SparseAdam does. A row's gradient is the sum over all its occurrences in the batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cprsim.training.kernel.loops import (
    Array,
    adagrad_dense,
    adagrad_rows,
    adam_dense,
    adam_rows,
    sgd_dense,
    sgd_rows,
    sum_by_row,
)
from cprsim.training.kernel.model import Dlrm

EPSILON = 1e-10  # torch.optim.Adagrad's
BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8  # torch.optim.Adam's


class Optimizer:
    """Updates a model in place from the gradients of a batch: the rows first, then the layers.

    Attributes: `row_state` (n_rows, ...), kept per embedding row, and `dense_state`, kept of the
    layers and of the whole run; of size 0 where it keeps nothing.
    """

    def __init__(self, model: Dlrm, row_state: tuple[int, ...], n_dense_state: int) -> None:
        self.model = model
        self.row_state = np.zeros(row_state, model.dense.dtype)
        self.dense_state = np.zeros(n_dense_state, model.dense.dtype)
        # of the rows that a batch touches: where each stands, which they are, their gradients
        self._place = np.zeros(len(model.table), np.int32)
        self._unique = np.zeros(0, np.int32)
        self._sums = np.zeros((0, model.shape.dimension), model.dense.dtype)

    def row_rate(self, rate: float) -> float:
        """The rate at which the rows take their part of the next step."""
        return rate

    def update_rows(self, rows: Array, d_fields: Array, changed: Array, rate: float) -> None:
        """Move the rows (n, n_tables) of a batch, and set changed[row] (n_rows,).

        d_fields (n, 1 + n_tables, d): the gradient of each occurrence of a row, from 1 on; `rate`
        is their `row_rate`
        """
        raise NotImplementedError

    def update_dense(self, gradient: Array, rate: float) -> None:
        """Move the layers by their gradient (n_dense,)."""
        raise NotImplementedError

    def _summed(self, rows: Array, d_fields: Array) -> tuple[Array, Array]:
        """Rows (m,) in order of first touch, and the sums (m, d) over their occurrences."""
        if len(self._unique) < rows.size:
            self._unique = np.zeros(rows.size, np.int32)
            self._sums = np.zeros((rows.size, self._sums.shape[1]), self._sums.dtype)
        m = sum_by_row(rows, d_fields, self._place, self._unique, self._sums)
        return self._unique[:m], self._sums[:m]


class Sgd(Optimizer):
    """Plain stochastic gradient descent; keeps nothing."""

    def __init__(self, model: Dlrm) -> None:
        super().__init__(model, (len(model.table), 0), 0)

    def update_rows(self, rows: Array, d_fields: Array, changed: Array, rate: float) -> None:
        sgd_rows(self.model.table, changed, rows, d_fields, rate)

    def update_dense(self, gradient: Array, rate: float) -> None:
        sgd_dense(self.model.dense, gradient, rate)


class RowwiseAdagrad(Optimizer):
    """Adagrad with one sum of squares per embedding row, elementwise in the dense layers."""

    def __init__(self, model: Dlrm) -> None:
        super().__init__(model, (len(model.table),), len(model.dense))

    def update_rows(self, rows: Array, d_fields: Array, changed: Array, rate: float) -> None:
        unique, sums = self._summed(rows, d_fields)
        adagrad_rows(self.model.table, self.row_state, changed, unique, sums, rate, EPSILON)

    def update_dense(self, gradient: Array, rate: float) -> None:
        adagrad_dense(self.model.dense, self.dense_state, gradient, rate, EPSILON)


class Adam(Optimizer):
    """Adam of the touched rows and of all layers; the last of `dense_state` counts the steps."""

    def __init__(self, model: Dlrm) -> None:
        size = (len(model.table), 2 * model.shape.dimension)
        super().__init__(model, size, 2 * len(model.dense) + 1)

    def _corrections(self) -> tuple[float, float]:
        """By how much the means of the next step are too small: they began at 0."""
        number = float(self.dense_state[-1]) + 1  # float32 stands at 2**24: both are 1 by then
        return 1 - BETAS[0] ** number, float(np.sqrt(1 - BETAS[1] ** number))

    def row_rate(self, rate: float) -> float:
        mean, root = self._corrections()
        return rate * root / mean

    def update_rows(self, rows: Array, d_fields: Array, changed: Array, rate: float) -> None:
        unique, sums = self._summed(rows, d_fields)
        table, moments = self.model.table, self.row_state
        adam_rows(table, moments, changed, unique, sums, rate, BETAS, ADAM_EPSILON)

    def update_dense(self, gradient: Array, rate: float) -> None:
        mean, root = self._corrections()
        moments = self.dense_state[:-1]
        adam_dense(self.model.dense, moments, gradient, rate / mean, root, BETAS, ADAM_EPSILON)
        self.dense_state[-1] += 1


OPTIMIZERS: dict[str, Callable[[Dlrm], Optimizer]] = {
    "sgd": Sgd,
    "adagrad": RowwiseAdagrad,
    "adam": Adam,
}


SCHEDULES: dict[str, Callable[[float, float], float]] = {  # of the rate, and the share done
    "constant": lambda rate, progress_fraction: rate,  # as in the paper
    "linear": lambda rate, progress_fraction: rate * (1.0 - progress_fraction),  # down to 0
}
