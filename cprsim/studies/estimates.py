"""Estimates: values with their 95 % intervals, as text and as series of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, isnan, log10

from cprsim.plots.chart import Kind, Series
from cprsim.records import Estimate
from cprsim.results.words import ROUNDING, significant, with_interval

SMALL = 0.5  # values below it are shown with as many decimals as their intervals allow


class StudyEstimate(Estimate):
    """An estimate of a study; its ends are NaN where it has no noise."""

    __slots__ = ()

    @classmethod
    def around(cls, mean: float, half_width: float) -> StudyEstimate:
        """With a symmetric interval."""
        return cls(mean, mean - half_width, mean + half_width)

    @classmethod
    def exact(cls, value: float) -> StudyEstimate:
        """With an interval of no width."""
        return cls(value, value, value)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the number itself where there is no noise."""
        return (self.mean, self.mean) if isnan(self.low) else (self.low, self.high)

    def over(self, other: StudyEstimate) -> StudyEstimate:
        """The ratio of two independent estimates, its interval to first order."""
        widths = [(one.ends[1] - one.ends[0]) / 2 / one.mean for one in (self, other) if one.mean]
        ratio = self.mean / other.mean
        return StudyEstimate.around(ratio, ratio * float(sum(width**2 for width in widths) ** 0.5))

    def above(self, bound: float) -> bool | None:
        """Whether the whole interval lies above a value; None where the value lies in it."""
        return True if self.low > bound else False if self.high < bound else None

    def below(self, bound: float) -> bool | None:
        """The opposite of `above`."""
        is_above = self.above(bound)
        return None if is_above is None else not is_above

    def shown(self, unit: str = "") -> str:
        """``8.36 ± 0.05 %``; the ends where the interval is not symmetric."""
        return f"{self._digits()} {unit}".rstrip()

    def _digits(self) -> str:
        value, (low, high) = self.mean, self.ends
        half = (high - low) / 2
        is_exact = half <= ROUNDING * abs(value) / 2
        is_even = abs((high - value) - (value - low)) < 0.02 * (high - low)
        if 0 < abs(value) < SMALL:
            return _small(value, low, high, is_even=is_even)
        if is_exact:
            return significant(value)
        if is_even:
            return with_interval(value, half)
        return f"{significant(value)} ({significant(low)} to {significant(high)})"


def _small(value: float, low: float, high: float, *, is_even: bool) -> str:
    """Two significant digits of the interval, at most three of the value: 0.0846 ± 0.0013."""
    half, digits = (high - low) / 2, 2 - floor(log10(abs(value)))
    if half <= ROUNDING * abs(value):
        return f"{value:.{digits}f}"
    digits = max(min(digits, 1 - floor(log10(half))), 1)
    if is_even:
        shown = f"{half:.{digits}f}"
        return f"{value:.{digits}f} ± {shown if shown.strip('0.') else f'{half:.1g}'}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def series(
    label: str, x: Iterable[float | str], estimates: Sequence[StudyEstimate], kind: Kind = "line"
) -> Series:
    """Estimates over x with their intervals, as a series of a figure."""
    low, high = zip(*(one.ends for one in estimates), strict=True)
    return Series(label, tuple(x), tuple(one.mean for one in estimates), low, high, kind)
