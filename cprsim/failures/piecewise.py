"""A hazard that is constant between some ages: the pattern "high at the start, then flat"."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Distribution, positive
from cprsim.failures.fitting import Fit
from cprsim.failures.lifetimes import Lifetimes
from cprsim.failures.likelihood import NotConvergedError, estimate
from cprsim.records import Floats, Ints

N_PIECES = 5
FEWEST_ENDS = 4  # of each piece, below which there are fewer pieces


@dataclass(frozen=True, slots=True)
class PiecewiseHazard(Distribution):
    """Constant hazard between ages; the last piece has no end.

    Parameters
    ----------
    from_h : ages [h] at which the pieces begin, the first of them 0, increasing
    rates_per_h : hazard [1/h] of each piece
    """

    from_h: tuple[float, ...]
    rates_per_h: tuple[float, ...]
    family: ClassVar[str] = "piecewise"

    def __post_init__(self) -> None:
        if len(self.from_h) != len(self.rates_per_h) or not self.from_h:
            raise ParameterError("each piece needs the age where it begins, and its hazard")
        if (
            self.from_h[0] != 0
            or (np.diff(self.from_h) <= 0).any()
            or not isfinite(self.from_h[-1])
        ):
            raise ParameterError(f"pieces begin at 0 and then ever later, not at {self.from_h} h")
        for rate_per_h in self.rates_per_h:
            positive("hazard", rate_per_h)

    @property
    def _begins_h(self) -> Floats:
        return np.array(self.from_h)

    @property
    def _rates(self) -> Floats:
        return np.array(self.rates_per_h)

    @property
    def _hazard_at_begin(self) -> Floats:
        """Cumulative hazard where each piece begins, (n_pieces,)."""
        return np.append(0.0, np.cumsum(np.diff(self._begins_h) * self._rates[:-1]))

    @property
    def _time_in_piece_h(self) -> Floats:
        """Mean time [h] that a lifetime spends in each piece, (n_pieces,)."""
        survival = np.exp(-np.append(self._hazard_at_begin, np.inf))
        return np.asarray(-np.diff(survival) / self._rates, dtype=np.float64)

    @property
    def mean_h(self) -> float:
        return float(self._time_in_piece_h.sum())

    @property
    def squared_cv(self) -> float:
        # E[T^2] is twice the integral of t S(t), piece by piece
        survival = np.exp(-np.append(self._hazard_at_begin, np.inf))
        ends_h = np.append(self._begins_h[1:], 0.0)  # at the last one nobody survives
        in_piece = self._begins_h * survival[:-1] - ends_h * survival[1:] + self._time_in_piece_h
        return float(2 * (in_piece / self._rates).sum() / self.mean_h**2 - 1)

    def _piece(self, age_h: Floats) -> Ints:
        return np.asarray(np.searchsorted(self._begins_h, age_h, side="right") - 1)

    def cumulative_hazard(self, age_h: ArrayLike) -> Floats:
        age = np.asarray(age_h, dtype=np.float64)
        piece = self._piece(age)
        since_h = age - self._begins_h[piece]
        hazard = self._hazard_at_begin[piece] + self._rates[piece] * since_h
        return np.asarray(hazard, dtype=np.float64)

    def log_density(self, age_h: ArrayLike) -> Floats:
        age = np.asarray(age_h, dtype=np.float64)
        return np.log(self._rates[self._piece(age)]) - self.cumulative_hazard(age)

    def quantile(self, p: ArrayLike) -> Floats:
        return self._age_of(-np.log1p(-np.asarray(p, dtype=np.float64)))

    def _age_of(self, hazard: Floats) -> Floats:
        """Age [h] by which the cumulative hazard has come to `hazard`."""
        piece = np.searchsorted(self._hazard_at_begin, hazard, side="right") - 1
        since = (hazard - self._hazard_at_begin[piece]) / self._rates[piece]
        return np.asarray(self._begins_h[piece] + since, dtype=np.float64)

    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        return self._age_of(rng.exponential(size=size))

    def _draw_length_biased(self, rng: np.random.Generator, size: int) -> Floats:
        # the age at a random instant has density survival / mean; the lifetime goes on from there
        share = self._time_in_piece_h / self.mean_h
        piece = rng.choice(len(share), size, p=share)
        lengths_h = np.append(np.diff(self._begins_h), np.inf)[piece]
        p_within = -np.expm1(-self._rates[piece] * lengths_h)
        age_h = self._begins_h[piece] - np.log1p(-rng.random(size) * p_within) / self._rates[piece]
        return self._age_of(self.cumulative_hazard(age_h) + rng.exponential(size=size))


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
        estimate(f"hazard_from_{begin:.4g}_h", log(rate), error, error, logarithm=True)
        for begin, rate, error in zip(from_h, rates, errors, strict=True)
    )
    n_numbers = len(rates) + len(from_h) - 1
    mean_error = _log_mean_error(distribution, errors)
    mean = estimate("mean_h", log(distribution.mean_h), mean_error, mean_error, logarithm=True)
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
