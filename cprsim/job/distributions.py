"""Distributions of lifetimes, repairs and other durations, in hours.

A lifetime is one cumulative hazard; survival follows from it. Every sample passes one guard, so
that no NaN, infinite or negative time ever enters a simulation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from math import comb, exp, inf, isfinite, log, sqrt
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cprsim.errors import ParameterError
from cprsim.files import Tagged
from cprsim.job.records import Duration, Floats, Ints

LONGEST_H = float(np.finfo(float).max)
MOST_SQUARED_CV = 1e6  # beyond it, no affordable number of draws comes near the mean


def positive(name: str, value: float) -> None:
    """Raise ParameterError unless `value` is a finite number above zero."""
    if not (isfinite(value) and value > 0):
        raise ParameterError(f"{name} must be a finite number above 0, not {value!r}")


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same time; zero is allowed, for costs that a scenario leaves out."""

    mean_h: float
    family: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        if not (isfinite(self.mean_h) and self.mean_h >= 0):
            raise ParameterError(f"a time must be finite and not negative, not {self.mean_h!r}")

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.full(size, self.mean_h)


class Distribution(ABC):
    """A time that varies, in hours. Satisfies `records.Duration`."""

    __slots__ = ()
    family: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            positive(field.name.removesuffix("_h"), getattr(self, field.name))

    @property
    @abstractmethod
    def mean_h(self) -> float:
        """Mean [h]."""

    @property
    @abstractmethod
    def squared_cv(self) -> float:
        """Variance over squared mean [1]: 1 for exponential, above 1 for early failures."""

    @abstractmethod
    def cumulative_hazard(self, age_h: ArrayLike) -> Floats:
        """Minus the logarithm of the survival at ages `age_h` [h], of any shape."""

    @abstractmethod
    def log_density(self, age_h: ArrayLike) -> Floats:
        """Logarithm of the density [1/h] at ages `age_h` [h], of any shape."""

    @abstractmethod
    def quantile(self, p: ArrayLike) -> Floats:
        """Age [h] by which a share `p` has failed."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Lifetimes of fresh nodes, unchecked."""

    @abstractmethod
    def _draw_length_biased(self, rng: np.random.Generator, size: int) -> Floats:
        """Whole lifetimes of nodes met at a random instant, unchecked: density t f(t) / mean."""

    def hazard_per_h(self, age_h: ArrayLike) -> Floats:
        """Rate of failure at ages `age_h` [h], given survival until then [1/h]."""
        return _floats(np.exp(self.log_density(age_h) + self.cumulative_hazard(age_h)))

    def survival(self, age_h: ArrayLike) -> Floats:
        """Probability of living longer than ages `age_h` [h], of any shape."""
        return _floats(np.exp(-self.cumulative_hazard(age_h)))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """`size` lifetimes [h] of fresh nodes, each finite and not negative."""
        return self._checked(self.simulable()._draw(rng, size))

    def sample_residual(self, rng: np.random.Generator, size: int) -> Floats:
        """`size` remaining lifetimes [h] of nodes that have been renewed for very long.

        A random instant meets a lifetime in proportion to its length, at a uniform place in it.
        """
        return self._checked(rng.random(size) * self.simulable()._draw_length_biased(rng, size))

    def sample_beyond(self, rng: np.random.Generator, age_h: Floats) -> Floats:
        """Lifetimes [h] given survival to ages `age_h` [h], (n,); also of fits that spread far."""
        if not age_h.any():
            return np.minimum(self._draw(rng, len(age_h)), LONGEST_H)
        p_beyond = self.survival(age_h) * (1 - rng.random(len(age_h)))
        return np.clip(self.quantile(1 - p_beyond), np.nextafter(age_h, inf), LONGEST_H)

    def _checked(self, drawn_h: Floats) -> Floats:
        # both are NaN where there is one
        if not (drawn_h.min(initial=0.0) >= 0 and drawn_h.max(initial=0.0) < inf):
            raise ParameterError(f"{self!r} draws times that are negative or not finite")
        return drawn_h

    def simulable(self) -> Self:
        """Itself, where samples can show its mean; a fit may spread further: ParameterError."""
        if not (isfinite(self.mean_h) and self.squared_cv <= MOST_SQUARED_CV):
            raise ParameterError(
                f"{self!r} spreads too far to be simulated: its standard deviation is more than "
                f"{sqrt(MOST_SQUARED_CV):g} times its mean"
            )
        return self


@dataclass(frozen=True, slots=True)
class Exponential(Distribution):
    """Constant hazard ``1 / mean``: a used node is as good as a new one."""

    mean_h: float
    family: ClassVar[str] = "exponential"

    @property
    def squared_cv(self) -> float:
        return 1.0

    def cumulative_hazard(self, age_h: ArrayLike) -> Floats:
        return _floats(age_h) / self.mean_h

    def log_density(self, age_h: ArrayLike) -> Floats:
        return -_floats(age_h) / self.mean_h - log(self.mean_h)

    def quantile(self, p: ArrayLike) -> Floats:
        return -self.mean_h * np.log1p(-_floats(p))

    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.exponential(self.mean_h, size)

    def _draw_length_biased(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.gamma(2.0, self.mean_h, size)


@dataclass(frozen=True, slots=True)
class Weibull(Distribution):
    """Survival ``exp(-(t / scale)**shape)``; the hazard falls with age where shape is below 1."""

    shape: float
    scale_h: float
    family: ClassVar[str] = "weibull"

    @classmethod
    def from_mean(cls, mean_h: float, shape: float) -> Weibull:
        return cls(shape, mean_h / float(special.gamma(1 + 1 / shape))).simulable()

    @property
    def mean_h(self) -> float:
        return self.scale_h * float(special.gamma(1 + 1 / self.shape))

    @property
    def squared_cv(self) -> float:
        log_ratio = special.gammaln(1 + 2 / self.shape) - 2 * special.gammaln(1 + 1 / self.shape)
        return float(np.expm1(min(log_ratio, 700.0)))

    def cumulative_hazard(self, age_h: ArrayLike) -> Floats:
        return _floats((_floats(age_h) / self.scale_h) ** self.shape)

    def log_density(self, age_h: ArrayLike) -> Floats:
        age = _floats(age_h) / self.scale_h
        return special.xlogy(self.shape - 1, age) - age**self.shape + log(self.shape / self.scale_h)

    def quantile(self, p: ArrayLike) -> Floats:
        return self.scale_h * (-np.log1p(-_floats(p))) ** (1 / self.shape)

    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        return self.scale_h * rng.weibull(self.shape, size)

    def _draw_length_biased(self, rng: np.random.Generator, size: int) -> Floats:
        # u = (t / scale)**shape has density u**(1 / shape) exp(-u) when t has t f(t)
        hazard = rng.gamma(1 + 1 / self.shape, size=size)
        return _floats(self.scale_h * np.float_power(hazard, 1 / self.shape))


@dataclass(frozen=True, slots=True)
class Gamma(Distribution):
    """Gamma with `shape` and scale; CPR's fit of the time to failure has shape about 0.67."""

    shape: float
    scale_h: float
    family: ClassVar[str] = "gamma"

    @classmethod
    def from_mean(cls, mean_h: float, shape: float) -> Gamma:
        return cls(shape, mean_h / shape).simulable()

    @property
    def mean_h(self) -> float:
        return self.shape * self.scale_h

    @property
    def squared_cv(self) -> float:
        return 1 / self.shape

    def survival(self, age_h: ArrayLike) -> Floats:
        return np.asarray(special.gammaincc(self.shape, _floats(age_h) / self.scale_h))

    def cumulative_hazard(self, age_h: ArrayLike) -> Floats:
        age = _floats(age_h) / self.scale_h
        with np.errstate(divide="ignore", invalid="ignore"):
            near = -np.log(special.gammaincc(self.shape, age))
            # beyond the range of floats: first terms of the incomplete gamma's expansion
            far = age - (self.shape - 1) * np.log(age) + special.gammaln(self.shape)
            far -= np.log1p((self.shape - 1) / age)
        return np.where(np.isfinite(near), near, far)

    def log_density(self, age_h: ArrayLike) -> Floats:
        age = _floats(age_h) / self.scale_h
        norm = float(special.gammaln(self.shape)) + log(self.scale_h)
        return special.xlogy(self.shape - 1, age) - age - norm

    def quantile(self, p: ArrayLike) -> Floats:
        return _floats(self.scale_h * special.gammaincinv(self.shape, _floats(p)))

    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.gamma(self.shape, self.scale_h, size)

    def _draw_length_biased(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.gamma(self.shape + 1, self.scale_h, size)


@dataclass(frozen=True, slots=True)
class LogNormal(Distribution):
    """The logarithm of the hours is normal with mean `mu` and standard deviation `sigma`."""

    mu: float
    sigma: float
    family: ClassVar[str] = "lognormal"

    def __post_init__(self) -> None:
        if not isfinite(self.mu):
            raise ParameterError(f"mu must be a finite number, not {self.mu!r}")
        positive("sigma", self.sigma)

    @classmethod
    def from_mean(cls, mean_h: float, sigma: float) -> LogNormal:
        return cls(log(mean_h) - sigma**2 / 2, sigma).simulable()

    @property
    def mean_h(self) -> float:
        log_mean = self.mu + self.sigma**2 / 2
        return exp(log_mean) if log_mean < 700 else inf

    @property
    def squared_cv(self) -> float:
        return float(np.expm1(min(self.sigma**2, 700.0)))

    def _z(self, age_h: ArrayLike) -> Floats:
        with np.errstate(divide="ignore"):  # -inf at age 0
            return np.asarray((np.log(_floats(age_h)) - self.mu) / self.sigma)

    def cumulative_hazard(self, age_h: ArrayLike) -> Floats:
        return -np.asarray(special.log_ndtr(-self._z(age_h)))

    def log_density(self, age_h: ArrayLike) -> Floats:
        age, z = _floats(age_h), self._z(age_h)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = -(z**2) / 2 - log(self.sigma * sqrt(2 * np.pi)) - np.log(age)
        return np.where(age > 0, density, -inf)

    def quantile(self, p: ArrayLike) -> Floats:
        return _floats(np.exp(self.mu + self.sigma * special.ndtri(_floats(p))))

    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.lognormal(self.mu, self.sigma, size)

    def _draw_length_biased(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.lognormal(self.mu + self.sigma**2, self.sigma, size)


@dataclass(frozen=True, slots=True)
class PiecewiseHazard(Distribution):
    """Constant hazard between ages; the last piece has no end."""

    from_h: tuple[float, ...]  # at which the pieces begin, the first of them 0
    rates_per_h: tuple[float, ...]  # hazard of each piece
    family: ClassVar[str] = "piecewise"

    def __post_init__(self) -> None:
        if len(self.from_h) != len(self.rates_per_h) or not self.from_h:
            raise ParameterError("each piece needs the age where it begins, and its hazard")
        is_bad = self.from_h[0] != 0 or not isfinite(self.from_h[-1])
        if is_bad or (np.diff(self.from_h) <= 0).any():
            raise ParameterError(f"pieces begin at 0 and then ever later, not at {self.from_h} h")
        for rate_per_h in self.rates_per_h:
            positive("hazard", rate_per_h)

    @property
    def _hazard_at_begin(self) -> Floats:
        """Cumulative hazard where each piece begins, (n_pieces,)."""
        return np.append(0.0, np.cumsum(np.diff(self.from_h) * self.rates_per_h[:-1]))

    @property
    def _time_in_piece_h(self) -> Floats:
        """Mean time [h] that a lifetime spends in each piece, (n_pieces,)."""
        survival = np.exp(-np.append(self._hazard_at_begin, np.inf))
        return _floats(-np.diff(survival) / self.rates_per_h)

    @property
    def mean_h(self) -> float:
        return float(self._time_in_piece_h.sum())

    @property
    def squared_cv(self) -> float:
        # E[T^2] is twice the integral of t S(t), piece by piece
        survival = np.exp(-np.append(self._hazard_at_begin, np.inf))
        ends_h = np.append(self.from_h[1:], 0.0)  # at the last one nobody survives
        in_piece = self.from_h * survival[:-1] - ends_h * survival[1:] + self._time_in_piece_h
        return float(2 * (in_piece / self.rates_per_h).sum() / self.mean_h**2 - 1)

    def _piece(self, age_h: ArrayLike) -> Ints:
        return np.asarray(np.searchsorted(self.from_h, age_h, side="right") - 1)

    def cumulative_hazard(self, age_h: ArrayLike) -> Floats:
        age, piece = _floats(age_h), self._piece(age_h)
        since_h = age - np.array(self.from_h)[piece]
        return _floats(self._hazard_at_begin[piece] + np.array(self.rates_per_h)[piece] * since_h)

    def log_density(self, age_h: ArrayLike) -> Floats:
        rate_per_h = np.array(self.rates_per_h)[self._piece(age_h)]
        return _floats(np.log(rate_per_h) - self.cumulative_hazard(age_h))

    def quantile(self, p: ArrayLike) -> Floats:
        return self._age_of(-np.log1p(-_floats(p)))

    def _age_of(self, hazard: Floats) -> Floats:
        """Age [h] by which the cumulative hazard has come to `hazard`."""
        piece = np.searchsorted(self._hazard_at_begin, hazard, side="right") - 1
        since = (hazard - self._hazard_at_begin[piece]) / np.array(self.rates_per_h)[piece]
        return _floats(np.array(self.from_h)[piece] + since)

    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        return self._age_of(rng.exponential(size=size))

    def _draw_length_biased(self, rng: np.random.Generator, size: int) -> Floats:
        # the age at a random instant has density survival / mean; the lifetime goes on from there
        share, begin_h = self._time_in_piece_h / self.mean_h, np.array(self.from_h)
        piece = rng.choice(len(share), size, p=share)
        length_h, rate_per_h = np.append(np.diff(begin_h), inf), np.array(self.rates_per_h)[piece]
        p_within = -special.expm1(-rate_per_h * length_h[piece])
        age_h = begin_h[piece] - special.log1p(-rng.random(size) * p_within) / rate_per_h
        return self._age_of(self.cumulative_hazard(age_h) + rng.exponential(size=size))


ALONE = (Constant, Exponential, Gamma, LogNormal, PiecewiseHazard, Weibull)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Each of some durations with its probability, such as people awake and asleep."""

    shares: tuple[float, ...]  # add up to 1
    values: tuple[Annotated[Duration, Tagged(*ALONE)], ...]

    @property
    def mean_h(self) -> float:
        return sum(p * of.mean_h for p, of in zip(self.shares, self.values, strict=True))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """(size,) draws [h]: which duration each is of, and then a draw of every duration."""
        chosen = np.searchsorted(np.cumsum(self.shares)[:-1], rng.random(size), side="right")
        return np.stack([of.sample(rng, size) for of in self.values])[chosen, np.arange(size)]


FROM_MEAN: dict[str, Callable[..., Distribution]] = {
    "exponential": Exponential,
    "weibull": Weibull.from_mean,
    "gamma": Gamma.from_mean,
    "lognormal": LogNormal.from_mean,
}


def with_mean(family: str, mean_h: float, shape: float | None = None) -> Distribution:
    """The member of a family of `FROM_MEAN`; `shape` is the sigma of lognormal."""
    positive("mean", mean_h)
    if shape is None:
        return FROM_MEAN[family](mean_h)
    positive("shape", shape)
    return FROM_MEAN[family](mean_h, shape)


def p_strikes(n_struck: int, n_marked: int, n_slots: int) -> float:
    """Probability that `n_struck` random ones of `n_slots` include a marked one."""
    return 1.0 - comb(n_slots - n_marked, n_struck) / comb(n_slots, n_struck)
