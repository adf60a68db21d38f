"""The hours of recovery: booked when it begins, taken back where a failure cuts it short."""

from __future__ import annotations

import numpy as np

from cprsim.draws import CostDraws, Draws
from cprsim.engine.jobs import Jobs
from cprsim.records import Clock, Costs, Floats, Ints, Transfer
from cprsim.setting import JobSetting


def book_recovery(
    jobs: Jobs,
    setting: JobSetting,
    costs: CostDraws,
    n_loading: Ints,
    at_h: Floats,
    struck_at_h: Floats,
    overlaps: bool,
) -> None:
    """Book the recovery from the failure at hand, in place.

    Parameters
    ----------
    n_loading : (n_jobs,) servers that load; without any there is no load
    at_h, struck_at_h : (n_jobs,) the failure, on its clock and in wall time [h]
    overlaps : an earlier recovery goes on beside it (partial recovery). Times are fixed where one
        does, so it can only outlast the new one in its load, while the new one has none.
    """
    detect_h = _hours(costs.detect, jobs)
    reschedule_h = _hours(costs.reschedule, jobs)
    load_h = _load_hours(costs.load, setting.costs, jobs, n_loading)
    staffed_h = detect_h + reschedule_h
    if overlaps:
        still_h = jobs.resumes_at_h - (at_h + staffed_h)
        outlasts = (jobs.loading_h > 0) & (jobs.resumes_at_h > at_h) & (still_h > load_h)
        load_h = np.where(outlasts, still_h, load_h)
    jobs.detect_h += detect_h
    jobs.reschedule_h += reschedule_h
    jobs.load_h += load_h
    jobs.loading_h = load_h
    jobs.wall_h = struck_at_h + staffed_h + load_h
    on_wall = setting.clock is Clock.WALL
    jobs.resumes_at_h = at_h + staffed_h + load_h if on_wall else at_h


def take_back(jobs: Jobs, places: Ints, at_h: Floats, costs: CostDraws) -> None:
    """Unbook what a failure cuts off the recovery from the one before, in place.

    Parameters
    ----------
    places : the jobs concerned
    at_h : (len(places),) when recovery is cut short, on the clock of `Jobs.resumes_at_h` [h]
    """
    if not len(places):
        return
    cut_h = jobs.resumes_at_h[places] - at_h
    loading_h = jobs.loading_h[places]
    reschedule_h = _of_last(costs.reschedule, jobs, places)
    detect_h = _of_last(costs.detect, jobs, places)
    jobs.load_h[places] -= np.minimum(cut_h, loading_h)
    jobs.reschedule_h[places] -= np.clip(cut_h - loading_h, 0.0, reschedule_h)
    jobs.detect_h[places] -= np.clip(cut_h - loading_h - reschedule_h, 0.0, detect_h)


def _hours(draws: Draws, jobs: Jobs) -> Floats:
    return draws.of(jobs.row, jobs.n_failures)


def _of_last(draws: Draws, jobs: Jobs, places: Ints) -> Floats:
    return draws.of(jobs.row[places], jobs.n_failures[places] - 1)


def _load_hours(cost: Draws | Transfer, costs: Costs, jobs: Jobs, n_loading: Ints) -> Floats:
    if isinstance(cost, Draws):
        return np.where(n_loading > 0, _hours(cost, jobs), 0.0)
    assert costs.storage is not None, "assembly sees to it that a transfer has a storage"
    storage = costs.storage
    most = int(n_loading.max(initial=0))
    by_number = np.array([0.0, *(storage.transfer_h(n) for n in range(1, most + 1))])
    return by_number[n_loading]
