"""What a log does not say of an incident, drawn from the incidents of which it says all.

Instants that are not known are drawn many times over; what a draw makes of a job are hours that add
up, and the spread of the draws is the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, nan

import numpy as np
from scipy import special

from cprsim.history.course import Incident
from cprsim.records import HIGH, Z_95, Floats, Ints

ORDER = ("detect", "save", "wait", "reschedule", "regroup", "load", "replay", "rebuild")
NOT_ALWAYS = "wait"  # a stage that is booked only where the log tells it
EXPECTED_SHARE = 0.5  # of the incidents that have a stage, for it to be missed in the others
MOST_KEPT = 200  # incidents that others are drawn from
N_TRIED = 64  # incidents a draw, one of which stands in
N_GRID = 400  # times that a density is known at
LEAST_S = 1e-3
SILVERMAN = (
    1.06  # x spread x n^(-1/5): width of a Gaussian kernel, rule of thumb of Silverman (1986)
)
LEAST_WIDTH = 1e-3  # of a kernel over logarithms of times, for stages that always take the same
FEWEST_TO_SPREAD = 3  # incidents of which the spread says anything
TRIES = 20  # instants of death that are drawn until one is possible


@dataclass(frozen=True, slots=True)
class Usual:
    """How the incidents of a log go, as far as it says."""

    stages: tuple[str, ...]  # that an incident has, in order
    took_s: Floats  # (n_incidents, n_stages), NaN where the log does not say

    @classmethod
    def of(cls, incidents: Sequence[Incident]) -> Usual:
        """Learn from the incidents of one or several jobs."""
        single = [one for one in incidents if _is_single(one)]
        whole = [one for one in single if isfinite(one.failed_s) and isfinite(one.resumed_s)]
        seen = [{name for name, _ in one.stages} for one in whole]
        n_of = {name: sum(name in one for one in seen) for name in ORDER}
        least = EXPECTED_SHARE * len(seen)
        stages = tuple(name for name in ORDER if n_of[name] > least and name != NOT_ALWAYS)
        rows = [row for row in (_took_s(one, stages) for one in single) if not np.isnan(row).all()]
        return cls(stages, np.array(rows, dtype=np.float64).reshape(len(rows), len(stages)))


def _is_single(one: Incident) -> bool:
    """Whether it is one failure, each stage of whose recovery came once."""
    once = len({name for name, _ in one.stages}) == len(one.stages)
    return not one.is_start and one.n_failures == 1 and once


def _took_s(one: Incident, stages: tuple[str, ...]) -> Floats:
    """Seconds of each stage: NaN unless the log says its start, and that of the next."""
    starts = dict(one.stages)
    if stages and stages[0] not in starts and isfinite(one.failed_s):
        starts[stages[0]] = one.failed_s
    order = [*sorted(starts.values()), one.resumed_s]
    took_s = np.full(len(stages), nan)
    for place, name in enumerate(stages):
        last = place + 1 == len(stages)
        if name in starts and (last or stages[place + 1] in starts):
            took_s[place] = order[order.index(starts[name]) + 1] - starts[name]
    return took_s


class DrawnIncidents:
    """Other incidents in each draw: draws spread as far as few incidents leave open."""

    def __init__(
        self, usual: Usual, n_draws: int, gaps_s: Floats, rng: np.random.Generator
    ) -> None:
        """`gaps_s`: how long a job at work may leave its log without a sign of it [s]."""
        self.stages, self.n_draws = usual.stages, n_draws
        self._took_s, self._gaps_s, self._rng = usual.took_s, np.sort(gaps_s), rng
        self._kept: dict[tuple[str, ...], tuple[Floats, Ints]] = {}
        self._densities: dict[str, tuple[Floats, Floats]] = {}

    def incidents(self, names: Sequence[str]) -> tuple[Floats, Ints]:
        """Seconds of some stages, (n, n_names), and the rows that each draw has: (n_draws, m).

        So many fewer rows than there are that the means of the draws spread as Student's t does.
        """
        key = tuple(names)
        if key not in self._kept:
            rows = self._took_s[:, [self.stages.index(name) for name in names]]
            rows = rows[np.isfinite(rows).all(axis=1)]
            if len(rows) > MOST_KEPT:
                rows = rows[self._rng.choice(len(rows), MOST_KEPT, replace=False)]
            n = len(rows)
            again = self._rng.integers(max(n, 1), size=(self.n_draws, _n_again(n)))
            self._kept[key] = rows, again
        return self._kept[key]

    def one_each(self, names: Sequence[str]) -> Floats:
        """Seconds of some stages of one incident a draw: (n_draws, n_names)."""
        rows, again = self.incidents(names)
        chosen = self._rng.integers(again.shape[1], size=self.n_draws)
        return rows[again[np.arange(self.n_draws), chosen]]

    def split(self, names: Sequence[str], total_s: Floats) -> Floats:
        """How a known time splits into stages, taken as independent: (n_draws, n_names).

        All but the stage that varies most are drawn from incidents, as likely as what then remains
        of the time is for that one; in proportion where none of the draws leaves it any.
        """
        rest = int(np.argmax([self.incidents([name])[0].std() for name in names]))
        took_s = np.stack([self._some(name) for name in names], axis=2)
        others_s = took_s.sum(axis=2) - took_s[:, :, rest]
        left_s = total_s[:, None] - others_s
        weight = np.cumsum(self._density(names[rest], left_s), axis=1)
        chosen = (weight < self._rng.random(self.n_draws)[:, None] * weight[:, -1:]).sum(axis=1)
        found = took_s[np.arange(self.n_draws), chosen]
        fits = weight[:, -1] > 0
        found[fits, rest] = left_s[np.arange(self.n_draws), chosen][fits]
        sums = found.sum(axis=1, keepdims=True)
        equal = np.full(found.shape, 1.0 / len(names))
        share = np.divide(found, sums, out=equal, where=sums > 0)
        return np.asarray(share * total_s[:, None])

    def _some(self, name: str) -> Floats:
        """Many times of a stage a draw, from the kernels of its incidents: (n_draws, N_TRIED)."""
        rows, again = self.incidents([name])
        chosen = self._rng.integers(again.shape[1], size=(self.n_draws, N_TRIED))
        took_s = rows[np.take_along_axis(again, chosen, axis=1), 0]
        width = _kernel_width(np.log(np.maximum(rows, LEAST_S)))
        off = self._rng.standard_normal(took_s.shape) * width - width**2 / 2
        return np.asarray(took_s * np.exp(off))

    def _density(self, name: str, time_s: Floats) -> Floats:
        """How likely a stage takes so long, up to a factor: Gaussian kernels over its logarithm."""
        if name not in self._densities:
            log = np.log(np.maximum(self.incidents([name])[0][:, 0], LEAST_S))
            width = _kernel_width(log)
            grid = np.linspace(log.min() - 4 * width, log.max() + 4 * width, N_GRID)
            kernels = np.exp(-0.5 * np.square((grid[:, None] - log[None, :]) / width))
            self._densities[name] = grid, kernels.sum(axis=1) / np.exp(grid)
        grid, density = self._densities[name]
        log_s = np.log(np.maximum(time_s, LEAST_S))
        found = np.interp(log_s, grid, density, left=0.0, right=0.0)
        return np.where(time_s >= 0, found, 0.0)

    def longest_s(self) -> float:
        """Of the silences of a job at work; infinite where there is none to tell by."""
        return float(self._gaps_s[-1]) if len(self._gaps_s) else inf

    def p_silent(self, time_s: Floats) -> Floats:
        """How likely the log has no sign of work for so long while the job works."""
        if len(self._gaps_s) == 0:
            return np.ones(len(time_s))
        return 1.0 - np.searchsorted(self._gaps_s, time_s, side="left") / len(self._gaps_s)


def _kernel_width(log: Floats) -> float:
    """Of a Gaussian kernel over so many logarithms (Silverman 1986)."""
    return max(SILVERMAN * float(log.std()) / float(log.size**0.2), LEAST_WIDTH)


def _n_again(n: int) -> int:
    """Rows of a draw of which the mean spreads as much as the mean of `n` is uncertain."""
    if n < FEWEST_TO_SPREAD:
        return n
    return max(1, round((n - 1) * (Z_95 / float(special.stdtrit(n - 1, HIGH))) ** 2))


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
    usual: DrawnIncidents,
    rng: np.random.Generator,
) -> Filled:
    """Draw what is not known of an incident."""
    n = usual.n_draws
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
            took_s = _usually("detect", usual)
            edges[place + 1] = np.maximum(until_s - took_s, edges[place])
        elif end > place + 1:
            shares = _shares(names[place:end], until_s - edges[place], usual, rng)
            ends = edges[place][:, None] + np.cumsum(shares, axis=1)[:, :-1]
            edges[place + 1 : end] = list(ends.T)
        place = end
    last = [*edges[1:], resumed_s]
    took = tuple((name, end - edge) for name, edge, end in zip(names, edges, last, strict=True))
    return Filled(edges[0], resumed_s, took, inferred)


def _expected(incident: Incident, usual: DrawnIncidents) -> tuple[list[str], list[float]]:
    """Stages of an incident with those that the log left out, and when each began."""
    names, starts = [name for name, _ in incident.stages], [at_s for _, at_s in incident.stages]
    if incident.is_start or incident.n_failures == 0:
        return names, starts
    stages = list(zip(names, starts, strict=True))
    cuts = [0, *(place for place in range(1, len(stages)) if names[place] == "detect"), len(stages)]
    cycles = [stages[begin:end] for begin, end in pairwise(cuts)]
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
    cycle: list[tuple[str, float]], usual: DrawnIncidents, *, is_last: bool
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
    names: list[str], next_s: Floats, low_s: float, usual: DrawnIncidents, rng: np.random.Generator
) -> list[Floats]:
    """When the first stages began, of which the log gives none: (n_draws,) each.

    The job died after the last sign of its work, and no later than the silence since then allows.
    """
    n = len(next_s)
    known = [name for name in names if name in usual.stages]
    failed_s = _by_silence(next_s, low_s, usual, rng)
    if known and len(usual.incidents(known)[0]):
        possible = np.zeros(n, dtype=bool)
        for _ in range(TRIES):
            again = next_s - usual.one_each(known).sum(axis=1)
            silent = usual.p_silent(again - low_s)
            fits = ~possible & (again >= low_s) & (rng.random(n) < silent)
            failed_s[fits] = again[fits]
            possible |= fits
    shares = _shares(names, next_s - failed_s, usual, rng)
    later = failed_s[:, None] + np.cumsum(shares, axis=1)[:, :-1]
    return [failed_s, *later.T]


def _usually(name: str, usual: DrawnIncidents) -> Floats:
    """What a stage takes: (n_draws,), nothing where the log never tells."""
    if name not in usual.stages or len(usual.incidents([name])[0]) == 0:
        return np.zeros(usual.n_draws)
    return usual.one_each([name])[:, 0]


def _by_silence(
    next_s: Floats, low_s: float, usual: DrawnIncidents, rng: np.random.Generator
) -> Floats:
    """Anywhere after the last sign of work, as far as the silence allows."""
    n = len(next_s)
    room_s = np.minimum(np.maximum(next_s - low_s, 0.0), usual.longest_s())
    return low_s + rng.random(n) * room_s


def _shares(
    names: list[str], total_s: Floats, usual: DrawnIncidents, rng: np.random.Generator
) -> Floats:
    """How a known time splits into stages: anyhow, where the log never tells: (n_draws, n)."""
    n = len(total_s)
    known = all(name in usual.stages and len(usual.incidents([name])[0]) for name in names)
    if known:
        return usual.split(names, total_s)
    cuts = np.sort(rng.random((n, len(names) - 1)), axis=1)
    edges = np.concatenate([np.zeros((n, 1)), cuts, np.ones((n, 1))], axis=1)
    return np.diff(edges, axis=1) * total_s[:, None]
