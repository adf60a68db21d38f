"""A hazard that is constant between some ages: the pattern "high at the start, then flat"."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Distribution, positive
from cprsim.records import Floats, Ints


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
