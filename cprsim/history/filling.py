"""What a log does not say of an incident, drawn from the incidents of which it says all.

Instants that are not known are drawn many times over; what a draw makes of a job are hours that add
up, and the spread of the draws is the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np

from cprsim.history.course import Incident
from cprsim.records import Floats, Ints

ORDER = ("detect", "save", "wait", "reschedule", "regroup", "load", "replay", "rebuild")
EXPECTED_SHARE = 0.5  # of the incidents that have a stage, for it to be missed in the others
N_NEAREST = 5  # incidents of about the same length, one of which stands in
TRIES = 20  # instants of death that are drawn until one is possible


@dataclass(frozen=True, slots=True)
class Usual:
    """How the incidents of a log go that it says everything of."""

    stages: tuple[str, ...]  # that an incident has, in order
    took_s: Floats  # (n_incidents, n_stages)

    @classmethod
    def of(cls, incidents: Sequence[Incident]) -> Usual:
        """Learn from the incidents of one or several jobs."""
        whole = [one for one in incidents if _is_whole(one)]
        seen = [dict(_durations_s(one)) for one in whole]
        n_of = {name: sum(name in one for one in seen) for name in ORDER}
        least = EXPECTED_SHARE * len(seen)
        stages = tuple(name for name in ORDER if n_of[name] > least)
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
    incident: Incident, resumed_s: Floats, usual: Usual, rng: np.random.Generator
) -> Filled:
    """Draw what is not known of an incident.

    Parameters
    ----------
    resumed_s : (n_draws,) when work went on, by the log or by the steps made since
    """
    n = len(resumed_s)
    names, starts = _expected(incident, usual)
    known = [at_s for at_s in starts if isfinite(at_s)]
    inferred = sum(not isfinite(at_s) for at_s in starts) + (not isfinite(incident.resumed_s))
    first = next((place for place, at_s in enumerate(starts) if isfinite(at_s)), len(starts))
    next_s = np.full(n, known[0]) if known else resumed_s
    resumed_s = np.maximum(resumed_s, known[-1] if known else _lowest(incident, resumed_s))
    edges = [np.full(n, at_s) for at_s in starts]
    if first > 0:
        before = _before(names[:first], next_s, incident, usual, rng)
        edges[:first] = before
    place = first
    while place < len(edges):
        end = place + 1
        while end < len(edges) and not isfinite(starts[end]):
            end += 1
        until_s = edges[end] if end < len(edges) else resumed_s
        if end > place + 1:
            shares = _shares(names[place:end], until_s - edges[place], usual, rng)
            ends = edges[place][:, None] + np.cumsum(shares, axis=1)[:, :-1]
            edges[place + 1 : end] = list(ends.T)
        place = end
    ends = [*edges[1:], resumed_s]
    took = tuple((name, end - edge) for name, edge, end in zip(names, edges, ends, strict=True))
    return Filled(edges[0], resumed_s, took, inferred)


def _lowest(incident: Incident, resumed_s: Floats) -> Floats:
    return np.where(isfinite(incident.after_s), incident.after_s, resumed_s)


def _expected(incident: Incident, usual: Usual) -> tuple[list[str], list[float]]:
    """Stages of an incident with those that the log left out, and when each began."""
    names, starts = [name for name, _ in incident.stages], [at_s for _, at_s in incident.stages]
    if incident.is_start:
        return names, starts
    plain = incident.n_failures == 1 and [n for n in ORDER if n in names] == names
    if plain:
        given = dict(incident.stages)
        names = [name for name in ORDER if name in given or name in usual.stages]
        starts = [given.get(name, nan) for name in names]
    if isfinite(incident.failed_s):
        if not names:
            return ["detect"], [incident.failed_s]
        if not isfinite(starts[0]):
            starts[0] = incident.failed_s
    elif not names or (isfinite(starts[0]) and starts[0] > incident.after_s):
        names, starts = ["detect", *names], [nan, *starts]
    return names, starts


def _before(
    names: list[str], next_s: Floats, incident: Incident, usual: Usual, rng: np.random.Generator
) -> list[Floats]:
    """When the first stages began, of which the log gives none: (n_draws,) each."""
    n, low_s = len(next_s), incident.after_s
    low_s = low_s if isfinite(low_s) else 0.0
    known = [name for name in names if name in usual.stages]
    failed_s = low_s + rng.random(n) * np.maximum(next_s - low_s, 0.0)
    if len(usual.took_s) and known:
        took = usual.took_s[:, [usual.stages.index(name) for name in known]].sum(axis=1)
        possible = np.zeros(n, dtype=bool)
        for _ in range(TRIES):
            again = next_s - took[rng.integers(len(took), size=n)]
            fits = ~possible & (again >= low_s)
            failed_s[fits] = again[fits]
            possible |= fits
    shares = _shares(names, next_s - failed_s, usual, rng)
    later = failed_s[:, None] + np.cumsum(shares, axis=1)[:, :-1]
    return [failed_s, *later.T]


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
    chosen = _near(sums, total_s, rng)
    of_all = np.where(sums > 0, sums, 1.0)
    split = np.where(sums[:, None] > 0, rows / of_all[:, None], 1.0 / len(names))
    return split[chosen] * total_s[:, None]


def _near(sums: Floats, wanted: Floats, rng: np.random.Generator) -> Ints:
    """One of the values next to each wanted one, at random: (n_draws,)."""
    order = np.argsort(sums, kind="stable")
    n_near = min(N_NEAREST, len(sums))
    place = np.searchsorted(sums[order], wanted) - n_near // 2
    place = np.clip(place, 0, len(sums) - n_near)
    return np.asarray(order[place + rng.integers(n_near, size=len(wanted))])
