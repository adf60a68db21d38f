"""The age of the newest committed content, against a job that starts and commits each save."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from tests import closed_forms
from tests.analytic.sampling import assert_mean, draws

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


def test_the_age_of_a_job_worked_out_elsewhere() -> None:
    assert closed_forms.content_age_h(50.0, 1.25, 1.25) == pytest.approx(1.84375)
    assert closed_forms.content_age_of_long_job_h(1.25, 1.25) == pytest.approx(1.875)


@given(st.integers(1, 30), st.floats(0.1, 10.0), st.floats(0.0, 1.0), st.integers(1, 6))
def test_the_age_is_the_integral_over_all_points_of_the_job(
    n_intervals: int, interval_h: float, part: float, n_in_flight: int
) -> None:
    useful_h = n_intervals * interval_h
    background_h = part * min(n_in_flight * interval_h, useful_h)
    contents_h = [i * interval_h for i in range(1, n_intervals)]
    remaining_h = sum(max(0.0, useful_h - content - background_h) for content in contents_h)
    age_h = useful_h / 2 - interval_h * remaining_h / useful_h  # each commit takes w off the age
    found_h = closed_forms.content_age_h(useful_h, interval_h, background_h, n_in_flight)
    assert found_h == pytest.approx(age_h, rel=1e-9, abs=1e-9)


def test_the_start_of_a_long_job_no_longer_counts() -> None:
    long = closed_forms.content_age_h(1e6, 1.0, 2.5, 3)
    assert long == pytest.approx(closed_forms.content_age_of_long_job_h(1.0, 2.5), abs=1e-5)
    assert closed_forms.content_age_h(10.0, 1.0, 0.0) == 0.5


@pytest.mark.parametrize(
    "job",
    [(10.0, 3.0, 1.0), (10.0, 2.0, 2.1), (10.0, 2.0, 4.1, 2), (4.0, 2.0, 4.5, 3), (4.0, 2.0, -1.0)],
)
def test_saves_that_wait_and_jobs_of_no_whole_intervals_are_refused(job: tuple) -> None:  # type: ignore[type-arg]
    with pytest.raises(ParameterError):
        closed_forms.content_age_h(*job)
