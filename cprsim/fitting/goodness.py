"""How well a fit describes its times: the empirical survival beside it, and a fair test.

The plain p-value of the Kolmogorov-Smirnov test is wrong for parameters fitted to the same data:
it is far too large. Here the distance is compared to that of samples drawn from the fit, censored
alike and fitted again (parametric bootstrap).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Distribution, PiecewiseHazard
from cprsim.failures.streams import stream
from cprsim.fitting.families import FAMILIES, Fit, fit, fit_piecewise, search
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.likelihood import NotConvergedError
from cprsim.records import Floats

ALL_FAMILIES = (*FAMILIES, PiecewiseHazard.family)
P_REJECTED = 0.01  # a family with a smaller p-value does not fit
MOST_FITTED = 200_000  # times that are fitted; of more, every n-th
MOST_RESAMPLED = 5_000  # times behind the p-values; of more, every n-th
ROUGHLY_FLAT = 1e-5  # slope at which a bootstrap sample counts as fitted


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """The product-limit estimate (Kaplan & Meier 1958), at the ages where something ended."""

    age_h: Floats  # (n_ages,) increasing
    survival: Floats  # (n_ages,) just after each age
    standard_error: Floats  # (n_ages,) of the survival (Greenwood 1926)


@dataclass(frozen=True, slots=True)
class Judged:
    """A fit and how well it describes the times."""

    fit: Fit
    ks: float  # largest distance between fitted and empirical survival
    p_value: float  # share of samples of the fit with a larger distance; NaN without bootstrap
    rmse_survival: float  # root of the mean squared distance at the ends seen (CPR's measure)


@dataclass(frozen=True, slots=True)
class Ranking:
    """All families that could be fitted, the best by AIC first, and why others could not."""

    judged: tuple[Judged, ...]
    failed: tuple[tuple[str, str], ...]  # (family, reason)
    fitted_every: int = 1  # fitted to every n-th of the times alone
    resampled_every: int = 1  # p-values by every n-th of those alone

    @property
    def best(self) -> Judged:
        """The one with the smallest AIC, whether it fits or not."""
        return self.judged[0]

    @property
    def why_not(self) -> str:
        """Why other families could not be fitted."""
        return "; ".join(why for _, why in self.failed)

    @property
    def none_fits(self) -> bool:
        """Whether every family is rejected; not where there are no p-values so small.

        A p-value below `P_REJECTED` takes a bootstrap of a hundred samples.
        """
        return all(judged.p_value < P_REJECTED for judged in self.judged)


def survival_curve(lifetimes: Lifetimes) -> SurvivalCurve:
    """Share that survives beyond each age, with censoring and late entry."""
    ages, ends = np.unique(lifetimes.duration_h[lifetimes.observed], return_counts=True)
    left = np.searchsorted(np.sort(lifetimes.duration_h), ages, side="left")
    entered = np.searchsorted(np.sort(lifetimes.entry_h), ages, side="left")
    at_risk = entered - left
    survival = np.cumprod(1 - ends / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(ends / (at_risk * (at_risk - ends)))
        error = np.where(survival > 0, survival * np.sqrt(variance), 0.0)
    return SurvivalCurve(ages, survival, error)


def distances(
    distribution: Distribution, lifetimes: Lifetimes, curve: SurvivalCurve | None = None
) -> tuple[float, float]:
    """KS distance and RMSE between the fitted and the empirical survival.

    The distance is taken on both sides of each step, the RMSE midway on each step, weighted by
    the number of ends. The curve is that of the lifetimes, where it is known already.
    """
    curve = curve or survival_curve(lifetimes)
    fitted = distribution.survival(curve.age_h)
    before = np.append(1.0, curve.survival[:-1])
    ks = max(np.abs(fitted - before).max(), np.abs(fitted - curve.survival).max())
    weights = before - curve.survival
    squared = (fitted - (before + curve.survival) / 2) ** 2
    return float(ks), float(np.sqrt(np.average(squared, weights=weights)))


def rank(
    lifetimes: Lifetimes,
    *,
    n_bootstrap: int = 199,
    seed: int = 0,
    families: Sequence[str] = ALL_FAMILIES,
) -> Ranking:
    """Fit every family, judge it, and sort by AIC.

    A family that does not converge is reported; the others go on. Of more than `MOST_FITTED` times
    every n-th is fitted, and of more than `MOST_RESAMPLED` every n-th is resampled, so that the
    time that it takes is bounded.

    Parameters
    ----------
    lifetimes : what to fit
    n_bootstrap : samples behind each p-value; 0 for none
    seed : of the bootstrap
    families : which ones

    Raises
    ------
    ParameterError
        where no end was observed, or no family converges.
    """
    judged, failed = [], []
    lifetimes, fitted_every = lifetimes.at_most(MOST_FITTED)
    some, resampled_every = lifetimes.at_most(MOST_RESAMPLED)
    some = _with_competitors(some, stream(seed, 0, "fit/bootstrap/competitors"))
    curve = survival_curve(lifetimes) if lifetimes.n_observed else None
    for name in families:
        try:
            fitted = (
                fit_piecewise(lifetimes)
                if name == PiecewiseHazard.family
                else fit(FAMILIES[name], lifetimes)
            )
        except NotConvergedError as error:
            failed.append((name, str(error)))
            continue
        ks, rmse = distances(fitted.distribution, lifetimes, curve)
        p_value = float("nan")
        if n_bootstrap > 0:
            ks_of_some = ks if resampled_every == 1 else _ks_again(fitted, some)
            p_value = _p_value(fitted, some, ks_of_some, n_bootstrap, seed)
        judged.append(Judged(fitted, ks, p_value, rmse))
    if not judged:
        raise ParameterError("no family can be fitted: " + "; ".join(why for _, why in failed))
    ranked = tuple(sorted(judged, key=lambda one: one.fit.aic))
    return Ranking(ranked, tuple(failed), fitted_every, resampled_every)


def _p_value(fitted: Fit, lifetimes: Lifetimes, ks: float, n_bootstrap: int, seed: int) -> float:
    rng = stream(seed, 0, f"fit/bootstrap/{fitted.family}")
    larger, n_fitted = 0, 0
    for _ in range(n_bootstrap):
        sample = resampled(fitted.distribution, lifetimes, rng)
        try:
            again = _fit_again(fitted, sample)
        except (NotConvergedError, ParameterError):
            continue
        n_fitted += 1
        larger += distances(again, sample)[0] >= ks
    return (1 + larger) / (1 + n_fitted) if n_fitted > 0 else float("nan")


def _ks_again(fitted: Fit, some: Lifetimes) -> float:
    """Distance of some of the times to the fit of those alone; infinite where there is none."""
    try:
        return distances(_fit_again(fitted, some), some)[0]
    except (NotConvergedError, ParameterError):
        return float("inf")


def _fit_again(fitted: Fit, sample: Lifetimes) -> Distribution:
    """The same family fitted to a sample, from where the first search ended."""
    if sample.n_observed == 0:
        raise ParameterError("nothing was observed")
    if fitted.family == PiecewiseHazard.family:
        return fit_piecewise(sample).distribution
    family = FAMILIES[fitted.family]
    numbers = zip(fitted.parameters, family.is_logarithm, strict=True)
    start = np.array([np.log(p.mean) if is_log else p.mean for p, is_log in numbers])
    return family.make(search(family, sample, start, ROUGHLY_FLAT))


def _with_competitors(lifetimes: Lifetimes, rng: np.random.Generator) -> Lifetimes:
    """When another kind of end would have censored the times that it did not, drawn once.

    From the product-limit estimate of the other kind's times, given that it comes later.
    """
    if not lifetimes.competed.any():
        return lifetimes
    other = survival_curve(replace(lifetimes, observed=lifetimes.competed))
    ended = lifetimes.observed
    steps = np.append(1.0, other.survival)
    beyond = steps[np.searchsorted(other.age_h, lifetimes.duration_h[ended], side="right")]
    later = np.searchsorted(-other.survival, -beyond * rng.random(len(beyond)), side="left")
    drawn_h = np.append(other.age_h, np.inf)[later]
    limit_h = lifetimes.limit_h.copy()
    limit_h[ended] = np.maximum(np.minimum(limit_h[ended], drawn_h), lifetimes.duration_h[ended])
    return replace(lifetimes, limit_h=limit_h)


def resampled(
    distribution: Distribution, lifetimes: Lifetimes, rng: np.random.Generator
) -> Lifetimes:
    """Times drawn from a distribution, entered and censored as the real ones would be."""
    drawn_h = distribution.sample_beyond(rng, lifetimes.entry_h)
    return replace(
        lifetimes,
        duration_h=np.minimum(drawn_h, lifetimes.limit_h),
        observed=drawn_h <= lifetimes.limit_h,
    )
