"""Imputation of instants missing from a log, by drawing from failures that are logged completely.

Missing instants are drawn many times; the hours of a job add up in each draw, and the spread of the
draws is the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from cprsim.job.records import HIGH, Z_95, Floats, Ints
from cprsim.logs.jobs.timeline import LoggedAttempt

ORDER = (
    "detect", "save", "wait", "reschedule", "regroup", "load", "warm-up", "replay", "rebuild",
)  # fmt: skip
WORK = "work"  # what follows the last stage
NOT_ALWAYS = "wait"  # a stage that is booked only where the log tells it
EXPECTED_SHARE = 0.5  # of the failures that have a stage, for it to be missed in the others
MOST_KEPT = 200  # failures that others are drawn from
LEAST_SUM_S = 1e-9  # a sum of stages that take no time
FEWEST_TO_SPREAD = 3  # failures of which the spread says anything
TRIES = 20  # instants of death that are drawn until one is possible


def stage_times_of(attempts: Sequence[LoggedAttempt]) -> pd.DataFrame:
    """Seconds that the stages of recoveries took, NaN where the log does not say.

    A row for each single failure of whose recovery each stage came once, the stages in order.
    """
    failed = [one for one in attempts if one.before is not None and one.n_failures == 1]
    single = [one for one in failed if len(dict(one.stages)) == len(one.stages)]
    told = any(isfinite(one.failed_s) for one in single)
    begun = [one for one in single if isfinite(one.begin_s)]
    complete = [one for one in begun if isfinite(one.failed_s) or not told]
    n_of = {name: sum(name in dict(one.stages) for one in complete) for name in ORDER}
    stages = [
        name for name in ORDER if n_of[name] > EXPECTED_SHARE * len(complete) and name != NOT_ALWAYS
    ]
    began = [
        dict.fromkeys(stages[:1], one.failed_s)
        | {name: at_s for name, at_s in (*one.stages, (WORK, one.begin_s)) if isfinite(at_s)}
        for one in single
    ]
    starts = pd.DataFrame(began, columns=[*ORDER, WORK], dtype=np.float64)
    took_s = starts.bfill(axis=1).shift(-1, axis=1) - starts
    is_told = starts[[*stages, WORK]].notna().to_numpy()[:, 1:]  # the start of the next one
    return took_s[stages].where(is_told).dropna(how="all")


class ImputedFailure(NamedTuple):
    """A failure and its recovery with all instants: seconds, one value a draw."""

    failed_s: Floats  # (n_draws,)
    resumed_s: Floats
    stages: tuple[tuple[str, Floats], ...]  # seconds that each took
    n_inferred: int  # instants that the log does not give


class Imputer:
    """Imputes missing instants by drawing from other failures."""

    def __init__(
        self, usual: pd.DataFrame, n_draws: int, gaps_s: Floats, rng: np.random.Generator
    ) -> None:
        """`gaps_s`: how long a job at work may leave its log without a sign of it [s]."""
        self._took_s, self._stages = usual, tuple(usual)
        self._n, self._gaps_s, self._rng = n_draws, np.sort(gaps_s), rng
        self._share: Floats | None = None
        self._kept: dict[tuple[str, ...], tuple[Floats, Ints]] = {}

    def fill(
        self, attempt: LoggedAttempt, resumes: Callable[[Floats], Floats], silent_s: Floats
    ) -> ImputedFailure:
        """All instants; `resumes` gives the one at which work begins, by that of the failure.

        `silent_s`: how long the job before it stood after its last sign [s]; NaN: any time.
        """
        names, starts = self._expected(attempt)
        known_s = [at_s for at_s in starts if isfinite(at_s)]
        inferred = sum(not isfinite(at_s) for at_s in starts) + (not isfinite(attempt.begin_s))
        first = next((place for place, at_s in enumerate(starts) if isfinite(at_s)), len(starts))
        edges = [np.full(self._n, at_s) for at_s in starts]
        if first > 0:
            low_s = attempt.alive_s if isfinite(attempt.alive_s) else 0.0
            next_s = np.full(self._n, known_s[0]) if known_s else resumes(np.full(self._n, low_s))
            silent_s = np.where(np.isnan(silent_s), inf, silent_s)
            edges[:first] = self._before(names[:first], next_s, low_s, silent_s)
        resumed_s = np.maximum(resumes(edges[0]), known_s[-1] if known_s else edges[0])
        edges.append(resumed_s)
        sure = [place for place in range(first, len(starts)) if isfinite(starts[place])]
        for place, end in pairwise(sorted({first, *sure, len(starts)})):
            if end > place + 1:
                edges[place:end] = self._split(names[place:end], edges[place], edges[end])
        took = [
            (name, end - begin) for name, (begin, end) in zip(names, pairwise(edges), strict=True)
        ]
        return ImputedFailure(edges[0], resumed_s, tuple(took), inferred)

    def _expected(self, attempt: LoggedAttempt) -> tuple[list[str], list[float]]:
        """Stages with those that the log left out, and when each began."""
        stages = list(attempt.stages)
        if attempt.before is None or attempt.n_failures == 0:
            return [name for name, _ in stages], [at_s for _, at_s in stages]
        detects = [place for place in range(1, len(stages)) if stages[place][0] == "detect"]
        cycles = [stages[a:b] for a, b in pairwise([0, *detects, len(stages)])]
        whole = (self._with_missed(one, is_last=one is cycles[-1]) for one in cycles)
        expected = [*chain.from_iterable(whole)]
        names, starts = [name for name, _ in expected], [at_s for _, at_s in expected]
        if isfinite(attempt.failed_s):
            starts[0] = attempt.failed_s
        elif not names or (isfinite(starts[0]) and starts[0] > attempt.alive_s):
            names, starts = ["detect", *names], [nan, *starts]
        return names, starts

    def _with_missed(
        self, cycle: list[tuple[str, float]], *, is_last: bool
    ) -> list[tuple[str, float]]:
        """The stages after one failure with those left out, up to where the next cut them off."""
        starts = dict(cycle)
        if [name for name in ORDER if name in starts] != [name for name, _ in cycle]:
            return cycle
        last = len(ORDER) if is_last else max(map(ORDER.index, starts), default=-1)
        return [
            (name, starts.get(name, nan))
            for place, name in enumerate(ORDER)
            if name in starts or (name in self._stages and place <= last)
        ]

    def _before(
        self, names: list[str], next_s: Floats, low_s: float, silent_s: Floats
    ) -> list[Floats]:
        """When the first stages began, of which the log gives none: (n_draws,) each.

        The job died after the last sign of its work, and no later than the silence since then
        allows. Where no failure of the log tells more, all died at one share of that time in a
        draw: how long it takes until one is noticed is common to all. One more of n + 1 that are
        alike is the longest or the shortest with the chance 2 / (n + 1): then it is drawn so, too.
        """
        usual = [name for name in names if name in self._stages]
        longest_s = float(self._gaps_s[-1]) if len(self._gaps_s) else inf
        room_s = np.minimum(np.maximum(next_s - low_s, 0.0), longest_s + silent_s)
        share = self._rng.random(self._n)
        n_others = self._n_others(usual)
        if n_others < FEWEST_TO_SPREAD:
            self._share = share = share if self._share is None else self._share
        failed_s = low_s + share * room_s
        if n_others >= FEWEST_TO_SPREAD:
            possible = self._rng.random(self._n) < 2.0 / (n_others + 1)  # unlike all others
            for _ in range(TRIES):
                drawn_s = next_s - self._one_each(usual).sum(axis=1)
                silent = self._p_silent(drawn_s - low_s - silent_s)
                fits = ~possible & (drawn_s >= low_s) & (self._rng.random(self._n) < silent)
                failed_s[fits] = drawn_s[fits]
                possible |= fits
        return self._split(names, failed_s, next_s)

    def _p_silent(self, time_s: Floats) -> Floats:
        """Probability that the log has no sign of work for `time_s` while the job works."""
        if len(self._gaps_s) == 0:
            return np.ones(len(time_s))
        return 1.0 - np.searchsorted(self._gaps_s, time_s, side="left") / len(self._gaps_s)

    def _split(self, names: list[str], begin_s: Floats, until_s: Floats) -> list[Floats]:
        """When stages began that fill a known time: in the proportions of other failures.

        Anyhow where no other tells all of them, and as often as one more is unlike all others.
        """
        cuts = np.sort(self._rng.random((self._n, len(names) - 1)), axis=1)
        share = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
        n_others = self._n_others(names)
        if n_others:
            took_s = self._one_each(names)
            total_s = took_s.sum(axis=1, keepdims=True)
            alike = (total_s[:, 0] > 0) & (self._rng.random(self._n) >= 2.0 / (n_others + 1))
            share[alike] = (took_s / np.maximum(total_s, LEAST_SUM_S))[alike]
        after_s = np.cumsum(share * (until_s - begin_s)[:, None], axis=1)
        return [begin_s, *(begin_s[:, None] + after_s[:, :-1]).T]

    # ------------------------------------------------------------------ draws from other failures

    def _n_others(self, names: Sequence[str]) -> int:
        """Failures of which all these stages are known."""
        return len(self._incidents(names)[0]) if names and {*names} <= {*self._stages} else 0

    def _incidents(self, names: Sequence[str]) -> tuple[Floats, Ints]:
        """Seconds of some stages, (n, n_names), and the rows that each draw has: (n_draws, m).

        m is less than n, such that the means of the draws spread as Student's t does.
        """
        key = tuple(names)
        if key not in self._kept:
            rows = self._took_s[[*names]].dropna().to_numpy()
            if len(rows) > MOST_KEPT:
                rows = rows[self._rng.choice(len(rows), MOST_KEPT, replace=False)]
            n = n_again = len(rows)
            if n >= FEWEST_TO_SPREAD:
                narrower = Z_95 / float(special.stdtrit(n - 1, HIGH))
                n_again = max(1, round((n - 1) * narrower**2))
            self._kept[key] = rows, self._rng.integers(max(n, 1), size=(self._n, n_again))
        return self._kept[key]

    def _one_each(self, names: Sequence[str]) -> Floats:
        """Seconds of some stages of one failure a draw: (n_draws, n_names)."""
        rows, again = self._incidents(names)
        chosen = self._rng.integers(again.shape[1], size=self._n)
        return rows[again[np.arange(self._n), chosen]]
