"""What one synchronisation does to dense weights, in place; all vectors (n_dense,) float32.

w is the replica of a trainer, `sent` what it was when the synchronisation began (its workers may
have moved it since), g the central copy, a the elastic coefficient. Replicas of all trainers are
the rows of one array (n_trainers, n_dense). Sources: Zhang, Choromanska & LeCun 2015 (EASGD); Chen
& Huo 2016 (BMUF); Zheng et al. 2020 (shadow forms, arXiv 2003.03477).
"""

from __future__ import annotations

from cprsim.compiling import compiled
from cprsim.kernel.loops import Array


@compiled
def easgd(w: Array, sent: Array, g: Array, elastic: float) -> None:
    """``u = a (sent - g); w -= u; g += u``: what one loses the other gains, so w + g stays."""
    a = w.dtype.type(elastic)
    for i in range(w.shape[0]):
        u = a * (sent[i] - g[i])
        w[i] -= u
        g[i] += u


@compiled
def average(replicas: Array, mean: Array) -> None:
    """The mean of replicas, summed in their order; of one replica exactly that replica."""
    n = mean.dtype.type(replicas.shape[0])
    mean[:] = replicas[0]
    for row in range(1, replicas.shape[0]):
        for i in range(mean.shape[0]):
            mean[i] += replicas[row, i]
    for i in range(mean.shape[0]):
        mean[i] /= n


@compiled
def pull(replicas: Array, target: Array, elastic: float) -> None:
    """``w += a (target - w)`` for all replicas; with a = 1 they become the target exactly."""
    a = target.dtype.type(elastic)
    for row in range(replicas.shape[0]):
        if elastic == 1.0:
            replicas[row] = target
            continue
        for i in range(target.shape[0]):
            replicas[row, i] += a * (target[i] - replicas[row, i])


@compiled
def bmuf(g: Array, v: Array, mean: Array, momentum: float, block_rate: float) -> None:
    """``v <- momentum v + block_rate (mean - g); g += v``: the mean moves g with momentum."""
    mu, eta = g.dtype.type(momentum), g.dtype.type(block_rate)
    for i in range(g.shape[0]):
        v[i] = mu * v[i] + eta * (mean[i] - g[i])
        g[i] += v[i]
