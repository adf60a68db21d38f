"""Goodness of fit: the empirical survival, and a test by parametric bootstrap.

The plain p-value of the Kolmogorov-Smirnov test is wrong for parameters fitted to the same data:
it is far too large. Here the distance is compared to that of samples drawn from the fit, censored
alike and fitted again (parametric bootstrap).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, log, nan
from typing import Any

import numpy as np

from cprsim.errors import ParameterError, counted
from cprsim.failures.sources import stream
from cprsim.job.distributions import Distribution, PiecewiseHazard
from cprsim.job.records import Estimate, Floats
from cprsim.logs.fit.families import FAMILIES, fit, fit_piecewise, require_ends
from cprsim.logs.fit.lifetimes import Lifetimes
from cprsim.logs.fit.likelihood import Fit, NotConvergedError

ALL_FAMILIES = (*FAMILIES, PiecewiseHazard.family)
P_OF_REJECTED_FIT = 0.01  # a family with a smaller p-value does not fit
FEWEST_TO_TRUST = 20  # gaps, failures or durations
MOST_FITTED = 200_000  # times that are fitted; of more, every n-th (up-times: n-th node's)
MOST_RESAMPLED = 5_000  # times behind the p-values; of more, every n-th
ROUGHLY_FLAT = 1e-5  # slope of the search of a bootstrap sample, and its last move


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """The product-limit estimate (Kaplan & Meier 1958), at the ages where something ended."""

    age_h: Floats  # (n_ages,) increasing
    survival: Floats  # (n_ages,) just after each age
    standard_error: Floats  # (n_ages,) of the survival (Greenwood 1926)

    @property
    def before(self) -> Floats:
        """The survival just before each age, (n_ages,)."""
        return np.append(1.0, self.survival[:-1])


@dataclass(frozen=True, slots=True)
class Ranking:
    """All families that could be fitted, the best by AIC first, and why others could not."""

    judged: tuple[Fit, ...]
    failed: tuple[tuple[str, str], ...]  # (family, reason)
    fitted_every: int = 1  # fitted to every n-th of the times alone
    resampled_every: int = 1  # p-values by every n-th of those alone

    @property
    def best(self) -> Fit:
        """The one with the smallest AIC, whether it fits or not."""
        return self.judged[0]

    @property
    def none_fits(self) -> bool:
        """Whether every family is rejected, which takes a bootstrap of a hundred samples."""
        return all(judged.p_value < P_OF_REJECTED_FIT for judged in self.judged)


@dataclass(frozen=True, kw_only=True)
class FittedQuantity:
    """One kind of times from a log, and the families fitted to it."""

    name: str
    lifetimes: Lifetimes
    ranking: Ranking | None
    why_not: str = ""  # where there is no ranking

    @property
    def best(self) -> Fit | None:
        """The best family, by AIC."""
        return self.ranking.best if self.ranking else None

    @property
    def family(self) -> str:
        return self.best.family if self.best else "none"

    @property
    def mean(self) -> Estimate | None:
        return self.mean_of(self.best) if self.best else None

    def mean_of(self, fit: Fit) -> Estimate:
        """The mean time by a family [h]."""
        return fit.mean

    @property
    def not_fitted(self) -> str:
        """Why some families, or all, were not fitted."""
        return "; ".join(why for _, why in self.ranking.failed) if self.ranking else self.why_not

    @property
    def row(self) -> dict[str, Any]:
        """These times, with the family that describes them best."""
        times, best, none = self.lifetimes, self.best, Estimate(nan)
        return {
            "times": self.name,
            "n_observed": times.n_observed,
            "n_censored": times.n - times.n_observed,
            "n_zero": times.n_zero,
            "longest_h": times.longest_h,
            "hours_per_end": times.hours_per_end,
            "family": self.family,
            "p_value": best.p_value if best else nan,
            **(self.mean or none).columns("mean_h"),
            **((best.spread if best else None) or none).columns("shape"),
            "none_fits": self.ranking.none_fits if self.ranking else None,
            "not_fitted": self.not_fitted,
        }


def survival_curve(lifetimes: Lifetimes) -> SurvivalCurve:
    """Share that survives beyond each age, with censoring and late entry."""
    ages, ends = lifetimes.ends()
    at_risk = lifetimes.n_at_risk(ages)
    survival = np.cumprod(1 - ends / at_risk, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(ends / (at_risk * (at_risk - ends)))
        error = np.where(survival > 0, survival * np.sqrt(variance), 0.0)
    return SurvivalCurve(ages, survival, error)


def distances(
    distribution: Distribution, lifetimes: Lifetimes, curve: SurvivalCurve | None = None
) -> tuple[float, float]:
    """KS distance and RMSE (midway on each step, weighted by ends) from the empirical survival."""
    curve = curve or survival_curve(lifetimes)
    fitted, before, after = distribution.survival(curve.age_h), curve.before, curve.survival
    ks = max(np.abs(fitted - before).max(), np.abs(fitted - after).max())
    squared = (fitted - (before + after) / 2) ** 2
    return float(ks), float(np.sqrt(np.average(squared, weights=before - after)))


def rank(
    lifetimes: Lifetimes,
    *,
    n_bootstrap: int = 199,
    seed: int = 0,
    families: Iterable[str] = ALL_FAMILIES,
) -> Ranking:
    """Fit every family that converges, test it by `n_bootstrap` samples, and sort by AIC.

    Raises ParameterError where no end was observed, or no family converges.
    """
    judged, failed = [], []
    lifetimes, fitted_every = lifetimes.at_most(MOST_FITTED)
    require_ends(lifetimes)
    some, resampled_every = lifetimes.at_most(MOST_RESAMPLED)
    some = _with_competitors(some, stream(seed, 0, "fit/bootstrap/competitors"))
    curve = survival_curve(lifetimes)
    for name in counted("fitting families", [*families]):
        try:
            piecewise = name == PiecewiseHazard.family
            fitted = fit_piecewise(lifetimes) if piecewise else fit(FAMILIES[name], lifetimes)
        except NotConvergedError as error:
            failed.append((name, str(error)))
            continue
        ks, rmse = distances(fitted.distribution, lifetimes, curve)
        p_value = nan
        if n_bootstrap > 0:
            ks_of_some = ks if resampled_every == 1 else _ks_again(fitted, some)
            p_value = _p_value(fitted, some, inf if ks_of_some is None else ks_of_some,
                               n_bootstrap, seed)  # fmt: skip
        judged.append(replace(fitted, ks=ks, p_value=p_value, rmse_survival=rmse))
    if not judged:
        raise ParameterError("no family can be fitted: " + "; ".join(why for _, why in failed))
    ranked = tuple(sorted(judged, key=lambda fitted: fitted.aic))
    return Ranking(ranked, tuple(failed), fitted_every, resampled_every)


def _p_value(fitted: Fit, lifetimes: Lifetimes, ks: float, n_bootstrap: int, seed: int) -> float:
    rng = stream(seed, 0, f"fit/bootstrap/{fitted.family}")
    samples = (resampled(fitted.distribution, lifetimes, rng) for _ in range(n_bootstrap))
    redrawn = (_ks_again(fitted, sample) for sample in samples)
    at_least = [again >= ks for again in redrawn if again is not None]
    return (1 + sum(at_least)) / (1 + len(at_least)) if at_least else nan


def _ks_again(fitted: Fit, sample: Lifetimes) -> float | None:
    """Distance of a sample to its own fit, from where the first search ended; None without one."""
    try:
        require_ends(sample)
        if fitted.family == PiecewiseHazard.family:
            return distances(fit_piecewise(sample).distribution, sample)[0]
        family = FAMILIES[fitted.family]
        numbers = zip(fitted.parameters, family.scales.values(), strict=True)
        start = np.array([p.mean if scale is float else log(p.mean) for p, scale in numbers])
        return distances(family.search(sample, start, ROUGHLY_FLAT), sample)[0]
    except (NotConvergedError, ParameterError):
        return None


def _with_competitors(lifetimes: Lifetimes, rng: np.random.Generator) -> Lifetimes:
    """When another kind of end would have censored times that ended before, drawn once."""
    if not lifetimes.competed.any():
        return lifetimes
    competitors = survival_curve(replace(lifetimes, observed=lifetimes.competed))
    ended = lifetimes.observed
    steps = np.append(1.0, competitors.survival)
    beyond = steps[np.searchsorted(competitors.age_h, lifetimes.duration_h[ended], side="right")]
    later = np.searchsorted(-competitors.survival, -beyond * rng.random(len(beyond)), side="left")
    drawn_h = np.append(competitors.age_h, np.inf)[later]
    limit_h = lifetimes.limit_h.copy()
    limit_h[ended] = np.maximum(np.minimum(limit_h[ended], drawn_h), lifetimes.duration_h[ended])
    return replace(lifetimes, limit_h=limit_h)


def resampled(
    distribution: Distribution, lifetimes: Lifetimes, rng: np.random.Generator
) -> Lifetimes:
    """Times drawn from a distribution, entered and censored as the real ones would be."""
    drawn_h = distribution.sample_beyond(rng, lifetimes.entry_h)
    limit_h = lifetimes.limit_h
    return replace(lifetimes, duration_h=np.minimum(drawn_h, limit_h), observed=drawn_h <= limit_h)
