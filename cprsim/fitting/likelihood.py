"""One kit for maximum likelihood: where the maximum is, and how sure each number of it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import exp, isfinite, log, nan, sqrt
from typing import Self

import numpy as np
from scipy import linalg, optimize, special

from cprsim.errors import CprsimError, ParameterError
from cprsim.failures.distributions import Distribution
from cprsim.failures.frailty import ALIKE, Frailty
from cprsim.records import Z_95, Estimate, Floats, Ints

STEP = 1e-4  # of numerical derivatives, in search numbers
SMALL_STEP = float(np.finfo(float).eps ** 0.5)  # of those during the search
IMPOSSIBLE = 1e10  # mean minus log-likelihood of parameters outside the domain
FLAT = 1e-6  # slope of the mean log-likelihood at which the search ends
STEEPEST = 1e-4  # and at which it may end, where it can't come nearer
LARGEST = 700.0  # exponent

Scale = Callable[[float], float]
"""From a search number, which may be any, to the parameter: `exp`, `share`, or `float` itself."""


def share(at: float) -> float:
    """A share from the logarithm of its odds."""
    return float(special.expit(at))


SLOPES: dict[Scale, Scale] = {exp: float, share: lambda p: p * (1 - p), float: lambda _: 1.0}
"""Of the parameter over its search number, by the parameter."""


class NotConvergedError(CprsimError):
    """A likelihood has no maximum here, or none was found."""


@dataclass(frozen=True, slots=True)
class Parameter(Estimate):
    """A fitted number: its name, and its standard errors beside the interval."""

    name: str = field(kw_only=True)
    standard_error: float = field(kw_only=True)
    # the standard error that allows times of one node to resemble each other
    clustered_error: float = field(kw_only=True)

    @classmethod
    def of_search(
        cls, name: str, at: float, error: float, clustered: float, scale: Scale = exp
    ) -> Self:
        """The parameter of a search number and its two errors; the interval is symmetric there."""
        value, low, high = (
            scale(min(end, LARGEST)) for end in (at, at - Z_95 * error, at + Z_95 * error)
        )
        slope = SLOPES[scale](value)
        return cls(
            value, low, high, name=name, standard_error=slope * error,
            clustered_error=slope * clustered,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fit:
    """What maximum likelihood says of one family."""

    family: str
    distribution: Distribution
    log_likelihood: float  # with times in hours
    n_parameters: int
    n_observed: int
    parameters: tuple[Parameter, ...]
    mean: Parameter  # of the lifetime [h]
    frailty: Frailty = ALIKE  # of nodes that may differ; the distribution is that of factor 1
    ks: float = nan  # largest distance between fitted and empirical survival
    p_value: float = nan  # share of samples of the fit with a larger distance; NaN: no bootstrap
    rmse_survival: float = nan  # root mean squared distance at the ends seen (CPR's measure)

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, by the number of observed ends: smaller is better."""
        return self.n_parameters * log(self.n_observed) - 2 * self.log_likelihood

    @property
    def by_name(self) -> dict[str, Parameter]:
        """The parameters by their names."""
        return {parameter.name: parameter for parameter in self.parameters}

    @property
    def spread(self) -> Parameter | None:
        """Shape of Weibull and gamma, sigma of lognormal."""
        return self.by_name.get("shape", self.by_name.get("sigma"))


@dataclass(frozen=True, slots=True)
class Likelihood:
    """A log-likelihood of search numbers, (p,), to be made largest."""

    name: str
    contributions: Callable[[Floats], Floats]  # (n,)
    total: Callable[[Floats], float]  # their sum, where there is a quicker way to it
    n_observed: int

    def mean_loss(self, point: Floats) -> float:
        """Minus the mean for each end, so that slopes mean the same for any number of times."""
        try:
            mean = -self.total(point) / self.n_observed
        except (ParameterError, OverflowError, ZeroDivisionError):
            return IMPOSSIBLE
        return float(mean) if isfinite(mean) else IMPOSSIBLE

    def maximum(self, start: Floats, slope: float = FLAT) -> Floats:
        """Where it is largest, to a slope of the mean.

        Raises NotConvergedError where scipy's BFGS does not come to a flat place.
        """
        loss, last = self.mean_loss, dict[bytes, float]()

        def value(point: Floats) -> float:
            last.clear()
            last[point.tobytes()] = loss_here = loss(point)
            return loss_here

        def slopes(point: Floats) -> Floats:
            """As BFGS takes them itself, to the last bit, at a fraction of the time."""
            loss_here = last.get(point.tobytes())
            loss_here = loss(point) if loss_here is None else loss_here
            slope_of = np.empty(len(point))
            for i in range(len(point)):
                beyond = point.copy()
                beyond[i] += SMALL_STEP
                if beyond[i] == point[i]:  # so far out that the step is lost
                    beyond[i] += SMALL_STEP * point[i]
                slope_of[i] = (loss(beyond) - loss_here) / float(beyond[i] - point[i])
            return slope_of

        with np.errstate(all="ignore"):
            minimum = optimize.minimize(
                value, start, method="BFGS", jac=slopes, options={"gtol": slope}
            )
        if minimum.fun >= IMPOSSIBLE or not np.abs(minimum.jac).max() < STEEPEST:
            reason = minimum.message.rstrip(".")
            raise NotConvergedError(f"{self.name}: no maximum of the likelihood found ({reason})")
        return np.asarray(minimum.x, dtype=np.float64)

    def at_maximum(self, point: Floats, units: Ints | None = None) -> Maximum:
        """What the likelihood says around its maximum, its contributions clustered by units.

        Raises NotConvergedError where it is flat in some direction.
        """
        n = len(point)
        steps = STEP * np.eye(n)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            middle = self.contributions(point)
            try:
                sides = [
                    (self.contributions(point + h), self.contributions(point - h)) for h in steps
                ]
                scores = np.array([up - down for up, down in sides]) / (2 * STEP)
                covariance = linalg.inv(-self._curvature(point, sides, middle))
            except (
                ParameterError, OverflowError, ValueError, linalg.LinAlgError, linalg.LinAlgWarning
            ):  # fmt: skip
                covariance = np.full((n, n), np.nan)
        if not (np.isfinite(covariance).all() and (np.diag(covariance) > 0).all()):
            raise NotConvergedError(f"{self.name}: the likelihood is flat, no parameter stands out")
        if units is not None:
            has_times = np.bincount(units) > 0
            scores = np.array([np.bincount(units, weights=score)[has_times] for score in scores])
        n_units = scores.shape[1]
        few = n_units / (n_units - 1) if n_units > 1 else np.nan
        clustered = few * covariance @ (scores @ scores.T) @ covariance
        return Maximum(point, float(middle.sum()), covariance, clustered)

    def _curvature(
        self, point: Floats, sides: list[tuple[Floats, Floats]], middle: Floats
    ) -> Floats:
        """Second derivatives (p, p) of the sum, given its terms, and those a step up and down."""
        n = len(point)
        curvature = np.diag([float((up + down - 2 * middle).sum()) for up, down in sides])
        for i in range(n):
            for j in range(i):
                diagonal = np.zeros(n)
                diagonal[[i, j]] = STEP
                ends = self.contributions(point + diagonal) + self.contributions(point - diagonal)
                along = float((ends - 2 * middle).sum())
                curvature[i, j] = curvature[j, i] = (along - curvature[i, i] - curvature[j, j]) / 2
        return curvature / STEP**2


@dataclass(frozen=True, slots=True)
class Maximum:
    """A point of search numbers, and their covariances, plain and with the units' scores in it."""

    point: Floats  # (p,)
    log_likelihood: float
    covariance: Floats  # (p, p) from the observed information
    clustered: Floats  # (p, p)

    def parameters(self, scales: Iterable[tuple[str, Scale]]) -> tuple[Parameter, ...]:
        """The search numbers as parameters."""
        errors = (np.sqrt(np.diag(c)).tolist() for c in (self.covariance, self.clustered))
        return tuple(
            Parameter.of_search(name, at, error, clustered, scale)
            for (name, scale), at, error, clustered in zip(
                scales, self.point.tolist(), *errors, strict=True
            )
        )

    def derived(self, name: str, positive: Callable[[Floats], float]) -> Parameter:
        """A positive number that follows, by the delta method on its logarithm."""
        steps = STEP * np.eye(len(self.point))
        slope = np.array(
            [log(positive(self.point + h) / positive(self.point - h)) for h in steps]
        ) / (2 * STEP)
        error, clustered = (
            sqrt(max(float(slope @ covariance @ slope), 0.0))
            for covariance in (self.covariance, self.clustered)
        )
        return Parameter.of_search(name, log(positive(self.point)), error, clustered)
