"""Nodes that differ: each has its own factor on the hazard ("lemons" have a large one).

The factor stays with the node through its repairs. Lifetimes are Weibull with the hazard times the
node's factor z, which is a Weibull with the scale times ``z**(-1 / shape)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.failures.distributions import positive
from cprsim.records import Floats

N_POINTS = 32  # of the quadrature over gamma factors


@dataclass(frozen=True, slots=True)
class Alike:
    """All nodes have the factor 1."""

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Factors of `size` nodes."""
        return np.ones(size)

    def quadrature(self) -> tuple[Floats, Floats]:
        """Some factors and their weights, for means over the nodes."""
        return np.ones(1), np.ones(1)

    def log_likelihood(self, n_failures: Floats, cumulative_hazard: Floats) -> Floats:
        """What each node's own factor adds, (n_nodes,): log of the mean of ``z**d exp(-z H)``."""
        return -cumulative_hazard


ALIKE = Alike()


@dataclass(frozen=True, slots=True)
class GammaFrailty:
    """Every node has a factor on its hazard, drawn from a gamma distribution with mean 1."""

    shape: float = field(
        metadata={
            "description": "Shape of the factors, no unit; their variance is 1 / shape.",
            "ge": 0.01,
            "le": 100,
            "strict": True,
            "examples": [0.8],
        }
    )

    def __post_init__(self) -> None:
        positive("frailty shape", self.shape)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        drawn = rng.gamma(self.shape, 1 / self.shape, size)
        return np.maximum(drawn, np.finfo(float).tiny)

    def quadrature(self) -> tuple[Floats, Floats]:
        points, weights = special.roots_genlaguerre(N_POINTS, self.shape - 1)
        return points / self.shape, weights / weights.sum()

    def log_likelihood(self, n_failures: Floats, cumulative_hazard: Floats) -> Floats:
        shape, total = self.shape, self.shape + n_failures
        grown = special.gammaln(total) - special.gammaln(shape)
        return np.asarray(
            grown + shape * log(shape) - total * np.log(shape + cumulative_hazard), dtype=np.float64
        )


@dataclass(frozen=True, slots=True)
class Lemons:
    """A share of the nodes has a larger factor; beyond that, nodes differ as `others` says."""

    share: float
    factor: float
    others: GammaFrailty | Alike = ALIKE

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ParameterError(f"the share of lemons lies between 0 and 1, not {self.share!r}")
        positive("factor of lemons", self.factor)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        lemon = rng.random(size) < self.share
        return np.where(lemon, self.factor, 1.0) * self.others.sample(rng, size)

    def quadrature(self) -> tuple[Floats, Floats]:
        points, weights = self.others.quadrature()
        shares = np.outer([1 - self.share, self.share], weights)
        return np.concatenate([points, self.factor * points]), shares.ravel()

    def log_likelihood(self, n_failures: Floats, cumulative_hazard: Floats) -> Floats:
        usual = self.others.log_likelihood(n_failures, cumulative_hazard)
        lemon = self.others.log_likelihood(n_failures, self.factor * cumulative_hazard)
        lemon = lemon + n_failures * log(self.factor) + log(self.share)
        return np.asarray(np.logaddexp(usual + np.log1p(-self.share), lemon), dtype=np.float64)


Frailty = Alike | GammaFrailty | Lemons
"""How the factors on the hazard are spread over the nodes."""
