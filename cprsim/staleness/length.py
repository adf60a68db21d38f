"""How losses grow with the length of training: measured at three lengths, and held to the longest.

A power law through the slopes of the two shorter lengths predicts that of the longest. Where what
was measured there agrees within its interval, and the interval is narrow enough to tell, the law
is followed beyond the longest, as far again as the lengths lie apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, log

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.records import HIGH, Floats
from cprsim.staleness.expected import jackknife_error

N_LENGTHS = 3
MOST_DOUBT = 2.0  # ends of the interval over its middle: a wider one would let any law pass
UNKNOWN = (np.nan, 0.0, inf)


@dataclass(frozen=True, slots=True, eq=False)
class LengthLaw:
    """Slopes of one metric at three lengths of training."""

    n_samples: Floats  # (3,) ascending, of a run
    # (3, n_seeds) loss per weighted PLS under plain partial recovery, on the same seeds
    by_seed: Floats

    def __post_init__(self) -> None:
        shape = self.by_seed.shape
        if len(shape) != 2 or shape[0] != N_LENGTHS or shape[1] < 2 or not self._ascends():
            raise ParameterError(
                f"a law of length takes the slopes of several seeds at {N_LENGTHS} ascending "
                f"lengths, not {shape} at {self.n_samples.tolist()}"
            )

    def _ascends(self) -> bool:
        lengths = self.n_samples
        return len(lengths) == N_LENGTHS and lengths[0] > 0 and bool((np.diff(lengths) > 0).all())

    @property
    def longest(self) -> float:
        """Samples of the longest run."""
        return float(self.n_samples[-1])

    @property
    def farthest(self) -> float:
        """Samples up to which the law is followed, where it holds."""
        return self.longest**2 / float(self.n_samples[0])

    def measured_over_predicted(self) -> tuple[float, float, float]:
        """At the longest length, by the law through the shorter ones; both ends of 95 %."""
        if not self._can_be_told():
            return UNKNOWN
        off = np.log(self.by_seed.mean(axis=1)) @ self._weights()
        error = jackknife_error(np.log(self._without_each()) @ self._weights())
        half = float(special.stdtrit(self.by_seed.shape[1] - 1, HIGH) * error)
        return tuple(float(np.exp(off + sign * half)) for sign in (0, -1, 1))  # type: ignore[return-value]

    def _can_be_told(self) -> bool:
        """Whether slopes are above 0, whichever seed is left out."""
        return bool((self._without_each() > 0).all())

    def _weights(self) -> Floats:
        """(3,) of the logarithms of the slopes, in that of measured over predicted."""
        near, far = np.diff(np.log(self.n_samples))
        return np.array([far / near, -1 - far / near, 1.0])

    def _without_each(self) -> Floats:
        """(n_seeds, 3) mean slopes without each of the seeds."""
        total, n = self.by_seed.sum(axis=1), self.by_seed.shape[1]
        without: Floats = (total - self.by_seed.T) / (n - 1)
        return without

    def why_not(self, n_samples: float) -> str:
        """Why losses at a length are not known, in words; empty where they are."""
        if n_samples < self.n_samples[0]:
            return f"the shortest run that was measured has {self.n_samples[0]:,.0f}"
        if not self._can_be_told():
            return "their slopes can't be told from nothing"
        if n_samples <= self.longest:
            return ""
        ratio, low, high = self.measured_over_predicted()
        there = f"measured over predicted is {ratio:.2f}, {low:.2f} to {high:.2f}"
        if high > MOST_DOUBT * ratio:
            return f"whether a law of two lengths predicts the longest can't be told ({there})"
        if not low <= 1 <= high:
            return f"the law of the two shorter lengths does not predict the longest ({there})"
        if n_samples > self.farthest:
            return f"its law is not followed beyond {self.farthest:,.0f}"
        return ""

    def factors(self, n_samples: float) -> tuple[float, Floats]:
        """Losses at a length over those at the longest; (n_seeds,) the same without each seed."""
        whole, *parts = self._factors(n_samples, (self.by_seed.mean(axis=1), *self._without_each()))
        return whole, np.array(parts)

    def _factors(self, n_samples: float, slopes: Iterable[Floats]) -> list[float]:
        """Between lengths by the line between them, beyond by the power law of all three."""
        at, lengths = log(n_samples), np.log(self.n_samples)
        logs = [np.log(one) for one in slopes]
        if n_samples <= self.longest:
            return [float(np.exp(np.interp(at, lengths, one) - one[-1])) for one in logs]
        beyond = at - lengths[-1]
        return [float(np.exp(beyond * np.polyfit(lengths, one, 1)[0])) for one in logs]
