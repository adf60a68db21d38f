"""Row-wise Adagrad, which PyTorch itself does not bring: one sum of squares per embedding row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from cprsim.errors import ParameterError


class RowWiseAdagrad(torch.optim.Optimizer):  # type: ignore[misc, unused-ignore]
    """Adagrad with the mean of a row's squared gradient, summed over steps, 1/d of its memory.

    For embedding tables (n, d), with sparse gradients or dense ones. Each step adds mean(g^2) of a
    row to its sum and moves the row by lr g / (sqrt(sum) + eps).

    Parameters
    ----------
    params : iterable
        Tables, or groups of them.
    lr : float
        Learning rate.
    eps : float, default 1e-10
        Added to the root.

    Raises
    ------
    ParameterError
        A parameter that has no rows, or a rate that is not positive.
    """

    def __init__(self, params: Iterable[Any], lr: float, eps: float = 1e-10) -> None:
        if not lr > 0:
            raise ParameterError(f"the learning rate must be positive, not {lr:g}")
        super().__init__(params, {"lr": lr, "eps": eps})
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ParameterError(f"row-wise Adagrad needs tables, not {tuple(param.shape)}")
                self.state[param]["sum"] = torch.zeros_like(param[:, 0])

    def step(self, closure: Any = None) -> Any:
        """Update all tables that have a gradient."""
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._update(param, group["lr"], group["eps"])
        return loss

    def _update(self, param: Any, rate: float, eps: float) -> None:
        total, gradient = self.state[param]["sum"], param.grad
        if not gradient.is_sparse:
            total += gradient.square().mean(dim=1)
            param -= rate * gradient / (total.sqrt() + eps)[:, None]
            return
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        sums = total[rows] + values.square().mean(dim=1)
        total[rows] = sums
        param[rows] = param[rows] - rate * values / (sums.sqrt() + eps)[:, None]
