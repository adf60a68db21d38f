"""Renewal processes: drawing them, and how many renewals a fresh one has on average.

A fresh clock sees ``horizon / mean`` failures only where its lifetimes are exponential. With
early failures (hazard falling with age) it sees more, with wear-out fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, floor, sqrt

import numpy as np
from scipy import special

from cprsim.compiling import compiled
from cprsim.failures.sources import require_room
from cprsim.job.distributions import Distribution, Exponential, Gamma
from cprsim.job.records import Floats, Ints

N_STEPS = 4096  # of the grid on which the renewal equation is solved
BYTES_OF_A_FAILURE = 24  # while it is drawn: its instant twice, the gap after it
FEWEST_RENEWALS = 1e-15  # over a horizon: of the size of rounding
SOLVED_LIVES = 40.0  # mean lives, beyond which the function is a straight line


@lru_cache(maxsize=256)
def expected_renewals(distribution: Distribution, horizon_h: float) -> float:
    """Mean number of failures before `horizon_h` [h] on a clock that starts fresh at 0.

    Exact for exponential lifetimes, and for gamma ones (the n-th failure is gamma again). For the
    others the renewal equation ``m(t) = F(t) + integral m(t - s) dF(s)`` is solved on a grid by the
    midpoint rule for Riemann-Stieltjes sums (Xie 1989), to about 1e-4 of its value; beyond
    `SOLVED_LIVES` mean lives its asymptote ``slope 1 / mean`` continues it.
    """
    if horizon_h <= 0:
        return 0.0
    if isinstance(distribution, Exponential):
        return horizon_h / distribution.mean_h
    solved_h = min(horizon_h, SOLVED_LIVES * distribution.mean_h)
    beyond = (horizon_h - solved_h) / distribution.mean_h
    if isinstance(distribution, Gamma):
        return _gamma_renewals(distribution, solved_h) + beyond
    return _solved_renewals(distribution, solved_h) + beyond


@lru_cache(maxsize=64)
def renewals_by_lives(unit_lifetime: Distribution) -> Callable[[Floats], Floats]:
    """Expected renewals of a lifetime with the mean 1 h by the horizon, interpolated.

    Between horizons of 1e-9 and 1e6 mean lives, where the logarithm of the function is almost
    straight between points; proportional to time beyond. Where fewer than `FEWEST_RENEWALS` are
    solved for, rounding may leave 0, or less: there the chance of the first renewal stands alone.
    """
    lives = np.logspace(-9, 6, 46)
    solved = np.array([expected_renewals(unit_lifetime, float(life)) for life in lives])
    once = np.maximum(-np.expm1(-unit_lifetime.cumulative_hazard(lives)), np.finfo(float).tiny)
    table = np.log(np.where(solved > FEWEST_RENEWALS, solved, once))

    def renewals(horizon: Floats) -> Floats:
        inside = np.clip(horizon, lives[0], lives[-1])
        return np.exp(np.interp(np.log(inside), np.log(lives), table)) * (horizon / inside)

    return renewals


def _gamma_renewals(lifetime: Gamma, horizon_h: float) -> float:
    """Sum over n of the probability that the n-th failure comes before the horizon."""
    lives = horizon_h / lifetime.mean_h
    spread = np.sqrt((lives + 1) * lifetime.squared_cv)
    n = np.arange(1, floor(lives + 12 * spread + 12 * lifetime.squared_cv) + 20)
    return float(special.gammainc(n * lifetime.shape, horizon_h / lifetime.scale_h).sum())


@lru_cache(maxsize=256)
def _solved_renewals(lifetime: Distribution, horizon_h: float) -> float:
    """Two grids, extrapolated to a step of nothing."""
    coarse, fine = (_on_grid(lifetime, horizon_h, n) for n in (N_STEPS // 2, N_STEPS))
    return ten_digits(fine + (fine - coarse) / 3)


def ten_digits(number: float) -> float:
    """The number without its last digits, which depend on how a processor rounds."""
    return float(f"{number:.10g}")


def _on_grid(lifetime: Distribution, horizon_h: float, n_steps: int) -> float:
    """Renewals by the horizon, of increments `d` whose convolution with survival is failure.

    ``sum over k < i of d[k] survival_midway[i - 1 - k] = failed[i]`` for each step i.
    """
    at_h = np.linspace(0.0, horizon_h, n_steps + 1)
    failed = 1 - lifetime.survival(at_h[1:])
    inverse = _reciprocal(lifetime.survival((at_h[1:] + at_h[:-1]) / 2))
    return float(failed @ np.cumsum(inverse)[::-1])


def _reciprocal(series: Floats) -> Floats:
    """First coefficients of 1 over a power series, (n,) as given, by Newton's iteration.

    Each step doubles those that are right; products are by FFT. `n` is a power of 2.
    """
    inverse = np.array([1 / series[0]])
    while (n := len(inverse)) < len(series):
        transform = np.fft.rfft(inverse, 4 * n)
        wrong = np.fft.irfft(transform * np.fft.rfft(series[: 2 * n], 4 * n))[: 2 * n]
        wrong[0] -= 2.0
        inverse = -np.fft.irfft(transform * np.fft.rfft(wrong, 4 * n))[: 2 * n]
    return inverse


@dataclass(slots=True)
class Clocks:
    """Clocks that each failure renews. Lifetimes are drawn many at a time, and used in order."""

    lifetime: Distribution  # of what a failure renews
    rng: np.random.Generator
    next_at_h: Floats  # (n_clocks,) next failure of each; moved on in place
    stretch: Floats = field(default_factory=lambda: np.ones(0))  # of each one's lifetimes; none: 1
    _ahead_h: Floats = field(init=False, default_factory=lambda: np.zeros(0))  # not used yet

    def until(self, until_h: float) -> tuple[Ints, Floats]:
        """Where the failures of each clock begin, (n_clocks + 1,), and all until then [h]."""
        first = np.zeros(len(self.next_at_h) + 1, dtype=np.int64)
        instants_h, clock, n_failures = [np.zeros(0)], 0, 0
        while clock < len(self.next_at_h):
            to_come_h = until_h - self.next_at_h[clock:]
            to_come_h = to_come_h[to_come_h > 0]
            # by the asymptote of the renewal function; the sum one after the other
            n_expected = float(np.cumsum(to_come_h)[-1:].sum()) / self.lifetime.mean_h
            n_expected += len(to_come_h) * (1.0 + self.lifetime.squared_cv) / 2
            n_all = n_failures + n_expected
            require_room(
                BYTES_OF_A_FAILURE * n_all,
                f"about {n_all:.3g} failures before {until_h:g} h",
                "an MTBF {} times as long would fit",
                share=1.0,
            )
            n_gaps = max(ceil(n_expected + 2 * sqrt(n_expected)), len(self._ahead_h))
            more_h = self.lifetime.sample(self.rng, n_gaps - len(self._ahead_h))
            gap_h = np.concatenate([self._ahead_h, more_h])
            at_h = np.empty(n_gaps)
            clock, n_used = renew(
                until_h, self.next_at_h, self.stretch, gap_h, clock, n_failures, first, at_h
            )
            self._ahead_h = gap_h[n_used:].copy()  # not a view of them all
            n_failures += n_used
            instants_h.append(at_h[:n_used])
        return first, np.concatenate(instants_h)


def numbers(first: Ints) -> Ints:
    """The number of each one's group, from where the groups begin: (n_groups + 1,) to (n,)."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


@compiled
def renew(
    until_h: float, next_at_h: Floats, stretch: Floats, gap_h: Floats,
    begin: int, n_before: int, first: Ints, at_h: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Advance the clocks from `begin` on beyond an instant, until the gaps are used up.

    Advances `next_at_h`, fills `first` and `at_h`; `n_before` are the failures of the clocks
    before, and of the first one if it was not done. Returns the first clock that is not done, and
    the number of used gaps, which is that of failures.
    """
    used = 0
    for clock in range(begin, len(next_at_h)):
        now_h = next_at_h[clock]
        while now_h < until_h:
            if used == len(gap_h):
                next_at_h[clock] = now_h
                return clock, used
            at_h[used] = now_h
            gap = gap_h[used] * stretch[clock] if len(stretch) else gap_h[used]
            next_h = now_h + gap
            # where the gap rounds off: always later than the last
            now_h = np.nextafter(now_h, np.inf) if next_h <= now_h else next_h
            used += 1
        next_at_h[clock] = now_h
        first[clock + 1] = n_before + used
    return len(next_at_h), used


@compiled
def settle(first: Ints, clock: Ints, marks: Ints, missing: Ints, place: Ints) -> int:
    """Assign clocks to the nodes drawn for them, unless they have one; return how many are missing.

    `first` (n_chunks, n_replications + 1) says where the clocks of each replication begin in
    `clock`: replication * n_slots + place, -1 where it is missing. `place` is the node that was
    drawn for each of `missing`, in order; those that stay so move to the front. `marks` (n_slots,)
    are those after the previous call, at first 0.
    """
    n_slots, n_chunks = len(marks), len(first)
    mark, replication, n_left = marks.max(), -1, 0
    for i in range(len(missing)):
        if replication < 0 or missing[i] >= first[n_chunks - 1, replication + 1]:
            replication += 1
            while missing[i] >= first[n_chunks - 1, replication + 1]:
                replication += 1
            mark += 1
            for chunk in range(n_chunks):
                for j in range(first[chunk, replication], first[chunk, replication + 1]):
                    if clock[j] >= 0:
                        marks[clock[j] - replication * n_slots] = mark
        if marks[place[i]] == mark:
            missing[n_left] = missing[i]
            n_left += 1
        else:
            marks[place[i]] = mark
            clock[missing[i]] = replication * n_slots + place[i]
    return n_left
