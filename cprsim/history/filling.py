"""What a log does not say of an incident, drawn from the incidents of which it says all.

Instants that are not known are drawn many times over; what a draw makes of a job are hours that add
up, and the spread of the draws is the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite, nan

import numpy as np

from cprsim.history.course import Incident
from cprsim.records import Floats, Ints

ORDER = ("detect", "save", "wait", "reschedule", "regroup", "load", "replay", "rebuild")
NOT_ALWAYS = "wait"  # a stage that is booked only where the log tells it
EXPECTED_SHARE = 0.5  # of the incidents that have a stage, for it to be missed in the others
MOST_KEPT = 200  # incidents that others are drawn from
N_NEAREST = 5  # incidents of about the same length, one of which stands in
TRIES = 20  # instants of death that are drawn until one is possible


@dataclass(frozen=True, slots=True)
class Usual:
    """How the incidents of a log go that it says everything of."""

    stages: tuple[str, ...]  # that an incident has, in order
    took_s: Floats  # (n_incidents, n_stages)
    gaps_s: Floats = field(default_factory=lambda: np.empty(0))  # between signs of work, ascending
    again: Ints = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))

    def resampled(self, n_draws: int, gaps_s: Floats, rng: np.random.Generator) -> Usual:
        """With other incidents in each draw: draws spread as far as few incidents leave open.

        Parameters
        ----------
        gaps_s : between one sign of work in the log and the next [s]
        """
        n = len(self.took_s)
        took_s = self.took_s
        if n > MOST_KEPT:
            took_s = took_s[rng.choice(n, MOST_KEPT, replace=False)]
        again = rng.integers(max(len(took_s), 1), size=(n_draws, len(took_s)))
        return Usual(self.stages, took_s, np.sort(gaps_s), again)

    def p_silent(self, time_s: Floats) -> Floats:
        """How likely the log has no sign of work for so long while the job works."""
        if len(self.gaps_s) == 0:
            return np.ones(len(time_s))
        return 1.0 - np.searchsorted(self.gaps_s, time_s, side="left") / len(self.gaps_s)

    @classmethod
    def of(cls, incidents: Sequence[Incident]) -> Usual:
        """Learn from the incidents of one or several jobs."""
        whole = [one for one in incidents if _is_whole(one)]
        seen = [dict(_durations_s(one)) for one in whole]
        n_of = {name: sum(name in one for one in seen) for name in ORDER}
        least = EXPECTED_SHARE * len(seen)
        stages = tuple(name for name in ORDER if n_of[name] > least and name != NOT_ALWAYS)
        rows = [
            [one[name] for name in stages] for one in seen if all(name in one for name in stages)
        ]
        return cls(stages, np.array(rows, dtype=np.float64).reshape(len(rows), len(stages)))


def _is_whole(one: Incident) -> bool:
    return (
        not one.is_start
        and one.n_failures == 1
        and isfinite(one.failed_s)
        and isfinite(one.resumed_s)
        and len({name for name, _ in one.stages}) == len(one.stages)
    )


def _durations_s(one: Incident) -> list[tuple[str, float]]:
    ends = [at_s for _, at_s in one.stages[1:]] + [one.resumed_s]
    return [(name, end - at_s) for (name, at_s), end in zip(one.stages, ends, strict=True)]


@dataclass(frozen=True, slots=True)
class Filled:
    """An incident with all its instants: seconds, one value a draw."""

    failed_s: Floats  # (n_draws,)
    resumed_s: Floats
    stages: tuple[tuple[str, Floats], ...]  # seconds that each took
    n_inferred: int  # instants that the log does not give


def filled(
    incident: Incident,
    resumes: Callable[[Floats], Floats],
    usual: Usual,
    rng: np.random.Generator,
) -> Filled:
    """Draw what is not known of an incident.

    Parameters
    ----------
    resumes : when work went on [s], by when it ended [s]; (n_draws,) each. By the log, or by the
        steps made since.
    """
    n = len(usual.again)
    names, starts = _expected(incident, usual)
    known = [at_s for at_s in starts if isfinite(at_s)]
    inferred = sum(not isfinite(at_s) for at_s in starts) + (not isfinite(incident.resumed_s))
    first = next((place for place, at_s in enumerate(starts) if isfinite(at_s)), len(starts))
    edges = [np.full(n, at_s) for at_s in starts]
    if first > 0:
        low_s = incident.after_s if isfinite(incident.after_s) else 0.0
        next_s = np.full(n, known[0]) if known else resumes(np.full(n, low_s))
        edges[:first] = _before(names[:first], next_s, low_s, usual, rng)
    resumed_s = resumes(edges[0])
    resumed_s = np.maximum(resumed_s, known[-1] if known else edges[0])
    place = max(first, 0)
    while place < len(edges):
        end = place + 1
        while end < len(edges) and not isfinite(starts[end]):
            end += 1
        until_s = edges[end] if end < len(edges) else resumed_s
        if end == place + 2 and names[place + 1] == "detect":
            took_s = _usually("detect", usual, rng)
            edges[place + 1] = np.maximum(until_s - took_s, edges[place])
        elif end > place + 1:
            shares = _shares(names[place:end], until_s - edges[place], usual, rng)
            ends = edges[place][:, None] + np.cumsum(shares, axis=1)[:, :-1]
            edges[place + 1 : end] = list(ends.T)
        place = end
    last = [*edges[1:], resumed_s]
    took = tuple((name, end - edge) for name, edge, end in zip(names, edges, last, strict=True))
    return Filled(edges[0], resumed_s, took, inferred)


def _expected(incident: Incident, usual: Usual) -> tuple[list[str], list[float]]:
    """Stages of an incident with those that the log left out, and when each began."""
    names, starts = [name for name, _ in incident.stages], [at_s for _, at_s in incident.stages]
    if incident.is_start or incident.n_failures == 0:
        return names, starts
    told = list(zip(names, starts, strict=True))
    cuts = [0, *(place for place in range(1, len(told)) if names[place] == "detect"), len(told)]
    cycles = [told[begin:end] for begin, end in pairwise(cuts)]
    whole = [
        stage
        for number, cycle in enumerate(cycles)
        for stage in _with_missed(cycle, usual, is_last=number == len(cycles) - 1)
    ]
    names, starts = [name for name, _ in whole], [at_s for _, at_s in whole]
    if isfinite(incident.failed_s):
        if not names:
            return ["detect"], [incident.failed_s]
        if not isfinite(starts[0]):
            starts[0] = incident.failed_s
    elif not names or (isfinite(starts[0]) and starts[0] > incident.after_s):
        names, starts = ["detect", *names], [nan, *starts]
    return names, starts


def _with_missed(
    cycle: list[tuple[str, float]], usual: Usual, *, is_last: bool
) -> list[tuple[str, float]]:
    """The stages after one failure with those left out; one that the next cut off has no more."""
    names = [name for name, _ in cycle]
    if [name for name in ORDER if name in names] != names:
        return cycle
    expected = usual.stages
    if not is_last:
        last = max((ORDER.index(name) for name in names), default=-1)
        expected = tuple(name for name in expected if ORDER.index(name) <= last)
    given = dict(cycle)
    return [(name, given.get(name, nan)) for name in ORDER if name in given or name in expected]


def _before(
    names: list[str], next_s: Floats, low_s: float, usual: Usual, rng: np.random.Generator
) -> list[Floats]:
    """When the first stages began, of which the log gives none: (n_draws,) each.

    The job died after the last sign of its work, and no later than the silence since then allows.
    """
    n = len(next_s)
    known = [name for name in names if name in usual.stages]
    failed_s = _by_silence(next_s, low_s, usual, rng)
    if len(usual.took_s) and known:
        took = usual.took_s[:, [usual.stages.index(name) for name in known]].sum(axis=1)
        possible = np.zeros(n, dtype=bool)
        rows = np.arange(n)
        for _ in range(TRIES):
            again = next_s - took[usual.again[rows, rng.integers(len(took), size=n)]]
            silent = usual.p_silent(again - low_s)
            fits = ~possible & (again >= low_s) & (rng.random(n) < silent)
            failed_s[fits] = again[fits]
            possible |= fits
    shares = _shares(names, next_s - failed_s, usual, rng)
    later = failed_s[:, None] + np.cumsum(shares, axis=1)[:, :-1]
    return [failed_s, *later.T]


def _usually(name: str, usual: Usual, rng: np.random.Generator) -> Floats:
    """What a stage takes: (n_draws,), nothing where the log never tells."""
    n, n_known = usual.again.shape
    if name not in usual.stages or n_known == 0:
        return np.zeros(n)
    rows = usual.again[np.arange(n), rng.integers(n_known, size=n)]
    return np.asarray(usual.took_s[rows, usual.stages.index(name)])


def _by_silence(next_s: Floats, low_s: float, usual: Usual, rng: np.random.Generator) -> Floats:
    """Anywhere after the last sign of work, as far as the silence allows."""
    n = len(next_s)
    longest = usual.gaps_s[-1] if len(usual.gaps_s) else np.inf
    room_s = np.minimum(np.maximum(next_s - low_s, 0.0), longest)
    return low_s + rng.random(n) * room_s


def _shares(names: list[str], total_s: Floats, usual: Usual, rng: np.random.Generator) -> Floats:
    """How a known time splits into stages, as in incidents of about that length: (n_draws, n)."""
    n = len(total_s)
    places = [usual.stages.index(name) for name in names if name in usual.stages]
    if len(places) < len(names) or len(usual.took_s) == 0:
        cuts = np.sort(rng.random((n, len(names) - 1)), axis=1)
        edges = np.concatenate([np.zeros((n, 1)), cuts, np.ones((n, 1))], axis=1)
        return np.diff(edges, axis=1) * total_s[:, None]
    rows = usual.took_s[:, places]
    sums = rows.sum(axis=1)
    chosen = _near(sums, total_s, usual.again, rng)
    of_all = np.where(sums > 0, sums, 1.0)
    split = np.where(sums[:, None] > 0, rows / of_all[:, None], 1.0 / len(names))
    return split[chosen] * total_s[:, None]


def _near(sums: Floats, wanted: Floats, again: Ints, rng: np.random.Generator) -> Ints:
    """One of the incidents of about that length, of those of each draw: (n_draws,)."""
    n_near = min(N_NEAREST, len(sums))
    off = np.abs(sums[again] - wanted[:, None])
    near = np.argpartition(off, n_near - 1, axis=1)[:, :n_near]
    rows = np.arange(len(wanted))
    return np.asarray(again[rows, near[rows, rng.integers(n_near, size=len(wanted))]])
