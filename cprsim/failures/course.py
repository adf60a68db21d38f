"""The course of a rate along a window: its integral, and the inverse of that."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np

from cprsim.errors import ParameterError
from cprsim.records import Floats

FLAT = 1e-12  # logarithm that a rate rises by within a piece; below it is taken as constant


@dataclass(frozen=True, slots=True)
class RateCourse:
    """A rate along a window, log-linear within each piece; the window is repeated without end.

    Parameters
    ----------
    borders_h : of the pieces, from 0 to the window's length, increasing [h]
    begins_per_h, ends_per_h : the rate at both ends of each piece, above 0 [1/h]

    Raises
    ------
    ParameterError
        for borders that do not increase from 0, or rates that are none.
    """

    borders_h: tuple[float, ...]
    begins_per_h: tuple[float, ...]
    ends_per_h: tuple[float, ...]

    def __post_init__(self) -> None:
        n = len(self.borders_h) - 1
        if n < 1 or self.borders_h[0] != 0 or any(a >= b for a, b in pairwise(self.borders_h)):
            raise ParameterError("the borders of a rate's pieces increase from 0 h on")
        if not n == len(self.begins_per_h) == len(self.ends_per_h):
            raise ParameterError("each piece of a rate has one at its begin and one at its end")
        if not all(0 < rate < inf for rate in (*self.begins_per_h, *self.ends_per_h)):
            raise ParameterError("a rate that changes stays above 0, and finite")

    @property
    def window_h(self) -> float:
        """The length of the window [h]."""
        return self.borders_h[-1]

    @property
    def per_window(self) -> float:
        """Failures expected in the whole window."""
        return float(self._before[-1])

    def passed(self, at_h: Floats) -> Floats:
        """Failures expected before instants of the repeated window [h], (n,).

        Notes
        -----
        The integral of the rate; that of ``a exp(s t)`` up to t is ``a (exp(s t) - 1) / s``.
        """
        rounds, rest_h = np.divmod(at_h, self.window_h)
        piece = np.searchsorted(self.borders_h[1:-1], rest_h, side="right")
        rate, slope = np.asarray(self.begins_per_h)[piece], self._slopes[piece]
        since_h = rest_h - np.asarray(self.borders_h)[piece]
        within = rate * _over(np.expm1(slope * since_h), slope, since_h)
        return np.asarray(rounds * self.per_window + self._before[piece] + within)

    def instant(self, n_before: Floats) -> Floats:
        """The instant [h] before which so many failures are expected: the inverse of `passed`."""
        rounds, rest = np.divmod(n_before, self.per_window)
        piece = np.searchsorted(self._before[1:-1], rest, side="right")
        rate, slope = np.asarray(self.begins_per_h)[piece], self._slopes[piece]
        flat_h = (rest - self._before[piece]) / rate
        since_h = _over(np.log1p(slope * flat_h), slope, flat_h)
        return np.asarray(rounds * self.window_h + np.asarray(self.borders_h)[piece] + since_h)

    @property
    def _slopes(self) -> Floats:
        """Of the logarithm of each piece's rate [1/h]; 0 where it is flat."""
        rises = np.log(self.ends_per_h) - np.log(self.begins_per_h)
        return np.where(np.abs(rises) < FLAT, 0.0, rises) / np.diff(self.borders_h)

    @property
    def _before(self) -> Floats:
        """Failures expected before each border, (n_pieces + 1,)."""
        slopes, hours = self._slopes, np.diff(self.borders_h)
        each = np.asarray(self.begins_per_h) * _over(np.expm1(slopes * hours), slopes, hours)
        return np.append(0.0, np.cumsum(each))


def _over(grown: Floats, slope: Floats, flat: Floats) -> Floats:
    """What has grown over its slope; its limit `flat` where that is 0."""
    return np.where(slope == 0, flat, grown / np.where(slope == 0, 1.0, slope))
