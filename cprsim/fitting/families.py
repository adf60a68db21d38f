"""Maximum likelihood for lifetimes, with right-censoring and left truncation.

A family is a few numbers and the distribution that they make. The likelihood follows from its
density and cumulative hazard alone; standard errors, intervals, AIC and BIC from the likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, pi, sqrt

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.failures.distributions import (
    Distribution,
    Exponential,
    Gamma,
    LogNormal,
    PiecewiseHazard,
    Weibull,
)
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.likelihood import FLAT, STEP, NotConvergedError, Parameter, covariances, maximum
from cprsim.records import Floats

FEW = 500  # times that are quick to fit


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

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, by the number of observed ends: smaller is better."""
        return self.n_parameters * log(self.n_observed) - 2 * self.log_likelihood

    def parameter(self, name: str) -> Parameter:
        """One parameter. Raises KeyError for a name that the family does not have."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(name)


class _Ended:
    """What a likelihood has to know of times that ended."""

    def __init__(self, hours: Floats) -> None:
        self.n, self.log = len(hours), np.log(hours)
        self.total_h, self.total_log = float(hours.sum()), float(self.log.sum())
        self.mean_log = self.total_log / max(self.n, 1)
        self.squares = float(((self.log - self.mean_log) ** 2).sum())


@dataclass(frozen=True, slots=True)
class SearchFamily:
    """How a family is searched: its numbers, and where the search starts.

    Positive parameters are searched by their logarithm, so every point of the search is allowed.
    """

    name: str
    parameters: tuple[str, ...]
    is_logarithm: tuple[bool, ...]
    make: Callable[[Floats], Distribution]
    start: Callable[[Lifetimes], Floats]
    ended: Callable[[_Ended, Floats], float]  # log-likelihood of times that ended


def log_likelihoods(lifetimes: Lifetimes) -> Callable[[Distribution], Floats]:
    """Contribution of each time to a log-likelihood, (n,): density, or survival, given entry.

    Nodes that never failed were all watched as long: equal censored times are reckoned once.
    """
    ended, censored = np.flatnonzero(lifetimes.observed), np.flatnonzero(~lifetimes.observed)
    ended_h = lifetimes.duration_h[ended]
    censored_h, which = np.unique(lifetimes.duration_h[censored], return_inverse=True)
    late = np.flatnonzero(lifetimes.entry_h > 0)
    entry_h = lifetimes.entry_h[late]

    def each(distribution: Distribution) -> Floats:
        found = np.empty(lifetimes.n)
        found[ended] = distribution.log_density(ended_h)
        found[censored] = -distribution.cumulative_hazard(censored_h)[which]
        if len(late):
            found[late] += distribution.cumulative_hazard(entry_h)
        return found

    return each


def fit(family: SearchFamily, lifetimes: Lifetimes) -> Fit:
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
    each = _each(family, lifetimes)
    point = search(family, lifetimes, _near(family, lifetimes))
    there = each(point)
    covariance, clustered = covariances(family.name, each, point, lifetimes.unit, there)
    return Fit(
        family=family.name,
        distribution=family.make(point),
        log_likelihood=float(there.sum()),
        n_parameters=len(point),
        n_observed=lifetimes.n_observed,
        parameters=_estimates(family, point, covariance, clustered),
        mean=_mean(family, point, covariance, clustered),
    )


def _each(family: SearchFamily, lifetimes: Lifetimes) -> Callable[[Floats], Floats]:
    """Contribution of each time from the search numbers."""
    of = log_likelihoods(lifetimes)
    return lambda at: of(family.make(at))


def _summed(family: SearchFamily, lifetimes: Lifetimes) -> Callable[[Floats], Floats]:
    """The same contributions, those of times that ended as one number."""
    ended = _Ended(lifetimes.duration_h[lifetimes.observed])
    rest = lifetimes.where(~lifetimes.observed)
    of_rest = log_likelihoods(rest)
    late_h = lifetimes.entry_h[lifetimes.observed & (lifetimes.entry_h > 0)]

    def summed(at: Floats) -> Floats:
        distribution = family.make(at)  # which refuses what is outside the domain
        seen = family.ended(ended, at)
        if len(late_h):
            seen += distribution.cumulative_hazard(late_h).sum()
        return np.append(of_rest(distribution), seen) if rest.n else np.array([seen])

    return summed


def _near(family: SearchFamily, lifetimes: Lifetimes) -> Floats:
    """Where to begin: for many times, at the maximum of every n-th of them."""
    start = family.start(lifetimes)
    if lifetimes.n < 2 * FEW:
        return start
    some = lifetimes.where(slice(None, None, lifetimes.n // FEW))
    try:
        return search(family, some, start, slope=1 / FEW)
    except (NotConvergedError, ZeroDivisionError):
        return start


def search(
    family: SearchFamily, lifetimes: Lifetimes, start: Floats, slope: float = FLAT
) -> Floats:
    """Search numbers of the most likely member; see `likelihood.maximum`."""
    return maximum(family.name, _summed(family, lifetimes), start, lifetimes.n_observed, slope)


def _estimates(
    family: SearchFamily, point: Floats, covariance: Floats, clustered: Floats
) -> tuple[Parameter, ...]:
    errors, clustered_errors = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(clustered))
    return tuple(
        Parameter.of_search(name, float(at), float(error), float(clustered_error), logarithm=is_log)
        for name, is_log, at, error, clustered_error in zip(
            family.parameters, family.is_logarithm, point, errors, clustered_errors, strict=True
        )
    )


def _mean(family: SearchFamily, point: Floats, covariance: Floats, clustered: Floats) -> Parameter:
    """The mean lifetime [h], its errors by the delta method on the logarithm."""
    steps = STEP * np.eye(len(point))
    slope = np.array(
        [log(family.make(point + h).mean_h / family.make(point - h).mean_h) for h in steps]
    ) / (2 * STEP)
    error, clustered_error = (sqrt(float(slope @ m @ slope)) for m in (covariance, clustered))
    at = log(family.make(point).mean_h)
    return Parameter.of_search("mean_h", at, error, clustered_error, logarithm=True)


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


def _weibull_ended(ended: _Ended, at: Floats) -> float:
    shape, log_scale = exp(at[0]), at[1]
    hazard = float(np.exp(shape * (ended.log - log_scale)).sum())
    return float(ended.n * (at[0] - shape * log_scale) + (shape - 1) * ended.total_log - hazard)


def _gamma_ended(ended: _Ended, at: Floats) -> float:
    shape = exp(at[0])
    norm = ended.n * (float(special.gammaln(shape)) + shape * at[1])
    return float((shape - 1) * ended.total_log - ended.total_h / exp(at[1]) - norm)


def _lognormal_ended(ended: _Ended, at: Floats) -> float:
    squares = ended.squares + ended.n * (ended.mean_log - at[0]) ** 2
    norm = ended.n * (at[1] + log(2 * pi) / 2) + ended.total_log
    return float(-squares / (2 * exp(2 * at[1])) - norm)


EXPONENTIAL = SearchFamily(
    "exponential",
    ("scale_h",),
    (True,),
    lambda at: Exponential(exp(at[0])),
    lambda lifetimes: np.array([_log_mean(lifetimes)]),
    lambda ended, at: -ended.n * at[0] - ended.total_h / exp(at[0]),
)
WEIBULL = SearchFamily(
    "weibull",
    ("shape", "scale_h"),
    (True, True),
    lambda at: Weibull(exp(at[0]), exp(at[1])),
    _start_with_shape,
    _weibull_ended,
)
GAMMA = SearchFamily(
    "gamma",
    ("shape", "scale_h"),
    (True, True),
    lambda at: Gamma(exp(at[0]), exp(at[1])),
    _start_gamma,
    _gamma_ended,
)
LOGNORMAL = SearchFamily(
    "lognormal",
    ("mu", "sigma"),
    (False, True),
    lambda at: LogNormal(float(at[0]), exp(at[1])),
    _start_lognormal,
    _lognormal_ended,
)
FAMILIES = {family.name: family for family in (EXPONENTIAL, WEIBULL, GAMMA, LOGNORMAL)}


# -------------------------------------------------------------------------------- piecewise hazards

N_PIECES = 5
FEWEST_ENDS = 4  # of each piece, below which there are fewer pieces


def fit_piecewise(lifetimes: Lifetimes, n_pieces: int = N_PIECES) -> Fit:
    """Most likely hazards of pieces that hold equally many of the observed ends.

    Exact: each hazard is the piece's ends over the time spent in it. AIC and BIC count the borders
    too, as they come from the same data.

    Raises
    ------
    ParameterError
        where no end was observed.
    NotConvergedError
        where the ends are too few, or too much the same, for two pieces.
    """
    if lifetimes.n_observed == 0:
        raise ParameterError("no failure was observed: nothing can be fitted")
    ends_h = np.sort(lifetimes.duration_h[lifetimes.observed])
    n_pieces = min(n_pieces, len(ends_h) // FEWEST_ENDS)
    borders = ends_h[[len(ends_h) * i // n_pieces for i in range(1, n_pieces)]]
    from_h = np.append(0.0, np.unique(borders))
    n_ends = np.histogram(ends_h, np.append(from_h, np.inf))[0]
    at_risk_h = lifetimes.at_risk_h(np.append(from_h, np.inf))
    # times that differ by rounding alone leave no time between them
    if len(from_h) < 2 or (n_ends == 0).any() or (at_risk_h <= 1e-9 * lifetimes.total_h).any():
        raise NotConvergedError("piecewise: too few different times for two pieces")
    rates = n_ends / at_risk_h
    distribution = PiecewiseHazard(tuple(from_h.tolist()), tuple(rates.tolist()))
    log_likelihood = float((n_ends * np.log(rates)).sum() - n_ends.sum())
    errors = 1 / np.sqrt(n_ends)  # of the logarithms
    parameters = tuple(
        Parameter.of_search(f"hazard_from_{begin:.4g}_h", log(rate), error, error, logarithm=True)
        for begin, rate, error in zip(from_h, rates, errors, strict=True)
    )
    n_numbers = len(rates) + len(from_h) - 1
    mean_error = _log_mean_error(distribution, errors)
    mean = Parameter.of_search(
        "mean_h", log(distribution.mean_h), mean_error, mean_error, logarithm=True
    )
    return Fit("piecewise", distribution, log_likelihood, n_numbers, len(ends_h), parameters, mean)


def _log_mean_error(distribution: PiecewiseHazard, errors: Floats) -> float:
    """Standard error of the mean's logarithm, by the delta method on each hazard's logarithm."""
    step, squared = 1e-4, 0.0
    for piece, error in enumerate(errors):
        moved = np.zeros(len(errors))
        moved[piece] = step
        up, down = (
            PiecewiseHazard(
                distribution.from_h, tuple(distribution.rates_per_h * np.exp(by))
            ).mean_h
            for by in (moved, -moved)
        )
        squared += (log(up / down) / (2 * step) * error) ** 2
    return sqrt(squared)
