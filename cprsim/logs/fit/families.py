"""Families of lifetimes, with right-censoring and left truncation, by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.distributions import (
    Distribution,
    Exponential,
    Gamma,
    LogNormal,
    PiecewiseHazard,
    Weibull,
)
from cprsim.job.records import Floats
from cprsim.logs.fit.lifetimes import Lifetimes
from cprsim.logs.fit.likelihood import FLAT, Fit, Likelihood, Maximum, NotConvergedError, Scale

QUICK_TIMES = 500  # times that are quick to fit


@dataclass(frozen=True, slots=True)
class SearchFamily:
    """A family: its numbers and their scales, and where a search of them starts."""

    name: str
    scales: Mapping[str, Scale]  # by parameter, as `make` takes them
    make: Callable[..., Distribution]
    start: Callable[[Lifetimes], list[float]]  # search numbers

    def distribution(self, at: Floats) -> Distribution:
        """The member at search numbers."""
        return self.make(
            *(scale(x) for scale, x in zip(self.scales.values(), at.tolist(), strict=True))
        )

    def likelihood(self, lifetimes: Lifetimes) -> Likelihood:
        """Density of times that ended, survival of others (equal ones once), given their entry."""
        ended = lifetimes.observed
        ended_h, entry_h = lifetimes.duration_h[ended], lifetimes.entry_h[lifetimes.entry_h > 0]
        censored_h, n_each = np.unique(lifetimes.duration_h[~ended], return_counts=True)

        def total(at: Floats) -> float:
            distribution = self.distribution(at)  # which refuses what is outside the domain
            survived = -n_each * distribution.cumulative_hazard(censored_h)
            entered = distribution.cumulative_hazard(entry_h)
            return float(distribution.log_density(ended_h).sum() + survived.sum() + entered.sum())

        return Likelihood(self.name, total, len(ended_h))

    def search(self, lifetimes: Lifetimes, start: Floats, slope: float = FLAT) -> Distribution:
        """The most likely member, to a slope."""
        likelihood = self.likelihood(lifetimes)
        point, _ = likelihood.refine_maximum(likelihood.search_maximum(start, slope), slope)
        return self.distribution(point)


def fit(family: SearchFamily, lifetimes: Lifetimes) -> Fit:
    """The member of a family under which these times are most likely.

    Raises ParameterError where no end was observed, NotConvergedError where no maximum is found.
    """
    require_ends(lifetimes)
    if len(family.scales) > 1 and len(lifetimes.ends()[0]) < 2:
        raise NotConvergedError(f"{family.name}: all times are the same")
    start, likelihood = np.array(family.start(lifetimes)), family.likelihood(lifetimes)
    if lifetimes.n >= 2 * QUICK_TIMES:  # begin at the maximum of every n-th of them
        some = lifetimes.where(slice(None, None, lifetimes.n // QUICK_TIMES))
        start = nearer(family.likelihood(some), start, 1 / QUICK_TIMES)
    maximum = likelihood.maximum(start)
    return Fit(
        family.name, family.distribution(maximum.point), maximum.log_likelihood,
        len(family.scales), lifetimes.n_observed, maximum.parameters(family.scales.items()),
        maximum.derived("mean_h", lambda at: family.distribution(at).mean_h),
    )  # fmt: skip


def nearer(likelihood: Likelihood, start: Floats, slope: float = FLAT) -> Floats:
    """The maximum of a likelihood of some times; the start where it has none."""
    try:
        return likelihood.search_maximum(start, slope)
    except NotConvergedError:
        return start


def require_ends(lifetimes: Lifetimes) -> None:
    """Raise ParameterError where nothing ended."""
    if lifetimes.n_observed == 0:
        raise ParameterError("no failure was observed: nothing can be fitted")


# ------------------------------------------------------------------------------- the families


def log_mean(lifetimes: Lifetimes) -> float:
    """Logarithm of the hours watched for each end."""
    return log(lifetimes.total_h / lifetimes.n_observed)


def _start_lognormal(lifetimes: Lifetimes) -> list[float]:
    logarithms = np.log(lifetimes.duration_h)
    return [float(logarithms.mean()), log(max(float(logarithms.std()), 0.05))]


def _start_gamma(lifetimes: Lifetimes) -> list[float]:
    """Minka's approximation of the shape, good where nothing is censored."""
    mean_h = lifetimes.duration_h.mean()
    spread = max(float(np.log(mean_h) - np.log(lifetimes.duration_h).mean()), 1e-6)
    shape = (3 - spread + sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    return [log(shape), log_mean(lifetimes) - log(shape)]


EXPONENTIAL = SearchFamily("exponential", {"scale_h": exp}, Exponential, lambda t: [log_mean(t)])
WEIBULL = SearchFamily(
    "weibull", {"shape": exp, "scale_h": exp}, Weibull, lambda t: [0.0, log_mean(t)]
)
GAMMA = SearchFamily("gamma", {"shape": exp, "scale_h": exp}, Gamma, _start_gamma)
LOGNORMAL = SearchFamily("lognormal", {"mu": float, "sigma": exp}, LogNormal, _start_lognormal)
FAMILIES = {family.name: family for family in (EXPONENTIAL, WEIBULL, GAMMA, LOGNORMAL)}

# -------------------------------------------------------------------------------- piecewise hazards

N_PIECES = 5
FEWEST_ENDS = 4  # of each piece, below which there are fewer pieces


def fit_piecewise(lifetimes: Lifetimes) -> Fit:
    """Hazards of pieces with equally many ends, each its ends over the time spent in it.

    AIC and BIC count the borders too. Raises NotConvergedError for too few different times.
    """
    require_ends(lifetimes)
    ends_h = np.repeat(*lifetimes.ends())
    n_pieces = min(N_PIECES, len(ends_h) // FEWEST_ENDS)
    borders = ends_h[[len(ends_h) * i // n_pieces for i in range(1, n_pieces)]]
    from_h = np.append(0.0, np.unique(borders))
    n_ends = np.histogram(ends_h, np.append(from_h, np.inf))[0]
    watched_h = lifetimes.at_risk_h(np.append(from_h, np.inf))
    # times that differ by rounding alone leave no time between them
    if len(from_h) < 2 or (n_ends == 0).any() or (watched_h <= 1e-9 * lifetimes.total_h).any():
        raise NotConvergedError("piecewise: too few different times for two pieces")
    rates, ages_h = n_ends / watched_h, tuple(from_h.tolist())

    def hazards(at: Floats) -> PiecewiseHazard:
        return PiecewiseHazard(ages_h, tuple(np.exp(at).tolist()))

    log_likelihood = float((n_ends * np.log(rates)).sum() - n_ends.sum())
    # the variance is that of the logarithms
    maximum = Maximum(np.log(rates), log_likelihood, np.diag(1 / n_ends))
    return Fit(
        "piecewise", PiecewiseHazard(ages_h, tuple(rates.tolist())), log_likelihood,
        2 * len(rates) - 1, len(ends_h),
        maximum.parameters((f"hazard_from_{begin:.4g}_h", exp) for begin in ages_h),
        maximum.derived("mean_h", lambda at: hazards(at).mean_h),
    )  # fmt: skip
