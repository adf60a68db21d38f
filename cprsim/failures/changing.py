"""Failures whose rate changes: a Poisson process along the window of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from math import inf

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.clocks import struck_slots
from cprsim.failures.partial_draws import drawn
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
from cprsim.records import Clock, Cluster, Duration, ExpectedFailures, FailureTrace, Floats
from cprsim.streams import stream

FLAT = 1e-12  # logarithm that a rate rises by within a piece; below it is taken as constant


@dataclass(frozen=True, slots=True)
class Course:
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


@dataclass(frozen=True, slots=True)
class ChangingRate:
    """Failures of the job by a Poisson process whose rate changes along the window of a log.

    Parameters
    ----------
    course : the rate of the job's failures
    slots : the slots that can be struck
    together : how many of them fail at once, chosen anew at each failure
    clock : on which the window passes
    from_first : each replication begins at the window's first instant; otherwise at a random one.
        After its end the window begins again, as a replayed trace does
    repair : until a failed node is back in the pool; None for no time at all
    """

    course: Course
    slots: range | tuple[int, ...]
    together: int = 1
    clock: Clock = Clock.WALL
    from_first: bool = False
    repair: Duration | None = None

    def __post_init__(self) -> None:
        random_slots(slots_array(self.slots), 0, self.together, np.random.default_rng(0))

    def n_failures(self, useful_h: float) -> float:
        """Expected failures within `useful_h` hours of the clock; exact."""
        if self.from_first:
            return float(self.course.passed(np.array([useful_h]))[0])
        return useful_h * self.course.per_window / self.course.window_h

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Means over the hours, and over where in the window a job begins."""
        mtbf_h = useful_h / self.n_failures(useful_h)
        return expected_of_random_slots(cluster, slots_array(self.slots), self.together, mtbf_h)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failed nodes of a block."""
        return replications_for(self.n_failures(useful_h) * self.together)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """A chunk up to each border; see `FailureSource`.

        Given their number, the instants of a Poisson process are independent; each lies where a
        uniform share of the failures expected between the chunk's ends has passed.
        """
        kept = only(kept, n_replications)
        rng = stream(seed, block, "failures/changing")
        nodes = stream(seed, block, "failures/changing/slots")
        repairing = stream(seed, block, "failures/changing/repair")
        begin_h = rng.random(n_replications) * (0.0 if self.from_first else self.course.window_h)
        before = self.course.passed(begin_h)
        for from_h, until_h in pairwise(chain([0.0], borders_h)):
            after = self.course.passed(begin_h + until_h)
            mean = np.maximum(after - before, 0.0)
            share = 1.0 if kept is None else len(kept) / n_replications
            require_affordable(float(mean.sum()) * self.together, share, until_h)
            first = np.append(0, np.cumsum(rng.poisson(mean)))
            rows, mine = rows_of(first, kept), firsts_of(first, kept)
            of = numbers(mine) + (0 if kept is None else kept.start)
            passed = before[of] + drawn(rng.random, int(first[-1]), rows) * mean[of]
            at_h = self.course.instant(passed) - begin_h[of]
            at_h = np.clip(at_h[np.lexsort((at_h, of))], from_h, np.nextafter(until_h, 0))
            slot, repair_h = struck_slots(
                self.slots, self.together, int(first[-1]), rows, nodes, self.repair, repairing
            )
            yield FailureTrace(
                until_h, mine, at_h, counting(len(at_h) + 1) * self.together, slot, repair_h
            )
            before = after
