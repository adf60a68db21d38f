"""Maxima of likelihoods: where they are, and how sure that is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, isfinite, nan
from typing import Self

import numpy as np
from scipy import linalg, optimize

from cprsim.errors import CprsimError, ParameterError
from cprsim.records import Z_95, Estimate, Floats, Ints

STEP = 1e-4  # of numerical derivatives, in search numbers
SMALL_STEP = float(np.finfo(float).eps ** 0.5)  # of those during the search
IMPOSSIBLE = 1e10  # mean minus log-likelihood of parameters outside the domain
FLAT = 1e-6  # slope of the mean log-likelihood at which the search ends
STEEPEST = 1e-4  # and at which it may end, where it can't come nearer

LogLikelihoods = Callable[[Floats], Floats]  # search numbers to contributions, (n,)


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
        cls, name: str, at: float, error: float, clustered: float, *, logarithm: bool
    ) -> Self:
        """The parameter that belongs to a search number: that number itself, or its exponential.

        Parameters
        ----------
        name : of the parameter
        at, error, clustered : search number and its two standard errors
        logarithm : whether it is the parameter's logarithm; the interval is then symmetric in it
        """
        value, low, high = at, at - Z_95 * error, at + Z_95 * error
        slope = 1.0  # of the parameter over the search number
        if logarithm:
            value, low, high = (exp(min(end, 700.0)) for end in (value, low, high))
            slope = value
        return cls(
            value,
            low,
            high,
            name=name,
            standard_error=slope * error,
            clustered_error=slope * clustered,
        )


def maximum(
    name: str, each: LogLikelihoods, start: Floats, n_observed: int, slope: float = FLAT
) -> Floats:
    """Where the sum of log-likelihoods is largest.

    Parameters
    ----------
    name : of what is searched, for the message
    each : contributions to the log-likelihood
    start : where to begin
    n_observed : what the sum is divided by, so that slopes mean the same for any size
    slope : of the mean log-likelihood, below which the search ends

    Raises
    ------
    NotConvergedError
        where scipy's BFGS does not come to a flat place within the domain.
    """
    loss = _Loss(each, n_observed)
    with np.errstate(all="ignore"):
        found = optimize.minimize(
            loss.value, start, method="BFGS", jac=loss.slope, options={"gtol": slope}
        )
    if found.fun >= IMPOSSIBLE or not np.abs(found.jac).max() < STEEPEST:
        reason = found.message.rstrip(".")
        raise NotConvergedError(f"{name}: no maximum of the likelihood found ({reason})")
    return np.asarray(found.x, dtype=np.float64)


class _Loss:
    """Mean minus log-likelihood of a point, and its slope.

    The slope is that which BFGS itself would take without one, to the last bit: scipy's way to it
    costs more than the likelihood of a few hundred times.
    """

    def __init__(self, each: LogLikelihoods, n_observed: int) -> None:
        self._each, self._n = each, n_observed
        self._at: Floats = np.empty(0)  # where BFGS looked last, and the value there
        self._there = nan

    def _of(self, point: Floats) -> float:
        try:
            mean = -self._each(point).sum() / self._n
        except (ParameterError, OverflowError):
            return IMPOSSIBLE
        return float(mean) if isfinite(mean) else IMPOSSIBLE

    def value(self, point: Floats) -> float:
        self._at, self._there = point, self._of(point)
        return self._there

    def slope(self, point: Floats) -> Floats:
        """Forward differences, (p,)."""
        value = self._there if np.array_equal(point, self._at) else self._of(point)
        return np.array([self._along(point, i, value) for i in range(len(point))])

    def _along(self, point: Floats, i: int, value: float) -> float:
        beyond = point.copy()
        beyond[i] += SMALL_STEP
        if beyond[i] == point[i]:  # so far out that the step is lost
            beyond[i] += SMALL_STEP * point[i]
        return (self._of(beyond) - value) / float(beyond[i] - point[i])


def covariances(
    name: str,
    each: LogLikelihoods,
    point: Floats,
    units: Ints | None = None,
    there: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Covariance of the search numbers at a maximum, plain and clustered.

    Parameters
    ----------
    name, each : see `maximum`
    point : the maximum, (p,)
    units : (n,) what each contribution belongs to; default: each to its own
    there : (n,) the contributions at the maximum, where they are known already

    Returns
    -------
    (p, p) from the observed information; (p, p) the sandwich with the units' scores in it

    Raises
    ------
    NotConvergedError
        where the likelihood is flat in some direction.
    """
    n = len(point)
    steps = STEP * np.eye(n)
    try:
        sides = [(each(point + h), each(point - h)) for h in steps]
        scores = np.array([up - down for up, down in sides]) / (2 * STEP)
        middle = each(point) if there is None else there
        curvature = _curvature(each, point, sides, middle)
        with warnings.catch_warnings(action="error", category=linalg.LinAlgWarning):
            covariance = linalg.inv(-curvature)
    except (
        ParameterError, OverflowError, linalg.LinAlgError, linalg.LinAlgWarning, ValueError
    ):  # fmt: skip
        covariance = np.full((n, n), np.nan)
    if not (np.isfinite(covariance).all() and (np.diag(covariance) > 0).all()):
        raise NotConvergedError(f"{name}: the likelihood is flat, no parameter stands out")
    if units is not None:
        seen = np.bincount(units) > 0
        scores = np.array([np.bincount(units, weights=score)[seen] for score in scores])
    n_units = scores.shape[1]
    few = n_units / (n_units - 1) if n_units > 1 else np.nan
    return covariance, few * covariance @ (scores @ scores.T) @ covariance


def _curvature(
    each: LogLikelihoods, point: Floats, sides: list[tuple[Floats, Floats]], middle: Floats
) -> Floats:
    """Second derivatives (p, p) of the sum, given its terms, and those a step up and down."""
    n = len(point)
    curvature = np.diag([float((up + down - 2 * middle).sum()) for up, down in sides])
    for i in range(n):
        for j in range(i):
            both = np.zeros(n)
            both[[i, j]] = STEP
            along = float((each(point + both) + each(point - both) - 2 * middle).sum())
            curvature[i, j] = curvature[j, i] = (along - curvature[i, i] - curvature[j, j]) / 2
    return curvature / STEP**2
