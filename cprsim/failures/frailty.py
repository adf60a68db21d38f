"""Nodes that differ, each with its own factor on the hazard ("lemons": a large one); and shocks.

The factor stays with the node through its repairs. Lifetimes are Weibull with the hazard times the
node's factor z, which is a Weibull with the scale times ``z**(-1 / shape)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.failures.renewal import renewals_by_lives, ten_digits
from cprsim.job.distributions import Weibull, p_strikes, positive
from cprsim.job.records import Floats

N_POINTS = 32  # of the quadrature over gamma factors
STARTS = (np.arange(64) + 0.5) / 64  # instants of the watched time, for means over them


@dataclass(frozen=True, slots=True)
class Frailty:
    """How the factors on the hazard are spread over the nodes: those of lemons are larger.

    Beyond that each node has its own factor, of a gamma distribution with mean 1.
    """

    share: float = 0.0  # of lemons
    factor: float = 1.0  # of a lemon
    shape: float = inf  # of the gamma distribution, whose variance is 1 / shape; infinite: all 1

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ParameterError(f"the share of lemons lies between 0 and 1, not {self.share!r}")
        positive("factor of lemons", self.factor)
        if not self.shape > 0:
            raise ParameterError(f"frailty shape must be above 0, not {self.shape!r}")

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Factors of `size` nodes."""
        factors = np.ones(size)
        if self.share:
            factors[rng.random(size) < self.share] = self.factor
        if self.shape < inf:
            drawn = rng.gamma(self.shape, 1 / self.shape, size)
            factors *= np.maximum(drawn, np.finfo(float).tiny)
        return factors

    def quadrature(self) -> tuple[Floats, Floats]:
        """Some factors and their weights, for means over the nodes."""
        points, weights = np.ones(1), np.ones(1)
        if self.shape < inf:
            points, weights = special.roots_genlaguerre(N_POINTS, self.shape - 1)
            points, weights = points / self.shape, weights / weights.sum()
        if not self.share:
            return points, weights
        shares = np.outer([1 - self.share, self.share], weights)
        return np.concatenate([points, self.factor * points]), shares.ravel()

    def log_likelihood(self, n_failures: Floats, cumulative_hazard: Floats) -> Floats:
        """Contribution of each node's factor, (n_nodes,): log of the mean of ``z**d exp(-z H)``."""
        usual = self._of_gamma(n_failures, cumulative_hazard)
        if not self.share:
            return usual
        lemon = self._of_gamma(n_failures, self.factor * cumulative_hazard)
        lemon = lemon + n_failures * log(self.factor) + log(self.share)
        return np.asarray(np.logaddexp(usual + np.log1p(-self.share), lemon), dtype=np.float64)

    def _of_gamma(self, n_failures: Floats, cumulative_hazard: Floats) -> Floats:
        if self.shape == inf:
            return -cumulative_hazard
        shape, total = self.shape, self.shape + n_failures
        grown = special.gammaln(total) - special.gammaln(shape)
        return np.asarray(
            grown + shape * log(shape) - total * np.log(shape + cumulative_hazard), dtype=np.float64
        )


ALIKE = Frailty()


def failures_of_a_node(
    lifetime: Weibull, frailty: Frailty, useful_h: float, watched_h: float = 0.0
) -> float:
    """Expected failures of one node within `useful_h` hours of a job.

    It was new at 0; the job starts at a random instant within `watched_h` hours since.
    """
    factors, weights = frailty.quadrature()
    stretch = factors ** (-1 / lifetime.shape)
    begins_h = watched_h * STARTS if watched_h > 0 else np.zeros(1)
    lives = renewals_by_lives(Weibull.from_mean(1.0, lifetime.shape))
    scale = lifetime.mean_h * stretch[:, None]
    n_failures = lives((begins_h + useful_h) / scale) - lives(begins_h / scale)
    return ten_digits(float(weights @ n_failures.mean(axis=1)))


@dataclass(frozen=True, slots=True)
class Shocks:
    """Events that strike several nodes of a cluster simultaneously, as a Poisson process."""

    rate_per_h: float  # of all sizes together
    sizes: tuple[int, ...]  # nodes that an event may strike
    shares: tuple[float, ...]  # probability of each size
    n_nodes: int  # of the cluster in which this was observed; a job has some of them at random

    def striking(self, n_slots: int) -> tuple[float, float]:
        """Rate [1/h] of events that strike any of `n_slots` nodes, and of nodes struck."""
        events = sum(
            share * p_strikes(size, n_slots, self.n_nodes)
            for size, share in zip(self.sizes, self.shares, strict=True)
        )
        mean_size = float(np.dot(self.sizes, self.shares))
        return float(self.rate_per_h * events), self.rate_per_h * mean_size * n_slots / self.n_nodes
