"""A number with its 95 % interval: the one type for it, and the ways to make one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

from cprsim.files import OMITTED, Number, finite_or_none
from cprsim.records import Floats

NO_NUMBER = "–"  # stands in a table where there is none
CONFIDENCE = 0.95
LOW, HIGH = 0.025, 0.975  # quantiles at the ends of a 95 % interval
Z_95 = float(special.ndtri(HIGH))  # standard errors from the middle of a normal interval to its end
ROUNDED_Z_95 = 1.96  # the same to three digits, where results have always been computed with it


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    mean: Number  # the number
    low: Number = nan  # low, high: ends of the interval; NaN where there is none
    high: Number = nan
    # values that it rests on; 0 where they are not counted
    n: int = field(default=0, metadata=OMITTED)

    @property
    def half_width(self) -> float:
        """Half the length of the interval; NaN where there is none."""
        return (self.high - self.low) / 2

    @property
    def has_interval(self) -> bool:
        """Whether the lower end is a finite number."""
        return isfinite(self.low)

    @property
    def triple(self) -> tuple[float, float, float]:
        """The number and both ends."""
        return self.mean, self.low, self.high

    @property
    def by_name(self) -> dict[str, float]:
        """The number and both ends as JSON names them."""
        return {"mean": self.mean, "low": self.low, "high": self.high}

    def times(self, factor: float) -> Self:
        """The number and its interval in another unit."""
        mean, low, high = (factor * value for value in self.triple)
        return replace(self, mean=mean, low=low, high=high)

    @classmethod
    def of_mean(cls, values: npt.ArrayLike) -> Self:
        """Mean of independent values, (n,), by Student's t.

        One value alone has a mean but no interval: its ends are NaN. Equal values have an interval
        of no width. Exact for normal values; by the central limit theorem for many.
        """
        each: Floats = np.asarray(values)
        mean = float(np.mean(each))
        return cls.of_squares(mean, float(np.square(each - mean).sum()), len(each))

    @classmethod
    def of_squares(cls, mean: float, squares: float, n: int) -> Self:
        """`of_mean`, from the sum of the squared deviations of n values."""
        if n == 1:
            return cls(mean, nan, nan, n)
        deviation = np.sqrt(squares / (n - 1))
        half = float(special.stdtrit(n - 1, HIGH) * deviation / np.sqrt(n))
        return cls(mean, mean - half, mean + half, n)

    @classmethod
    def of_draws(cls, draws: Floats) -> Self:
        """Mean and quantiles of equally likely values, (n,)."""
        low, high = np.quantile(draws, (LOW, HIGH))
        return cls(float(draws.mean()), float(low), float(high), len(draws))

    @classmethod
    def of_share(cls, n_yes: int, n: int) -> Self:
        """A share (Clopper and Pearson 1934): never too narrow, inside [0, 1]."""
        tail = 1 - HIGH
        low = special.betaincinv(n_yes, n - n_yes + 1, tail) if n_yes > 0 else 0.0
        high = special.betaincinv(n_yes + 1, n - n_yes, HIGH) if n_yes < n else 1.0
        return cls(n_yes / n, float(low), float(high), n)

    @classmethod
    def of_count(cls, n: int) -> Self:
        """The mean of a Poisson number of which `n` was seen (Garwood 1936)."""
        low = float(special.gammaincinv(n, LOW)) if n else 0.0
        return cls(float(n), low, float(special.gammaincinv(n + 1, HIGH)), n)


def interval(
    estimate: Estimate, scaled: Callable[[float], float] = float, *, mean: str = "mean"
) -> dict[str, float | None]:
    """Mean, low and high as JSON has them: each null where it is not finite."""
    numbers = {mean: estimate.mean, "low": estimate.low, "high": estimate.high}
    return {name: finite_or_none(scaled(value)) for name, value in numbers.items()}
