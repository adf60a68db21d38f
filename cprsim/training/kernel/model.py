"""The DLRM: one fused embedding table, two dense stacks, dot interaction, forward and backward.

    integers (n, 13) -> bottom stack -> (n, d) ─┐
    rows (n, 26) -> fused table -> (n, 26, d) ──┴─> fields (n, f, d), f = 27
    fields @ fields^T -> (n, f, f), lower triangle -> (n, n_pairs)
    [bottom, triangle] (n, d + n_pairs) -> top stack -> logit (n, 1) -> cross-entropy

Weights of all layers, and their gradients, are views of two flat vectors that the model owns, so
that an optimiser updates them in one pass. Gradients of the table are never dense: `backward`
leaves one row per occurrence in ``work.d_fields[:, 1:]``, and the optimiser scatters them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cprsim.failures.sources import stream
from cprsim.job.model_shape import ModelShape
from cprsim.training.kernel.loops import (
    Array,
    add_bias_relu,
    bias_gradient,
    gather,
    logistic_loss,
    pack_pairs,
    relu_bias_gradient,
    unpack_pairs,
)

INIT_ROWS = 1 << 20  # rows drawn at once, so that 2 GB of table need no 4 GB of temporaries


def n_parameters(widths: tuple[int, ...]) -> int:
    """Weights and biases of a stack with these widths, input first."""
    return sum((n_in + 1) * n_out for n_in, n_out in pairwise(widths))


def layer_views(flat: Array, widths: tuple[int, ...]) -> list[tuple[Array, Array]]:
    """(weight (in, out), bias (out,)) of each layer, as views of `flat` (n_parameters,)."""
    layers, at = [], 0
    for n_in, n_out in pairwise(widths):
        weight = flat[at : at + n_in * n_out].reshape(n_in, n_out)
        at += n_in * n_out
        layers.append((weight, flat[at : at + n_out]))
        at += n_out
    return layers


class DenseStack:
    """Layers over a flat parameter vector; the last one is linear where `relu_last` is False."""

    def __init__(self, flat: Array, widths: tuple[int, ...], relu_last: bool) -> None:
        self.widths = widths
        self.layers = layer_views(flat, widths)
        self.has_relu = [True] * (len(widths) - 2) + [relu_last]

    def initialise(self, rng: np.random.Generator) -> None:
        """Normal weights with variance 2 / (in + out), normal biases with 1 / out (DLRM's)."""
        for weight, bias in self.layers:
            n_in, n_out = weight.shape
            weight[:] = rng.normal(0.0, np.sqrt(2.0 / (n_in + n_out)), weight.shape)
            bias[:] = rng.normal(0.0, np.sqrt(1.0 / n_out), n_out)

    def buffers(self, n: int) -> list[Array]:
        """Buffers of one pass over n samples: the output (n, out) of each layer."""
        return [np.empty((n, bias.size), bias.dtype) for _, bias in self.layers]

    def forward(self, x: Array, outputs: list[Array]) -> Array:
        """Take x (n, in) to (n, out), which is the last of `outputs`."""
        for (weight, bias), relu, y in zip(self.layers, self.has_relu, outputs, strict=True):
            np.matmul(x, weight, out=y)  # (n, in) @ (in, out) -> (n, out)
            if relu:
                add_bias_relu(y, bias)
            else:
                y += bias
            x = y
        return x

    def backward(
        self,
        x: Array,
        outputs: list[Array],
        d_outputs: list[Array],
        gradients: list[tuple[Array, Array]],
        d_x: Array | None,
    ) -> None:
        """From ``d_outputs[-1]`` (n, out) to all gradients, and to d_x (n, in) where wanted.

        Overwrites `d_outputs`; `gradients` has the layout of `layers`.
        """
        for i in reversed(range(len(self.layers))):
            (weight, _), (d_weight, d_bias) = self.layers[i], gradients[i]
            d_y = d_outputs[i]
            if self.has_relu[i]:
                relu_bias_gradient(outputs[i], d_y, d_bias)
            else:
                bias_gradient(d_y, d_bias)
            layer_input = outputs[i - 1] if i else x
            np.matmul(layer_input.T, d_y, out=d_weight)  # (in, n) @ (n, out) -> (in, out)
            d_input = d_outputs[i - 1] if i else d_x
            if d_input is not None:  # (n, out) @ (out, in) -> (n, in)
                # of one unit this is no sum, and BLAS is slow at that
                (np.matmul if d_y.shape[1] > 1 else np.multiply)(d_y, weight.T, out=d_input)


class Dlrm:
    """The parameters: `table` (n_rows, d) and `dense` (n_dense,), all layers in one vector.

    Arrays that are passed in are shared, not copied.
    """

    def __init__(
        self,
        shape: ModelShape,
        dtype: Any = np.float32,
        *,
        table: Array | None = None,
        dense: Array | None = None,
    ) -> None:
        self.shape = shape
        n_bottom = n_parameters(shape.bottom_widths)
        n_dense = n_bottom + n_parameters(shape.top_widths)
        size = (shape.tables.n_rows, shape.dimension)
        self.table: Array = np.zeros(size, dtype) if table is None else table
        self.dense: Array = np.zeros(n_dense, dtype) if dense is None else dense
        self.bottom = DenseStack(self.dense[:n_bottom], shape.bottom_widths, relu_last=True)
        self.top = DenseStack(self.dense[n_bottom:], shape.top_widths, relu_last=False)

    def initialise(self, seed: int) -> None:
        """DLRM's own start: rows uniform within 1 / sqrt(rows of the table), normal layers."""
        for number, n_rows in enumerate(self.shape.tables.rows):
            rng = stream(seed, 0, f"kernel/init/table/{number}")
            rows = self.table[self.shape.tables.of(number)]
            bound = 1.0 / np.sqrt(n_rows)
            for first in range(0, n_rows, INIT_ROWS):
                some = rows[first : first + INIT_ROWS]
                some[:] = rng.random(some.shape, dtype=np.float32)
                some *= 2 * bound
                some -= bound
        self.bottom.initialise(stream(seed, 0, "kernel/init/bottom"))
        self.top.initialise(stream(seed, 0, "kernel/init/top"))

    def forward(self, integers: Array, rows: Array, work: Workspace) -> Array:
        """Logits (n,) of integers (n, 13) and rows (n, 26); `work` keeps what backward needs."""
        bottom = self.bottom.forward(integers, work.bottom)  # (n, d)
        gather(self.table, rows, bottom, work.fields, work.fields_t)
        np.matmul(work.fields, work.fields_t, out=work.pairs)  # (n, f, d) @ (n, d, f)
        pack_pairs(bottom, work.flat_pairs, work.triangle, work.top_input)  # (n, d + n_pairs)
        return self.top.forward(work.top_input, work.top)[:, 0]

    def backward(self, integers: Array, label: Array, work: Workspace) -> float:
        """Mean loss of the batch that went forward last; gradients are left in `work`."""
        loss = logistic_loss(work.top[-1][:, 0], label, work.d_top[-1][:, 0])
        self.top.backward(
            work.top_input, work.top, work.d_top, work.top_gradients, work.d_top_input
        )
        unpack_pairs(work.d_top_input, self.shape.dimension, work.d_pairs)
        np.matmul(work.d_pairs, work.fields, out=work.d_fields)  # (n, f, f) @ (n, f, d)
        direct = work.d_top_input[:, : self.shape.dimension]
        np.add(work.d_fields[:, 0], direct, out=work.d_bottom[-1])
        self.bottom.backward(integers, work.bottom, work.d_bottom, work.bottom_gradients, None)
        return loss


class Workspace:
    """The buffers of one batch of n samples, made once: no allocation in the training loop."""

    def __init__(self, model: Dlrm, n: int) -> None:
        shape, dtype = model.shape, model.dense.dtype
        f, d = shape.n_fields, shape.dimension
        self.bottom, self.d_bottom = model.bottom.buffers(n), model.bottom.buffers(n)
        self.top, self.d_top = model.top.buffers(n), model.top.buffers(n)
        self.fields = np.empty((n, f, d), dtype)
        self.fields_t = np.empty((n, d, f), dtype)
        self.pairs = np.empty((n, f, f), dtype)
        self.flat_pairs = self.pairs.reshape(n, f * f)
        lower = np.tril_indices(f, -1)
        self.triangle = np.ravel_multi_index(lower, (f, f)).astype(np.int32)
        self.d_pairs = np.zeros((n, f, f), dtype)
        self.top_input = np.empty((n, d + shape.n_pairs), dtype)
        self.d_top_input = np.empty_like(self.top_input)
        self.d_fields = np.empty_like(self.fields)  # [:, 1:] are the gradients of the rows
        self.d_dense = np.empty_like(model.dense)
        n_bottom = n_parameters(shape.bottom_widths)
        self.bottom_gradients = layer_views(self.d_dense[:n_bottom], shape.bottom_widths)
        self.top_gradients = layer_views(self.d_dense[n_bottom:], shape.top_widths)
