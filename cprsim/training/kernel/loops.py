"""The inner loops that numpy has no fast word for, compiled by numba.

Matrix products stay with BLAS; a loop stands here only where numpy would need a temporary, a
second pass over memory, or `np.add.at` on rows. None reassociates sums across samples, so the same
input gives the same bytes. Ids are trusted: `Clicks` checks them once, when it is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.compiling import compiled

Array = NDArray[Any]


# --------------------------------------------------------------------------- hashing

# SplitMix64 (Steele, Lea & Flood 2014)
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@compiled
def mix(x: Any) -> Any:
    """Hash uint64, one or an array: each bit of x reaches each bit of the result."""
    x = x + np.uint64(GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(SECOND)
    return x ^ (x >> np.uint64(31))


# --------------------------------------------------------------------------- dense layers


@compiled
def add_bias_relu(y: Array, bias: Array) -> None:
    """Make y (n, out) max(y + bias, 0), in one pass."""
    zero = y.dtype.type(0)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = max(y[i, j] + bias[j], zero)


@compiled
def bias_gradient(dy: Array, d_bias: Array) -> None:
    """d_bias (out,) = sum of dy (n, out) over the samples, in their order."""
    d_bias[:] = 0
    for i in range(dy.shape[0]):
        for j in range(dy.shape[1]):
            d_bias[j] += dy[i, j]


@compiled
def relu_bias_gradient(y: Array, dy: Array, d_bias: Array) -> None:
    """Zero dy where the unit was off, and sum it over the samples into d_bias, in one pass."""
    zero = dy.dtype.type(0)
    d_bias[:] = 0
    for i in range(dy.shape[0]):
        for j in range(dy.shape[1]):
            passed = dy[i, j] if y[i, j] > 0 else zero
            dy[i, j] = passed
            d_bias[j] += passed


# --------------------------------------------------------------------------- interaction


@compiled
def gather(table: Array, rows: Array, bottom: Array, fields: Array, fields_t: Array) -> None:
    """Lay out the interacting vectors, as they are and transposed for the batched product.

    table (n_rows, d), rows (n, n_tables), bottom (n, d) -> fields (n, f, d), fields_t (n, d, f)

    Rows are fetched in a separate pass, so that many cache misses overlap.
    """
    n, d = bottom.shape
    for i in range(n):
        for k in range(d):
            fields[i, 0, k] = bottom[i, k]
        for t in range(rows.shape[1]):
            row = rows[i, t]
            for k in range(d):
                fields[i, t + 1, k] = table[row, k]
    for i in range(n):
        for k in range(d):
            for t in range(fields.shape[1]):
                fields_t[i, k, t] = fields[i, t, k]


@compiled
def pack_pairs(bottom: Array, pairs: Array, triangle: Array, top_input: Array) -> None:
    """top_input (n, d + n_pairs): the bottom output, then the lower triangle of its pairs.

    pairs (n, f * f), triangle (n_pairs,) where in f * f the pairs with row > column stand
    """
    n, d = bottom.shape
    for i in range(n):
        for k in range(d):
            top_input[i, k] = bottom[i, k]
        for p in range(triangle.shape[0]):
            top_input[i, d + p] = pairs[i, triangle[p]]


@compiled
def unpack_pairs(d_top_input: Array, d: int, d_pairs: Array) -> None:
    """d_pairs (n, f, f): the gradient of the triangle, mirrored; its diagonal stays zero."""
    for i in range(d_pairs.shape[0]):
        at = d
        for row in range(1, d_pairs.shape[1]):
            for column in range(row):
                gradient = d_top_input[i, at + column]
                d_pairs[i, row, column] = gradient
                d_pairs[i, column, row] = gradient
            at += row


# --------------------------------------------------------------------------- loss


@compiled
def logistic_loss(logit: Array, label: Array, d_logit: Array) -> float:
    """Mean binary cross-entropy of logits (n,), and its gradient d_logit (n,)."""
    n = logit.shape[0]
    total = 0.0
    for i in range(n):
        z = np.float64(logit[i])
        small = np.exp(-abs(z))  # never overflows
        p = 1.0 / (1.0 + small) if z >= 0 else small / (1.0 + small)
        total += max(z, 0.0) - z * label[i] + np.log1p(small)
        d_logit[i] = (p - label[i]) / n
    return float(total / n)


# --------------------------------------------------------------------------- embedding rows


@compiled
def sgd_rows(table: Array, changed: Array, rows: Array, d_fields: Array, rate: float) -> None:
    """table[rows[i, t]] -= rate * d_fields[i, t + 1], occurrence by occurrence; marks the rows."""
    step = table.dtype.type(rate)
    for i in range(rows.shape[0]):
        for t in range(rows.shape[1]):
            row = rows[i, t]
            changed[row] = 1
            for k in range(table.shape[1]):
                table[row, k] -= step * d_fields[i, t + 1, k]


@compiled
def sum_by_row(rows: Array, d_fields: Array, place: Array, unique: Array, sums: Array) -> int:
    """Add up the gradients of each row that the batch touches; returns how many rows those are.

    ``unique[:m]`` are the rows in order of first touch, ``sums[:m]`` (m, d) their gradients.
    `place` (n_rows,) says where in `unique` a row stands and is believed only where `unique`
    agrees: a sparse set, which never needs clearing.
    """
    m = 0
    for i in range(rows.shape[0]):
        for t in range(rows.shape[1]):
            row = rows[i, t]
            at = place[row]
            if at < m and unique[at] == row:
                for k in range(sums.shape[1]):
                    sums[at, k] += d_fields[i, t + 1, k]
            else:
                place[row] = m
                unique[m] = row
                for k in range(sums.shape[1]):
                    sums[m, k] = d_fields[i, t + 1, k]
                m += 1
    return m


@compiled
def adagrad_rows(
    table: Array,
    squares: Array,
    changed: Array,
    unique: Array,
    sums: Array,
    rate: float,
    epsilon: float,
) -> None:
    """Row-wise Adagrad: one sum of mean squared gradients per row. unique (m,), sums (m, d)."""
    d = table.shape[1]
    for i in range(unique.shape[0]):
        row = unique[i]
        square = 0.0
        for k in range(d):
            square += sums[i, k] * sums[i, k]
        squares[row] += square / d
        step = table.dtype.type(rate / (np.sqrt(squares[row]) + epsilon))
        changed[row] = 1
        for k in range(d):
            table[row, k] -= step * sums[i, k]


@compiled
def sgd_dense(values: Array, gradient: Array, rate: float) -> None:
    """One step of plain SGD on values (n_dense,), in one pass."""
    step = values.dtype.type(rate)
    for i in range(values.shape[0]):
        values[i] -= step * gradient[i]


@compiled
def adagrad_dense(values: Array, squares: Array, gradient: Array, rate: float, eps: float) -> None:
    """Adagrad, element by element, in one pass over three vectors (n_dense,)."""
    step, epsilon = values.dtype.type(rate), values.dtype.type(eps)
    for i in range(values.shape[0]):
        squares[i] += gradient[i] * gradient[i]
        values[i] -= step * gradient[i] / (np.sqrt(squares[i]) + epsilon)


@compiled
def adam_rows(
    table: Array,
    moments: Array,
    changed: Array,
    unique: Array,
    sums: Array,
    rate: float,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Adam of the rows that a batch touches, in the order of torch.optim.SparseAdam.

    unique (m,), sums (m, d), moments (n_rows, 2 d): means of gradients, then of their squares
    """
    step, epsilon = table.dtype.type(rate), table.dtype.type(eps)
    of_mean, of_square = table.dtype.type(1 - betas[0]), table.dtype.type(1 - betas[1])
    d = table.shape[1]
    for i in range(unique.shape[0]):
        row = unique[i]
        changed[row] = 1
        for k in range(d):
            gradient = sums[i, k]
            moments[row, k] += of_mean * (gradient - moments[row, k])
            moments[row, d + k] += of_square * (gradient * gradient - moments[row, d + k])
            table[row, k] -= step * (moments[row, k] / (np.sqrt(moments[row, d + k]) + epsilon))


@compiled
def adam_dense(
    values: Array,
    moments: Array,
    gradient: Array,
    rate: float,
    root: float,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Adam, element by element, in the order of torch.optim.Adam.

    values, gradient (n_dense,), moments (2 n_dense,): means of gradients, then of their squares;
    rate and root are corrected for the steps so far
    """
    step, epsilon = values.dtype.type(rate), values.dtype.type(eps)
    of_mean, of_square = values.dtype.type(1 - betas[0]), values.dtype.type(1 - betas[1])
    corrected, n = values.dtype.type(root), values.shape[0]
    for i in range(n):
        moments[i] += of_mean * (gradient[i] - moments[i])
        moments[n + i] += of_square * (gradient[i] * gradient[i] - moments[n + i])
        values[i] -= step * (moments[i] / (np.sqrt(moments[n + i]) / corrected + epsilon))
