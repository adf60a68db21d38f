"""One kit for maximum likelihood: where the maximum is, and how sure each number of it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import exp, isfinite, log, log2, nan, sqrt
from typing import Any, Self

import numpy as np
from scipy import linalg, optimize, special

from cprsim.errors import CprsimError, ParameterError
from cprsim.failures.frailty import ALIKE, Frailty
from cprsim.job.distributions import Distribution
from cprsim.job.records import Z_95, Estimate, Floats

DERIVATIVE_STEP = 1e-4  # in search numbers, of derivatives of what follows from them
FINE = 2.0**-7  # step of derivatives at the maximum, over the distance on which the mean bends
FURTHEST = 8.0  # of these distances: where it hardly bends, the steps grow no further
# steps and weights of the first derivative
STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
BENDS = ((1, 16 / 12), (2, -1 / 12))  # steps to either side and weights: second derivative
ROUNDED_MOVE = 1e-9  # last move over that distance, at which the score is zero to rounding
ARRIVED = 1e-6  # and that of noisy likelihoods
MOST_MOVES = 30  # a maximum is reached within; beyond, it lies at the border of the family
IMPOSSIBLE = 1e10  # mean minus log-likelihood of parameters outside the domain
FLAT = 1e-6  # slope of the mean log-likelihood at which the search ends
LARGEST_EXPONENT = 700.0  # exponent

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
    """A fitted number with its name, interval and standard error."""

    name: str = field(kw_only=True)
    standard_error: float = field(kw_only=True)

    @classmethod
    def of_search(cls, name: str, at: float, error: float, scale: Scale = exp) -> Self:
        """The parameter of a search number and its error; the interval is symmetric there."""
        value, low, high = (
            scale(min(end, LARGEST_EXPONENT)) for end in (at, at - Z_95 * error, at + Z_95 * error)
        )
        return cls(value, low, high, name=name, standard_error=SLOPES[scale](value) * error)


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
    total: Callable[[Floats], float]
    n_observed: int

    def mean_loss(self, point: Floats) -> float:
        """Minus the mean for each end, so that slopes mean the same for any number of times."""
        try:
            mean = -self.total(point) / self.n_observed
        except (ParameterError, OverflowError, ZeroDivisionError):
            return IMPOSSIBLE
        return float(mean) if isfinite(mean) else IMPOSSIBLE

    def search_maximum(self, start: Floats, slope: float = FLAT) -> Floats:
        """Where scipy's BFGS ends, which seeks a slope of the mean; good enough to start from."""
        with np.errstate(all="ignore"):
            minimum = optimize.minimize(
                self.mean_loss, start, method="BFGS", jac="3-point", options={"gtol": slope}
            )
        if minimum.fun >= IMPOSSIBLE:
            raise NotConvergedError(f"{self.name}: no maximum of the likelihood found")
        return np.asarray(minimum.x, dtype=np.float64)

    def maximum(self, start: Floats) -> Maximum:
        """The maximum, and the covariance there.

        Raises NotConvergedError if none is found, or the likelihood is flat there.
        """
        point, steps = self.refine_maximum(self.search_maximum(start))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            try:
                covariance = linalg.inv(self._curvature(point, steps)) / self.n_observed
            except (ValueError, linalg.LinAlgError, linalg.LinAlgWarning):
                raise NotConvergedError(self._no_maximum) from None
        if not (np.isfinite(covariance).all() and (np.diag(covariance) > 0).all()):
            raise NotConvergedError(self._no_maximum)
        return Maximum(point, self.total(point), covariance)

    @property
    def _no_maximum(self) -> str:
        return f"{self.name}: the likelihood has no maximum, but is flat or grows up to a border"

    def refine_maximum(self, point: Floats, close: float = ROUNDED_MOVE) -> tuple[Floats, Floats]:
        """The maximum near a point, to rounding, and the steps of derivatives there, (p,) each.

        By Newton's method, so that no number depends on where a search happened to end. Raises
        NotConvergedError if none is near: the likelihood is flat in some direction, or grows up to
        a border of the family.
        """
        far, move = True, np.inf
        with np.errstate(all="ignore"):
            for _ in range(MOST_MOVES):
                try:
                    if far:
                        steps = self._steps(point)
                        curved = linalg.cho_factor(self._curvature(point, steps))
                    by = -linalg.cho_solve(curved, slopes(self.mean_loss, point, steps))
                except (ValueError, linalg.LinAlgError):  # infinite, or no maximum
                    break
                point, move = point + by, float(np.abs(by * FINE / steps).max())
                far = move > ARRIVED**0.5
                if move < close:
                    return point, steps
        if not move < ARRIVED:
            raise NotConvergedError(self._no_maximum)
        return point, steps

    def _steps(self, point: Floats) -> Floats:
        """A step for each number: a share of the distance on which the mean loss bends."""
        steps, middle = np.full(len(point), FINE), self.mean_loss(point)
        for i, unit in enumerate(np.eye(len(point))):
            for _ in range(MOST_MOVES):
                ends = sum(self.mean_loss(point + side * steps[i] * unit) for side in (-1, 1))
                bend = max((ends - 2 * middle) / steps[i] ** 2, FURTHEST**-2)
                step = FINE * 2.0 ** round(log2(bend) / -2)  # the same on every processor
                if step == steps[i]:
                    break
                steps[i] = step
        return steps

    def _curvature(self, point: Floats, steps: Floats) -> Floats:
        """Second derivatives (p, p) of the mean loss, to the fourth order of the steps."""
        n, middle = len(point), self.mean_loss(point)

        def bend(step: Floats) -> float:
            """Along a step, times its square."""
            return sum(
                weight * (self.mean_loss(point + k * step) + self.mean_loss(point - k * step)
                          - 2 * middle)
                for k, weight in BENDS
            )  # fmt: skip

        along = np.diag(steps)
        bends = np.diag([bend(step) for step in along])
        for i in range(n):
            for j in range(i):
                both = bend(along[i] + along[j]) - bends[i, i] - bends[j, j]
                bends[i, j] = bends[j, i] = both / 2
        return np.asarray(bends / np.outer(steps, steps), dtype=np.float64)


def slopes(of: Callable[[Floats], Any], point: Floats, steps: Floats) -> Floats:
    """First derivatives (p, ...) of a function of search numbers, to the fourth order of steps."""
    return np.array([
        sum(weight * of(point + n * step) for n, weight in STENCIL) / step.sum()
        for step in np.diag(steps)
    ])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Maximum:
    """A point of search numbers, and their covariance."""

    point: Floats  # (p,)
    log_likelihood: float
    covariance: Floats  # (p, p) from the observed information

    def parameters(self, scales: Iterable[tuple[str, Scale]]) -> tuple[Parameter, ...]:
        """The search numbers as parameters."""
        errors = np.sqrt(np.diag(self.covariance)).tolist()
        return tuple(
            Parameter.of_search(name, at, error, scale)
            for (name, scale), at, error in zip(scales, self.point.tolist(), errors, strict=True)
        )

    def derived(self, name: str, positive: Callable[[Floats], float]) -> Parameter:
        """A positive number that follows, by the delta method on its logarithm."""
        steps = np.full(len(self.point), DERIVATIVE_STEP)
        slope = slopes(lambda at: log(positive(at)), self.point, steps)
        error = sqrt(max(float(slope @ self.covariance @ slope), 0.0))
        return Parameter.of_search(name, log(positive(self.point)), error)
