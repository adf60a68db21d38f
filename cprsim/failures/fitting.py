"""Maximum likelihood for lifetimes, with right-censoring and left truncation.

A family is a few numbers and the distribution that they make. The likelihood follows from its
density and cumulative hazard alone; standard errors, intervals, AIC and BIC from the likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt

import numpy as np
from scipy import linalg, optimize, special

from cprsim.errors import CprsimError, ParameterError
from cprsim.failures.distributions import Distribution, Exponential, Gamma, LogNormal, Weibull
from cprsim.failures.lifetimes import Lifetimes
from cprsim.records import Floats

Z95 = float(special.ndtri(0.975))
STEP = 1e-4  # of numerical derivatives, in logarithms of parameters
IMPOSSIBLE = 1e10  # mean minus log-likelihood of parameters outside the domain
FLAT = 1e-7  # slope of the mean log-likelihood at which the search ends
STEEPEST = 1e-4  # and at which it may end, where it can't come nearer


class NotConvergedError(CprsimError):
    """The likelihood of a family has no maximum here, or none was found."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its standard error and its 95 % interval."""

    name: str
    estimate: float
    standard_error: float
    low: float
    high: float
    clustered_error: float  # standard error that allows times of one node to resemble each other


@dataclass(frozen=True, slots=True)
class Fit:
    """What maximum likelihood says of one family."""

    family: str
    distribution: Distribution
    log_likelihood: float  # with times in hours
    n_parameters: int
    n_observed: int
    parameters: tuple[Estimate, ...]
    mean: Estimate  # of the lifetime [h]

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, by the number of observed ends: smaller is better."""
        return self.n_parameters * log(self.n_observed) - 2 * self.log_likelihood

    def parameter(self, name: str) -> Estimate:
        """One parameter. Raises KeyError for a name that the family does not have."""
        for estimate in self.parameters:
            if estimate.name == name:
                return estimate
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Family:
    """How a family is searched: its numbers, and where the search starts.

    Positive parameters are searched by their logarithm, so every point of the search is allowed.
    """

    name: str
    parameters: tuple[str, ...]
    is_logarithm: tuple[bool, ...]
    make: Callable[[Floats], Distribution]
    start: Callable[[Lifetimes], Floats]


def log_likelihoods(distribution: Distribution, lifetimes: Lifetimes) -> Floats:
    """Contribution of each time to the log-likelihood, (n,): density, or survival, given entry."""
    each = np.empty(lifetimes.n)
    ended = lifetimes.observed
    each[ended] = distribution.log_density(lifetimes.duration_h[ended])
    each[~ended] = -distribution.cumulative_hazard(lifetimes.duration_h[~ended])
    late = lifetimes.entry_h > 0
    if late.any():
        each[late] += distribution.cumulative_hazard(lifetimes.entry_h[late])
    return each


def fit(family: Family, lifetimes: Lifetimes) -> Fit:
    """The member of a family under which these times are most likely.

    Raises
    ------
    ParameterError
        where no end was observed.
    NotConvergedError
        where the search does not come to a maximum, e.g. as all times are the same.
    """
    if lifetimes.n_observed == 0:
        raise ParameterError("no failure was observed: nothing can be fitted")
    point = maximum(family, lifetimes, family.start(lifetimes))
    errors, clustered = _standard_errors(family, lifetimes, point)
    distribution = family.make(point)
    return Fit(
        family=family.name,
        distribution=distribution,
        log_likelihood=float(log_likelihoods(distribution, lifetimes).sum()),
        n_parameters=len(point),
        n_observed=lifetimes.n_observed,
        parameters=_estimates(family, point, errors, clustered),
        mean=_mean(family, point, errors, clustered),
    )


def maximum(family: Family, lifetimes: Lifetimes, start: Floats, slope: float = FLAT) -> Floats:
    """Where the likelihood is largest, in the family's search numbers.

    Parameters
    ----------
    family, lifetimes : what is searched
    start : where to begin, in the search numbers
    slope : of the mean log-likelihood, below which the search ends

    Raises
    ------
    NotConvergedError
        where scipy's BFGS does not come to a flat place within the domain.
    """

    def loss(point: Floats) -> float:
        try:
            with np.errstate(all="ignore"):
                each = log_likelihoods(family.make(point), lifetimes)
        except (ParameterError, OverflowError):
            return IMPOSSIBLE
        mean = -each.sum() / lifetimes.n_observed
        return float(mean) if isfinite(mean) else IMPOSSIBLE

    found = optimize.minimize(loss, start, method="BFGS", options={"gtol": slope})
    if found.fun >= IMPOSSIBLE or not np.abs(found.jac).max() < STEEPEST:
        raise NotConvergedError(
            f"{family.name}: no maximum of the likelihood found ({found.message.rstrip('.')})"
        )
    return np.asarray(found.x, dtype=np.float64)


def _standard_errors(family: Family, lifetimes: Lifetimes, point: Floats) -> tuple[Floats, Floats]:
    """Covariance of the search numbers: from the curvature, and clustered by unit (sandwich)."""
    n = len(point)
    steps = STEP * np.eye(n)

    def each(at: Floats) -> Floats:
        return log_likelihoods(family.make(at), lifetimes)

    try:
        scores = np.array([(each(point + h) - each(point - h)) / (2 * STEP) for h in steps])
        curvature = np.array(
            [
                [
                    (each(point + g + h) - each(point + g - h)).sum()
                    - (each(point - g + h) - each(point - g - h)).sum()
                    for h in steps
                ]
                for g in steps
            ]
        ) / (4 * STEP**2)
        covariance = linalg.inv(-curvature)
    except (ParameterError, linalg.LinAlgError):
        covariance = np.full((n, n), np.nan)
    if not (np.isfinite(covariance).all() and (np.diag(covariance) > 0).all()):
        raise NotConvergedError(f"{family.name}: the likelihood is flat, no parameter stands out")
    _, unit = np.unique(lifetimes.unit, return_inverse=True)
    of_units = np.array([np.bincount(unit, weights=score) for score in scores])
    n_units = of_units.shape[1]
    few = n_units / (n_units - 1) if n_units > 1 else np.nan
    return covariance, few * covariance @ (of_units @ of_units.T) @ covariance


def _estimates(
    family: Family, point: Floats, covariance: Floats, clustered: Floats
) -> tuple[Estimate, ...]:
    rows = zip(
        family.parameters,
        family.is_logarithm,
        point,
        np.sqrt(np.diag(covariance)),
        np.sqrt(np.diag(clustered)),
        strict=True,
    )
    return tuple(_estimate(name, is_log, *numbers) for name, is_log, *numbers in rows)


def _estimate(name: str, is_log: bool, at: float, error: float, clustered: float) -> Estimate:
    low, high = at - Z95 * error, at + Z95 * error
    if not is_log:
        return Estimate(name, float(at), float(error), float(low), float(high), float(clustered))
    value = exp(at)
    return Estimate(
        name, value, value * float(error), exp(low), exp(min(high, 700.0)), value * float(clustered)
    )


def _mean(family: Family, point: Floats, covariance: Floats, clustered: Floats) -> Estimate:
    """The mean lifetime [h], its errors by the delta method on the logarithm."""
    steps = STEP * np.eye(len(point))
    slope = np.array(
        [log(family.make(point + h).mean_h / family.make(point - h).mean_h) for h in steps]
    ) / (2 * STEP)
    error, clustered_error = (sqrt(float(slope @ m @ slope)) for m in (covariance, clustered))
    return _estimate("mean_h", True, log(family.make(point).mean_h), error, clustered_error)


# ------------------------------------------------------------------------------- the families


def _log_mean(lifetimes: Lifetimes) -> float:
    return log(lifetimes.total_h / lifetimes.n_observed)


def _start_with_shape(lifetimes: Lifetimes) -> Floats:
    return np.array([0.0, _log_mean(lifetimes)])


def _start_lognormal(lifetimes: Lifetimes) -> Floats:
    logarithms = np.log(lifetimes.duration_h)
    return np.array([logarithms.mean(), log(max(float(logarithms.std()), 0.05))])


def _start_gamma(lifetimes: Lifetimes) -> Floats:
    """Minka's approximation of the shape, good where nothing is censored."""
    mean_h = lifetimes.duration_h.mean()
    spread = max(float(np.log(mean_h) - np.log(lifetimes.duration_h).mean()), 1e-6)
    shape = (3 - spread + sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    return np.array([log(shape), _log_mean(lifetimes) - log(shape)])


EXPONENTIAL = Family(
    "exponential",
    ("scale_h",),
    (True,),
    lambda at: Exponential(exp(at[0])),
    lambda lifetimes: np.array([_log_mean(lifetimes)]),
)
WEIBULL = Family(
    "weibull",
    ("shape", "scale_h"),
    (True, True),
    lambda at: Weibull(exp(at[0]), exp(at[1])),
    _start_with_shape,
)
GAMMA = Family(
    "gamma",
    ("shape", "scale_h"),
    (True, True),
    lambda at: Gamma(exp(at[0]), exp(at[1])),
    _start_gamma,
)
LOGNORMAL = Family(
    "lognormal",
    ("mu", "sigma"),
    (False, True),
    lambda at: LogNormal(float(at[0]), exp(at[1])),
    _start_lognormal,
)
FAMILIES = {family.name: family for family in (EXPONENTIAL, WEIBULL, GAMMA, LOGNORMAL)}
