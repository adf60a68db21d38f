"""Failures whose rate changes: a Poisson process along the window of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from cprsim.failures.clocks import struck_slots
from cprsim.failures.course import RateCourse
from cprsim.failures.partial_draws import drawn
from cprsim.failures.random_factor import CourseExpectation, RandomFactor
from cprsim.failures.renewal import numbers, require_affordable
from cprsim.failures.sources import (
    counting,
    expected_of_random_slots,
    firsts_of,
    only,
    random_slots,
    replications_for,
    rows_of,
    slots_array,
)
from cprsim.records import Clock, Cluster, Duration, ExpectedFailures, FailureTrace, Floats, Ints
from cprsim.streams import stream


@dataclass(frozen=True, slots=True)
class ChangingRate:
    """Failures of the job by a Poisson process whose rate changes along the window of a log.

    With a random factor on the rate the process is doubly stochastic.

    Parameters
    ----------
    course : the rate of the job's failures
    slots : the slots that can be struck
    together : how many of them fail at once, chosen anew at each failure
    clock : on which the window passes
    from_first : each replication begins at the window's first instant; otherwise at a random one.
        After its end the window begins again, as a replayed trace does
    repair : until a failed node is back in the pool; None for no time at all
    factor : random, on the rate of each replication; None for none
    """

    course: RateCourse
    slots: range | tuple[int, ...]
    together: int = 1
    clock: Clock = Clock.WALL
    from_first: bool = False
    repair: Duration | None = None
    factor: RandomFactor | None = None

    def __post_init__(self) -> None:
        random_slots(slots_array(self.slots), 0, self.together, np.random.default_rng(0))

    def n_failures(self, useful_h: float) -> float:
        """Expected failures within `useful_h` hours of the clock; exact, for factors average 1."""
        if self.from_first:
            return float(self.course.passed(np.array([useful_h]))[0])
        return useful_h * self.course.per_window / self.course.window_h

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Means over the hours, and over where in the window a job begins."""
        mtbf_h = useful_h / self.n_failures(useful_h)
        return expected_of_random_slots(cluster, slots_array(self.slots), self.together, mtbf_h)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failed nodes of a block, and by the stretches of a random factor."""
        n_stretches = 0.0 if self.factor is None else useful_h / self.factor.lasts_h
        return replications_for(max(self.n_failures(useful_h) * self.together, n_stretches))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """A chunk up to each border; see `FailureSource`.

        Given their number, the instants of a Poisson process are independent; each lies where a
        uniform share of the failures expected between the chunk's ends has passed. So it is with a
        random factor, given its stretches.
        """
        kept = only(kept, n_replications)
        rng = stream(seed, block, "failures/changing")
        nodes = stream(seed, block, "failures/changing/slots")
        repairing = stream(seed, block, "failures/changing/repair")
        begin_h = rng.random(n_replications) * (0.0 if self.from_first else self.course.window_h)
        walk = _Walk.begin(self, begin_h, stream(seed, block, "failures/changing/factor"))
        for from_h, until_h in pairwise(chain([0.0], borders_h)):
            pace = walk.on(from_h, until_h)
            mean = pace.mean
            share = 1.0 if kept is None else len(kept) / n_replications
            require_affordable(float(mean.sum()) * self.together, share, until_h)
            first = np.append(0, np.cumsum(rng.poisson(mean)))
            rows, mine = rows_of(first, kept), firsts_of(first, kept)
            of = numbers(mine) + (0 if kept is None else kept.start)
            expected = drawn(rng.random, int(first[-1]), rows) * mean[of]
            at_h = pace.instant(of, expected) - begin_h[of]
            at_h = np.clip(at_h[np.lexsort((at_h, of))], from_h, np.nextafter(until_h, 0))
            slot, repair_h = struck_slots(
                self.slots, self.together, int(first[-1]), rows, nodes, self.repair, repairing
            )
            yield FailureTrace(
                until_h, mine, at_h, counting(len(at_h) + 1) * self.together, slot, repair_h
            )


@dataclass(frozen=True, slots=True)
class _AsExpected:
    """What is to come of a course between two instants, where no factor is on it."""

    course: RateCourse
    before: Floats  # (n_replications,) expected before the first of the instants
    mean: Floats  # (n_replications,) expected between the two

    def instant(self, of: Ints, expected: Floats) -> Floats:
        """As `Pace.instant`."""
        return self.course.instant(self.before[of] + expected)


@dataclass(slots=True)
class _Walk:
    """How all replications go along the course, from one chunk to the next."""

    course: RateCourse
    factor: RandomFactor | None
    rng: np.random.Generator  # of the factors
    begin_h: Floats  # (n_replications,) where in the course each begins
    before: Floats  # (n_replications,) expected of the course so far
    now: Floats  # (n_replications,) factors; none where there is no random one

    @classmethod
    def begin(cls, source: ChangingRate, begin_h: Floats, rng: np.random.Generator) -> _Walk:
        course, factor = source.course, source.factor
        now = np.zeros(0) if factor is None else factor.sample(rng, len(begin_h))
        return cls(course, factor, rng, begin_h, course.passed(begin_h), now)

    def on(self, from_h: float, until_h: float) -> _AsExpected | CourseExpectation:
        """The pace from the end of the last chunk on."""
        before, self.before = self.before, self.course.passed(self.begin_h + until_h)
        if self.factor is None:
            return _AsExpected(self.course, before, np.maximum(self.before - before, 0.0))
        stretches = self.factor.stretches(self.rng, self.now, from_h, until_h)
        self.now = stretches.last
        return CourseExpectation.of(self.course, stretches, self.begin_h, self.before)
