"""A random factor on a rate: a Poisson process of which nobody knows the rate beforehand.

The factor holds for a stretch of random length, exponential; then another one is drawn,
independently, of a gamma distribution with mean 1. Such a process is doubly stochastic (Cox 1955,
"Some statistical methods connected with series of events"); given the stretches it is Poisson.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from cprsim.budget import require_room
from cprsim.failures.course import RateCourse
from cprsim.failures.distributions import positive
from cprsim.records import Floats, Ints
from cprsim.units import TIME, Quantity

BYTES_OF_A_STRETCH = 80  # while it is drawn, and as a pace


@dataclass(frozen=True, slots=True)
class RandomFactor:
    """A random factor on the rate, which nobody knows beforehand.

    Gamma with mean 1, each for a stretch of exponential length, with mean `lasts_h` [h]. Two
    instants lie in one stretch with probability ``exp(-distance / lasts_h)``: that is the
    correlation of the factor with itself.

    Raises
    ------
    ParameterError
        for what is not above 0 and finite.
    """

    variance: float = field(
        metadata={
            "description": "Variance of the factor, no unit; it is gamma with mean 1.",
            "ge": 1e-6,
            "le": 100,
            "strict": True,
            "examples": [0.3],
        }
    )
    lasts_h: Annotated[float, Quantity(TIME, "1 s", "100000000 h", "100 h")] = field(
        metadata={
            "alias": "lasts",
            "description": "Mean time for which a factor holds [time]; it ends at random, then "
            "another one is drawn.",
        }
    )

    def __post_init__(self) -> None:
        positive("variance of the factor", self.variance)
        positive("length of a stretch", self.lasts_h)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """So many factors, (size,), above 0."""
        drawn = rng.gamma(1 / self.variance, self.variance, size)
        return np.maximum(drawn, np.finfo(float).tiny)

    def stretches(
        self, rng: np.random.Generator, now: Floats, from_h: float, until_h: float
    ) -> Stretches:
        """How the factors of some replications go on, (n_replications,) `now`.

        A stretch has no memory: nothing but its factor is carried from one call to the next.
        """
        n, hours = len(now), until_h - from_h
        require_room(
            BYTES_OF_A_STRETCH * n * (1 + hours / self.lasts_h),
            f"about {n * hours / self.lasts_h:.3g} stretches of a random factor before "
            f"{until_h:g} h",
            "stretches {} times as long would fit",
            # no fewer_fit: the stream is of the whole block
        )
        n_changes = rng.poisson(hours / self.lasts_h, n)
        first = np.append(0, np.cumsum(n_changes + 1))
        of = np.repeat(np.arange(n), n_changes + 1)
        changes = np.ones(len(of), dtype=bool)
        changes[first[:-1]] = False
        at_h, factor = np.full(len(of), from_h), now[of]
        at_h[changes] += hours * rng.random(len(of) - n)
        at_h = at_h[np.lexsort((at_h, of))]
        factor[changes] = self.sample(rng, len(of) - n)
        return Stretches(first, of, at_h, factor)


@dataclass(frozen=True, slots=True)
class Stretches:
    """The stretches of some replications, one replication after the other."""

    first: Ints  # (n_replications + 1,) where those of each begin
    of: Ints  # (n_stretches,) replication of each
    at_h: Floats  # (n_stretches,) where each begins [h]
    factor: Floats  # (n_stretches,)

    @property
    def last(self) -> Floats:
        """The factor at the end, (n_replications,)."""
        return self.factor[self.first[1:] - 1]


@dataclass(frozen=True, slots=True)
class CourseExpectation:
    """The failures expected along a course in each of some replications, given its stretches.

    What is expected stands in one row of numbers, replication after replication.
    """

    course: RateCourse
    stretches: Stretches
    passed: Floats  # (n_stretches,) of the course alone, before each begins
    before: Floats  # (n_stretches + 1,) with the factor, of all stretches before

    @classmethod
    def of(
        cls, course: RateCourse, stretches: Stretches, begin_h: Floats, end: Floats
    ) -> CourseExpectation:
        """The pace of replications that begin anywhere in the course.

        Parameters
        ----------
        begin_h : (n_replications,) instants of the course at which their time is 0 [h]
        end : (n_replications,) failures that the course alone expects before the last stretch ends
        """
        passed = course.passed(begin_h[stretches.of] + stretches.at_h)
        ends = np.append(passed[1:], 0.0)
        ends[stretches.first[1:] - 1] = end
        grown = stretches.factor * np.maximum(ends - passed, 0.0)
        return cls(course, stretches, passed, np.append(0.0, np.cumsum(grown)))

    @property
    def mean(self) -> Floats:
        """Failures expected in each replication, (n_replications,)."""
        borders = self.before[self.stretches.first]
        return np.asarray(borders[1:] - borders[:-1], dtype=np.float64)

    def instant(self, of: Ints, expected: Floats) -> Floats:
        """Instants of the course [h] before which so many failures are expected, (n,).

        Parameters
        ----------
        of : (n,) replications
        expected : (n,) failures, from 0 to the `mean` of the replication
        """
        first = self.stretches.first
        at = self.before[first[of]] + expected
        row = np.searchsorted(self.before, at, side="right") - 1
        row = np.clip(row, first[of], first[of + 1] - 1)
        since = np.maximum(at - self.before[row], 0.0) / self.stretches.factor[row]
        return self.course.instant(self.passed[row] + since)

    def expected(self, of: Ints, at_h: Floats) -> Floats:
        """Failures expected before instants of replications that begin where the course does, (n,).

        Parameters
        ----------
        of : (n,) replications
        at_h : (n,) instants from 0 to the end of the last stretch [h]
        """
        first, spacing_h = self.stretches.first, 1.0 + float(np.max(at_h, initial=0.0))
        line = self.stretches.of * spacing_h + np.minimum(self.stretches.at_h, spacing_h)
        row = np.searchsorted(line, of * spacing_h + at_h, side="right") - 1
        grown = self.stretches.factor[row] * (self.course.passed(at_h) - self.passed[row])
        return np.asarray(self.before[row] - self.before[first[of]] + grown, dtype=np.float64)
