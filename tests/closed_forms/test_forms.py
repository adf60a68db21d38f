"""The closed forms themselves, against jobs followed step by step and counts of all cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.failures.streams import stream
from tests import closed_forms

SEED = 11


def draws(name: str) -> np.random.Generator:
    """The random numbers of one test."""
    return stream(SEED, 0, f"tests/analytic/{name}")


def assert_mean(values: Sequence[float] | np.ndarray, theory: float) -> None:
    """The mean of independent values lies within 4 standard errors of theory."""
    mean, standard_error = float(np.mean(values)), float(np.std(values, ddof=1) / sqrt(len(values)))
    print(f"mean {mean:.6g}, theory {theory:.6g}, SE {standard_error:.2g}, n {len(values)}")
    assert abs(mean - theory) <= 4.0 * standard_error, (
        f"mean {mean:.6g}, theory {theory:.6g}, standard error {standard_error:.3g}"
    )


# --------------------------------------------------------------------------- copies

Holders = tuple[frozenset[int], ...]
SIZES = [(6, 2), (6, 3), (8, 1), (8, 4), (10, 5), (12, 2), (12, 3), (12, 12)]


def groups(n: int, m: int) -> Holders:
    return tuple(frozenset(range(start, start + m)) for start in range(0, n, m))


def ring(n: int, m: int) -> Holders:
    return tuple(frozenset((start + i) % n for i in range(m)) for start in range(n))


@cache
def p_counted(holders: Holders, n: int, k: int) -> float:
    """The share of the sets of k of n machines that hold no set of holders whole."""
    surviving = sum(
        not any(shard <= set(failed) for shard in holders) for failed in combinations(range(n), k)
    )
    return surviving / comb(n, k)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_groups_survive_as_often_as_counted(n: int, m: int) -> None:
    for k in range(n + 1):
        counted = p_counted(groups(n, m), n, k)
        assert closed_forms.p_groups_survive(n, m, k) == pytest.approx(counted, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [*SIZES, (7, 2), (10, 3), (11, 4), (5, 5)])
def test_a_ring_survives_as_often_as_counted(n: int, m: int) -> None:
    for k in range(n + 1):
        counted = p_counted(ring(n, m), n, k)
        assert closed_forms.p_ring_survives(n, m, k) == pytest.approx(counted, abs=1e-12)


# --------------------------------------------------------------------------- nested levels

GONE = -1


@dataclass(frozen=True)
class Levels:
    """One setting, in the order in which the closed forms take it."""

    useful_h: float
    interval_h: float
    every: tuple[int, ...]
    saves_h: tuple[float, ...]
    recoveries_h: tuple[float, ...]
    failures_per_h: tuple[float, ...]


class Job:
    """One course of a job: its progress, the newest copy of each level, and its next failures."""

    def __init__(self, levels: Levels, ages_in_recovery: bool, rng: np.random.Generator) -> None:
        self.levels, self.ages_in_recovery, self.rng = levels, ages_in_recovery, rng
        self.aged_h = self.wall_h = 0.0
        self.next_at_h = [self.after(rate) for rate in levels.failures_per_h]
        self.copies = [0] * len(levels.every)  # points of the grid that they hold
        self.point = 0
        self.due: list[int] = []

    def after(self, rate: float) -> float:
        return self.aged_h + self.rng.exponential(1.0 / rate) if rate else float("inf")

    def survives(self, hours: float) -> int | None:
        """Let hours pass; if a failure comes first, only until then, and return its level."""
        strike_at_h = min(self.next_at_h)
        if strike_at_h >= self.aged_h + hours:
            self.aged_h, self.wall_h = self.aged_h + hours, self.wall_h + hours
            return None
        level = self.next_at_h.index(strike_at_h)
        self.wall_h, self.aged_h = self.wall_h + strike_at_h - self.aged_h, strike_at_h
        self.next_at_h[level] = self.after(self.levels.failures_per_h[level])
        return level

    def recover(self, struck: int) -> None:
        deepest, further = struck, self.recovery_ends(struck)
        while further is not None:
            deepest = max(deepest, further)
            further = self.recovery_ends(deepest)
        self.copies[:deepest] = [GONE] * deepest
        self.point = max(self.copies)
        holder = max(i for i, copy in enumerate(self.copies) if copy == self.point)
        self.due = [i for i in self.due_at(self.point) if i > holder]

    def recovery_ends(self, level: int) -> int | None:
        if self.ages_in_recovery:
            return self.survives(self.levels.recoveries_h[level])
        self.wall_h += self.levels.recoveries_h[level]
        return None

    def due_at(self, point: int) -> list[int]:
        return [i for i, nth in enumerate(self.levels.every) if point and point % nth == 0]

    def run(self) -> float:
        n_points = round(self.levels.useful_h / self.levels.interval_h)
        while self.point < n_points or self.due:
            hours = self.levels.saves_h[self.due[0]] if self.due else self.levels.interval_h
            struck = self.survives(hours)
            if struck is not None:
                self.recover(struck)
            elif self.due:
                self.copies[self.due.pop(0)] = self.point
            else:
                self.point += 1
                self.due = self.due_at(self.point)
        return self.wall_h


# Saves and recoveries of the last two are so long that mistakes about struck ones show.
SETTINGS = [
    Levels(8.0, 1.0, (1, 4), (0.05, 0.3), (0.1, 0.8), (0.3, 0.1)),
    Levels(8.0, 1.0, (1, 2, 4), (0.3, 0.5, 0.9), (0.3, 0.6, 1.5), (0.2, 0.12, 0.08)),
    Levels(6.0, 1.0, (1, 1, 3), (0.4, 0.7, 1.0), (2.0, 0.5, 1.0), (0.15, 0.1, 0.1)),
]


@pytest.mark.parametrize("levels", SETTINGS)
@pytest.mark.parametrize("clock", ["uptime", "wall"])
def test_the_overhead_is_that_of_a_job_that_keeps_its_copies(levels: Levels, clock: str) -> None:
    rng = draws(f"nested/{clock}/{levels.every}")
    found = [Job(levels, clock == "wall", rng).run() - levels.useful_h for _ in range(4000)]
    overhead_h = getattr(closed_forms, f"nested_{clock}_h")
    assert_mean(found, overhead_h(*astuple(levels)))


@given(
    interval_h=st.floats(0.5, 5.0),
    save_h=st.floats(0.0, 2.0),
    recovery_h=st.floats(0.0, 3.0),
    mtbf_h=st.floats(3.0, 50.0),
)
def test_one_level_is_full_recovery(
    interval_h: float, save_h: float, recovery_h: float, mtbf_h: float
) -> None:
    useful_h = 7 * interval_h
    job = (useful_h, interval_h, [1], [save_h], [recovery_h], [1 / mtbf_h])
    one = (useful_h, interval_h, save_h, recovery_h, mtbf_h)
    uptime_h = closed_forms.nested_uptime_h(*job) + useful_h
    wall_h = closed_forms.nested_wall_h(*job) + useful_h
    assert uptime_h == pytest.approx(closed_forms.full_uptime_h(*one) + useful_h, rel=1e-12)
    assert wall_h == pytest.approx(closed_forms.full_wall_h(*one) + useful_h, rel=1e-12)


# --------------------------------------------------------------------------- the age of content

MTBF_H = 5.0
ROUNDING_H = 1e-9  # a save that commits as the next one starts is not beside it


class Store:
    """Saves on their way and the newest committed content, on the job's own time."""

    def __init__(self, background_h: float) -> None:
        self.background_h = background_h
        self.on_their_way: list[tuple[float, float]] = []  # commit, content
        self.committed_h = 0.0
        self.most_in_flight = 0

    def commit_until(self, now_h: float) -> None:
        while self.on_their_way and self.on_their_way[0][0] <= now_h + ROUNDING_H:
            self.committed_h = self.on_their_way.pop(0)[1]

    def start(self, now_h: float, content_h: float) -> None:
        self.commit_until(now_h)
        self.on_their_way.append((now_h + self.background_h, content_h))
        self.most_in_flight = max(self.most_in_flight, len(self.on_their_way))


def ages_h(
    rng: np.random.Generator, n_intervals: int, interval_h: float, store: Store
) -> list[float]:
    """The ages at the failures of one job, which goes back to what it finds and works on."""
    useful_h = n_intervals * interval_h
    strikes = np.sort(rng.uniform(0.0, useful_h, rng.poisson(useful_h / MTBF_H)))
    ages, now_h, point = [], 0.0, 0  # point: the last point of the grid behind the job
    for frontier_h in strikes:
        progress_h = store.committed_h
        while (point + 1) * interval_h <= frontier_h:
            point += 1
            now_h, progress_h = now_h + point * interval_h - progress_h, point * interval_h
            store.start(now_h, progress_h)
        now_h += frontier_h - progress_h
        store.commit_until(now_h)
        ages.append(frontier_h - store.committed_h)
        store.on_their_way.clear()
        point = round(store.committed_h / interval_h)
    return ages


@pytest.mark.parametrize(
    ("n_intervals", "interval_h", "background_h", "n_in_flight"),
    [
        (40, 1.25, 1.25, 1),
        (8, 2.0, 0.7, 1),
        (3, 2.0, 2.0, 1),
        (10, 1.0, 2.6, 3),
        (5, 1.0, 4.0, 4),
        (6, 1.0, 6.0, 6),
    ],
)
def test_the_age_is_that_of_a_job_that_goes_back_at_every_failure(
    n_intervals: int, interval_h: float, background_h: float, n_in_flight: int
) -> None:
    rng = draws(f"age/{n_intervals}/{background_h}")
    ages, most = [], 0
    while len(ages) < 15_000:
        store = Store(background_h)
        ages += ages_h(rng, n_intervals, interval_h, store)
        most = max(most, store.most_in_flight)
    assert most <= n_in_flight
    useful_h = n_intervals * interval_h
    assert_mean(ages, closed_forms.content_age_h(useful_h, interval_h, background_h, n_in_flight))


# --------------------------------------------------------------------------- lower speed

USEFUL_H, RATE = 400.0, 0.05


def rebuilding_job_h(
    rng: np.random.Generator, tax: float, stall_h: float, rebuild_h: float, speed: float
) -> tuple[float, float]:
    """Wall time of a job and the rebuilding that is left at its end.

    Rebuilds wait for those before them and stand still while the job does.
    """
    strikes_h = np.sort(rng.uniform(0.0, USEFUL_H, rng.poisson(RATE * USEFUL_H)))
    wall_h = waiting_h = 0.0  # waiting: hours of rebuilding still to come
    for piece_h in np.diff(strikes_h, prepend=0.0, append=USEFUL_H):
        effort_h = piece_h * (1.0 + tax)
        slow_h = min(waiting_h, effort_h / speed if speed else waiting_h)
        wall_h += slow_h + effort_h - speed * slow_h + stall_h
        waiting_h += rebuild_h - slow_h
    return wall_h - stall_h, waiting_h - rebuild_h  # no failure ends the last piece


@pytest.mark.parametrize(
    ("tax", "rebuild_h", "speed"), [(0.04, 2.0, 0.9), (0.1, 6.0, 0.5), (0.0, 0.5, 0.0)]
)
def test_the_overhead_of_rebuilding_is_that_of_a_job_that_rebuilds(
    tax: float, rebuild_h: float, speed: float
) -> None:
    rng = draws(f"rebuild/{tax}")
    jobs = [rebuilding_job_h(rng, tax, 0.3, rebuild_h, speed) for _ in range(3000)]
    walls_h, left_h = np.array(jobs).T
    theory = closed_forms.erasure_coded_overhead_fraction(RATE, tax, 0.3, rebuild_h, speed)
    assert walls_h.mean() / USEFUL_H - 1.0 == pytest.approx(theory, rel=0.01)
    outlived_h = walls_h + left_h * (1.0 - speed)  # had the job gone on until all was rebuilt
    assert_mean(outlived_h / USEFUL_H - 1.0, theory)


def wall_of_elastic_job_h(rng: np.random.Generator, mtbf_h: float, speed: float) -> float:
    """One job in small steps; each may meet the first failure, at its own point of the step."""
    wall_h = done_h = 0.0
    now, strike_h = 1.0, rng.exponential(mtbf_h)
    while done_h < 10.0:
        until_h = strike_h if wall_h < strike_h else float("inf")
        step_h = min(1.0, until_h - wall_h, (10.0 - done_h) / now)
        wall_h, done_h = wall_h + step_h, done_h + now * step_h
        if wall_h >= strike_h:
            now = speed
        if 10.0 - done_h < 1e-9:
            break
    return wall_h


@pytest.mark.parametrize(("mtbf_h", "speed"), [(8.0, 0.75), (30.0, 0.25)])
def test_the_wall_time_is_that_of_a_job_that_goes_on_slower(mtbf_h: float, speed: float) -> None:
    rng = draws(f"elastic/{mtbf_h}")
    found = [wall_of_elastic_job_h(rng, mtbf_h, speed) for _ in range(10_000)]
    assert_mean(found, closed_forms.elastic_wall_h(10.0, mtbf_h, speed))


def test_the_limits_of_an_elastic_job() -> None:
    assert closed_forms.elastic_wall_h(10.0, float("inf"), 0.5) == 10.0
    assert closed_forms.elastic_wall_h(10.0, 1e-6, 0.5) == pytest.approx(20.0, abs=1e-5)
    assert closed_forms.elastic_wall_h(10.0, 3.0, 1.0) == pytest.approx(10.0)
