"""A random factor on the rate of a log's failures: whether there is one, how large, how long.

Failures are counted in many short bins. A factor (`failures/random_factor.py`) is on what the
log's course expects of each; its likelihood is exact for factors that change between bins alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, expm1, isfinite, log, nan

import numpy as np
from scipy import optimize, special

from cprsim.errors import ParameterError
from cprsim.estimate import Estimate, How
from cprsim.failures.course import RateCourse
from cprsim.failures.outages import Outages
from cprsim.failures.random_factor import RandomFactor
from cprsim.fitting.likelihood import NotConvergedError, Parameter, covariances
from cprsim.records import Floats

MOST_BINS = 4000
SHORTEST_H = 1.0  # of a bin
MOST_OF_LOG = 1 / 20  # of the log's length, that a factor lasts: longer ones are its course
VARIANCES = (1e-6, 20.0)  # that are looked at
N_FACTORS = 128  # that stand for all
LEAST_FACTOR = 1e-4  # smaller ones count as this one
NEVER = 1e-10  # probability of a factor above those that stand for all
CLAIMED = 3.0  # log-likelihood over the course alone from which a factor is claimed
STARTS_H, STARTS = 6, (0.002, 0.05, 0.3, 1.5)  # lengths, and variances, where the search may begin
NEAR = 0.02  # of logarithms of parameters, and of the log-likelihood, where the search ends
MOST_STEPS = 80

Likelihood = Callable[[Floats], Floats]  # logarithms of variance and length to bins, (n_bins,)


@dataclass(frozen=True, slots=True)
class RandomRate:
    """A random factor on a log's rate, as likely as it can be made."""

    variance: Estimate
    lasts_h: Estimate  # without an interval where it ends at the shortest or the longest
    gain: float  # log-likelihood over that of the course alone
    log_likelihood: float  # of course and factor, but for terms that are the same for all of them
    shortest_h: float  # that a factor may last: the length of a bin
    longest_h: float

    @property
    def is_claimed(self) -> bool:
        """Whether the log has a factor: it is `CLAIMED` likelier than the course alone."""
        return self.gain > CLAIMED

    @property
    def factor(self) -> RandomFactor | None:
        """The factor that the log has; None where it has none."""
        if not self.is_claimed:
            return None
        return RandomFactor(self.variance.mean, self.lasts_h.mean)

    def in_words(self) -> str:
        """The factor and what speaks for it."""
        gain = f"log-likelihood {self.gain:+.1f} over the course alone ({CLAIMED:g} are needed)"
        if not self.is_claimed:
            return f"no random factor besides: {gain}"
        return (
            f"besides, a random factor of variance {_in_words(self.variance)} that lasts "
            f"{_in_words(self.lasts_h)} h{self._at_end}: {gain}"
        )

    @property
    def _at_end(self) -> str:
        if self.lasts_h.has_interval:
            return ""
        at_most = self.lasts_h.mean > (self.shortest_h * self.longest_h) ** 0.5
        return f" ({'or longer' if at_most else 'or shorter: failures come in bursts'})"


def _in_words(one: Estimate) -> str:
    if not one.has_interval:
        return f"{one.mean:.3g}"
    return f"{one.mean:.3g} [{one.low:.3g}, {one.high:.3g}]"


def random_rate(outages: Outages, course: RateCourse) -> RandomRate:
    """The most likely random factor on the instants of a log's failures.

    Parameters
    ----------
    outages : the log
    course : its rate, but for the factor; taken as known

    Raises
    ------
    ParameterError
        where the log is too short for stretches that can be told from its course.
    """
    return fit_random_rate(_instants(outages), course)


def fit_random_rate(at_h: Floats, course: RateCourse) -> RandomRate:
    """As `random_rate`, of instants [h], (n,)."""
    bins = _Bins.of(at_h, course)
    each = bins.likelihood
    alone = -float(bins.mean.sum())  # of the course, whose factor is 1
    point = _search(each, VARIANCES, (bins.hours, bins.longest_h))
    gain = float(each(point).sum()) - alone
    variance, lasts_h = _parameters(each, point, bins)
    likelihood = gain + alone + float((bins.count * np.log(bins.mean)).sum())
    return RandomRate(variance, lasts_h, gain, likelihood, bins.hours, bins.longest_h)


def smoothed(outages: Outages, course: RateCourse, factor: RandomFactor) -> RateCourse:
    """The course times the mean of the factor at each time, given all failures of the log.

    Constant within each of many short bins.
    """
    from cprsim.fitting.loops import means_given_all  # with numba, for which only this waits

    bins = _Bins.of(_instants(outages), course)
    given = means_given_all(*bins.chain(factor.variance, factor.lasts_h))
    rates = tuple((bins.mean * given / bins.hours).tolist())
    borders_h = np.linspace(0.0, course.window_h, len(rates) + 1)
    return RateCourse(tuple(borders_h.tolist()), rates, rates)


def _instants(outages: Outages) -> Floats:
    return np.unique(outages.start_h[outages.in_window & outages.chosen])


@dataclass(frozen=True, slots=True)
class _Bins:
    count: Floats  # (n_bins,)
    mean: Floats  # (n_bins,) by the course
    hours: float  # of a bin
    longest_h: float  # that a factor may last

    @classmethod
    def of(cls, at_h: Floats, course: RateCourse) -> _Bins:
        window_h = course.window_h
        n = min(MOST_BINS, int(window_h / SHORTEST_H))
        if n * MOST_OF_LOG < 2:
            raise ParameterError(
                f"the log has {window_h:.3g} h; {2 * SHORTEST_H / MOST_OF_LOG:g} h are needed to "
                "tell a random factor from its course"
            )
        borders_h = np.linspace(0.0, window_h, n + 1)
        passed = np.append(course.passed(borders_h[:-1]), course.per_window)
        count = np.histogram(at_h, borders_h)[0].astype(np.float64)
        return cls(count, np.diff(passed), window_h / n, MOST_OF_LOG * window_h)

    def likelihood(self, at: Floats) -> Floats:
        """Log-likelihood of each bin at the logarithms of variance and length, (n_bins,)."""
        from cprsim.fitting.loops import log_likelihoods  # with numba, for which only this waits

        return log_likelihoods(*self.chain(exp(at[0]), exp(at[1])))

    def chain(
        self, variance: float, lasts_h: float
    ) -> tuple[Floats, Floats, Floats, Floats, float]:
        """The hidden chain: counts and means of the bins, factors, weights, chance of a change."""
        return self.count, self.mean, *_factors(variance), -expm1(-self.hours / lasts_h)


def _factors(variance: float) -> tuple[Floats, Floats]:
    """Values that stand for all of a gamma factor, with mean 1, and their weights, (n,) each.

    Evenly spaced in logarithms, each stands at the mean of its cell.
    """
    shape = 1 / variance
    most = special.gammainccinv(shape, NEVER) / shape
    least = max(special.gammaincinv(shape, NEVER) / shape, LEAST_FACTOR)
    borders = np.concatenate([[0.0], np.geomspace(least, most, N_FACTORS - 1), [np.inf]])
    weight = np.diff(special.gammainc(shape, shape * borders))
    share = np.diff(special.gammainc(shape + 1, shape * borders))
    known = weight > 0
    factor = np.maximum(share[known] / weight[known], np.finfo(float).tiny)
    return factor, np.asarray(weight[known], dtype=np.float64)


def _search(
    each: Likelihood, variances: tuple[float, float], lengths_h: tuple[float, float]
) -> Floats:
    """Logarithms of the most likely variance and length within bounds, (2,)."""

    def loss(point: Floats) -> float:
        found = -float(each(point).sum())
        return found if isfinite(found) else np.finfo(float).max

    lengths = np.geomspace(*lengths_h, STARTS_H, endpoint=False)
    starts = [np.log([v, length_h]) for length_h in lengths for v in STARTS]
    bounds = [(log(low), log(high)) for low, high in (variances, lengths_h)]
    found = optimize.minimize(
        loss,
        min(starts, key=loss),
        method="Nelder-Mead",
        bounds=bounds,
        options={"xatol": NEAR, "fatol": NEAR, "maxfev": MOST_STEPS},
    )
    return np.asarray(found.x, dtype=np.float64)


def _parameters(each: Likelihood, point: Floats, bins: _Bins) -> tuple[Estimate, Estimate]:
    """Variance and length [h] with intervals from the observed information of both.

    Where the length ends at what is looked at, that of the variance takes it as known.
    """
    names = ("variance", "lasts_h")
    ends_h = bins.hours, bins.longest_h
    inside = all(abs(point[1] - log(end_h)) > 2 * NEAR for end_h in ends_h)
    free = 2 if inside else 1
    try:
        covariance, _ = covariances(
            "random factor", lambda at: each(np.append(at, point[free:])), point[:free]
        )
        errors = np.append(np.sqrt(np.diag(covariance)), [nan, nan])[:2]
    except NotConvergedError:
        errors = np.full(2, nan)
    found = [
        Parameter.of_search(name, float(at), float(error), float(error), logarithm=True)
        if isfinite(error)
        else Estimate(exp(at), how=How.LIKELIHOOD)
        for name, at, error in zip(names, point, errors, strict=True)
    ]
    return found[0], found[1]
