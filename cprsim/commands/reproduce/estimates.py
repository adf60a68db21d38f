"""Estimates: values with their 95 % intervals, as text and as series of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import floor, isnan, log10
from typing import Any

from cprsim.job.records import Estimate
from cprsim.pages.chart import Kind, Series, floats
from cprsim.results.words import NARROWEST, significant, with_interval

SMALL = 0.5  # values below it are shown with as many decimals as their intervals allow


class StudyEstimate(Estimate):
    """An estimate of a study; its ends are NaN where it has no noise."""

    __slots__ = ()

    @classmethod
    def around(cls, mean: float, half_width: float) -> StudyEstimate:
        """With a symmetric interval."""
        return cls(mean, mean - half_width, mean + half_width)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the number itself where there is no noise."""
        return (self.mean, self.mean) if isnan(self.low) else (self.low, self.high)

    def over(self, other: StudyEstimate) -> StudyEstimate:
        """The ratio of two independent estimates, its interval to first order."""
        widths = [
            (estimate.ends[1] - estimate.ends[0]) / 2 / estimate.mean
            for estimate in (self, other)
            if estimate.mean
        ]
        ratio = self.mean / other.mean
        return StudyEstimate.around(ratio, ratio * float(sum(width**2 for width in widths) ** 0.5))

    def above(self, bound: float) -> bool | None:
        """Whether the whole interval lies above a value; None where the value lies in it."""
        return True if self.low > bound else False if self.high < bound else None

    def below(self, bound: float) -> bool | None:
        """The opposite of `above`."""
        is_above = self.above(bound)
        return None if is_above is None else not is_above

    def text(self, unit: str = "") -> str:
        """``8.36 ± 0.05 %``; the ends where the interval is not symmetric.

        Small values have two significant digits of the interval, at most three of their own.
        """
        value, (low, high) = self.mean, self.ends
        half, text = (high - low) / 2, significant
        is_exact, width = half <= NARROWEST * abs(value), ""
        if 0 < abs(value) < SMALL:
            digits = 2 - floor(log10(abs(value)))
            if not is_exact:
                digits = max(min(digits, 1 - floor(log10(half))), 1)
            text = f"{{:.{digits}f}}".format
            width = text(half) if text(half).strip("0.") else f"{half:.1g}"
        if is_exact:
            formatted = text(value)
        elif abs((high - value) - (value - low)) < 0.02 * (high - low):
            formatted = f"{text(value)} ± {width}" if width else with_interval(value, half)
        else:
            formatted = f"{text(value)} ({text(low)} to {text(high)})"
        return f"{formatted} {unit}".rstrip()


def stack(
    parts: Mapping[str, Iterable[float]], x: Iterable[str], totals: Iterable[StudyEstimate]
) -> tuple[Series, ...]:
    """Stacked bars, a series per part; the interval of the totals is with the last."""
    ends = [*zip(*(total.ends for total in totals), strict=True)]
    *below, last = parts
    names = [*x]
    return (
        *(series(part, names, parts[part], kind="stack") for part in below),
        series(last, names, parts[last], *ends, kind="stack"),
    )


def series(
    label: str, x: Iterable[Any], y: Iterable[Any], low: Iterable[float] = (),
    high: Iterable[float] = (), *, kind: Kind = "line",
) -> Series:  # fmt: skip
    """A series of a figure over numbers or names; of estimates with their intervals."""
    heights = [*y]
    if isinstance(heights[0], StudyEstimate):
        low, high = zip(*(height.ends for height in heights), strict=True)
        heights = [height.mean for height in heights]
    over = tuple(place if isinstance(place, str) else float(place) for place in x)
    return Series(label, over, floats(heights), floats(low), floats(high), kind)
