"""Nodes that differ: each has its own factor on the hazard ("lemons" have a large one).

The factor stays with the node through its repairs. Lifetimes are Weibull with the hazard times the
node's factor z, which is a Weibull with the scale times ``z**(-1 / shape)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Weibull, positive
from cprsim.failures.lifetimes import Lifetimes
from cprsim.failures.likelihood import (
    Estimate,
    NotConvergedError,
    covariances,
    estimate,
    maximum,
)
from cprsim.records import Floats

N_POINTS = 32  # of the quadrature over gamma factors


class Frailty(ABC):
    """How the factors on the hazard are spread over the nodes."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Factors of `size` nodes."""

    @abstractmethod
    def quadrature(self) -> tuple[Floats, Floats]:
        """Some factors and their weights, for means over the nodes."""

    @abstractmethod
    def log_likelihood(self, n_failures: Floats, cumulative_hazard: Floats) -> Floats:
        """What each node's own factor adds, (n_nodes,): log of the mean of ``z**d exp(-z H)``."""


@dataclass(frozen=True, slots=True)
class Alike(Frailty):
    """All nodes have the factor 1."""

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.ones(size)

    def quadrature(self) -> tuple[Floats, Floats]:
        return np.ones(1), np.ones(1)

    def log_likelihood(self, n_failures: Floats, cumulative_hazard: Floats) -> Floats:
        return -cumulative_hazard


ALIKE = Alike()


@dataclass(frozen=True, slots=True)
class GammaFrailty(Frailty):
    """Factors are gamma with mean 1 and variance ``1 / shape``."""

    shape: float

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
class Lemons(Frailty):
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


@dataclass(frozen=True, slots=True)
class FrailtyFit:
    """Weibull lifetimes of nodes that may differ."""

    name: str  # alike, gamma, lemons, or lemons and gamma
    lifetime: Weibull  # of a node with the factor 1
    frailty: Frailty
    log_likelihood: float
    parameters: tuple[Estimate, ...]  # shape, scale_h, then those of the frailty

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * len(self.parameters) - 2 * self.log_likelihood


@dataclass(frozen=True, slots=True)
class _Form:
    name: str
    parameters: tuple[str, ...]
    is_logarithm: tuple[bool, ...]
    make: Callable[[Floats], Frailty]
    start: tuple[float, ...]


_FORMS = (
    _Form("alike", (), (), lambda at: ALIKE, ()),
    _Form("gamma", ("frailty_shape",), (True,), lambda at: GammaFrailty(exp(at[0])), (0.0,)),
    _Form(
        "lemons",
        ("lemon_logit", "lemon_factor"),
        (False, True),
        lambda at: Lemons(float(special.expit(at[0])), exp(at[1])),
        (-2.0, log(3.0)),
    ),
    _Form(
        "lemons and gamma",
        ("lemon_logit", "lemon_factor", "frailty_shape"),
        (False, True, True),
        lambda at: Lemons(float(special.expit(at[0])), exp(at[1]), GammaFrailty(exp(at[2]))),
        (-2.0, log(3.0), 2.0),
    ),
)


def fit_frailty(lifetimes: Lifetimes) -> tuple[FrailtyFit, ...]:
    """Weibull lifetimes with nodes alike, gamma factors, and lemons; the best by AIC first.

    Parameters
    ----------
    lifetimes : up-times, their `unit` being the node; also of nodes that never failed

    Raises
    ------
    NotConvergedError
        where not even equal nodes can be fitted. Forms that don't converge are left out.
    """
    fits = []
    for form in _FORMS:
        try:
            fits.append(_fit(form, lifetimes))
        except NotConvergedError:
            if form.name == "alike":
                raise
    return tuple(sorted(fits, key=lambda one: one.aic))


def _fit(form: _Form, lifetimes: Lifetimes) -> FrailtyFit:
    each, unpack = _likelihood(form, lifetimes)
    mean = log(lifetimes.total_h / lifetimes.n_observed)
    start = np.array([0.0, mean, *form.start])
    point = maximum(form.name, each, start, lifetimes.n_observed)
    covariance, _ = covariances(form.name, each, point)
    errors = np.sqrt(np.diag(covariance))
    names = ("shape", "scale_h", *form.parameters)
    logarithms = (True, True, *form.is_logarithm)
    lifetime, frailty = unpack(point)
    return FrailtyFit(
        form.name,
        lifetime,
        frailty,
        float(each(point).sum()),
        tuple(
            # nodes are the units already: both errors are the same
            estimate(name, float(at), float(error), float(error), logarithm=is_log)
            for name, at, error, is_log in zip(names, point, errors, logarithms, strict=True)
        ),
    )


def _likelihood(
    form: _Form, lifetimes: Lifetimes
) -> tuple[Callable[[Floats], Floats], Callable[[Floats], tuple[Weibull, Frailty]]]:
    """Log-likelihood of each node from the search numbers, and what the numbers mean."""
    _, node = np.unique(lifetimes.unit, return_inverse=True)
    ended, duration_h = lifetimes.observed, lifetimes.duration_h

    def of_nodes(each_time: Floats) -> Floats:
        return np.asarray(np.bincount(node, weights=each_time), dtype=np.float64)

    n_failures = of_nodes(ended.astype(np.float64))

    def unpack(at: Floats) -> tuple[Weibull, Frailty]:
        return Weibull(exp(at[0]), exp(at[1])), form.make(at[2:])

    def each(at: Floats) -> Floats:
        lifetime, frailty = unpack(at)
        hazard = lifetime.cumulative_hazard(duration_h)
        hazard -= lifetime.cumulative_hazard(lifetimes.entry_h)
        density = lifetime.log_density(duration_h) + lifetime.cumulative_hazard(duration_h)
        own = of_nodes(np.where(ended, density, 0.0))
        return own + frailty.log_likelihood(n_failures, of_nodes(hazard))

    return each, unpack
