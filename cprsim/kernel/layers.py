"""A stack of dense layers with ReLU between them, forward and backward side by side.

Weights and their gradients are views of two flat vectors that the model owns, so that an optimiser
updates all layers in one pass and a checkpoint writes them as one array.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cprsim.kernel.loops import (
    Array,
    add_bias,
    add_bias_relu,
    bias_gradient,
    relu_bias_gradient,
)


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
        """What one pass over n samples writes: the output (n, out) of each layer."""
        return [np.empty((n, bias.size), bias.dtype) for _, bias in self.layers]

    def forward(self, x: Array, outputs: list[Array]) -> Array:
        """Take x (n, in) to (n, out), which is the last of `outputs`."""
        for (weight, bias), relu, y in zip(self.layers, self.has_relu, outputs, strict=True):
            np.matmul(x, weight, out=y)  # (n, in) @ (in, out) -> (n, out)
            (add_bias_relu if relu else add_bias)(y, bias)
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
            if d_input is not None:
                np.matmul(d_y, weight.T, out=d_input)  # (n, out) @ (out, in) -> (n, in)
