"""How old the newest committed content is when a failure strikes.

A save holds the progress at its start and commits `background_h` later, while the job goes on. Its
content has that age already when it commits, and grows older until the next one commits.
"""

from __future__ import annotations

from cprsim.analytic.domain import require_count, require_not_negative, whole_intervals
from cprsim.errors import ParameterError


def content_age_h(
    useful_h: float, interval_h: float, background_h: float, n_in_flight: int = 1
) -> float:
    """Mean age of the newest committed content at a failure, `progress` clock [h].

    Parameters
    ----------
    useful_h : useful work of the job [h], a whole number of intervals
    interval_h : progress between saves [h]
    background_h : from the start of a save to its commit [h], at most `n_in_flight` intervals
    n_in_flight : how many saves may be on their way at once

    Raises
    ------
    ParameterError
        the job is no whole number of intervals, or saves would wait for those before them

    Notes
    -----
    ``w/2 + b - (w/T) integral_0^b ceil(u/w) du``; for ``b <= w`` that is
    ``w/2 + b (1 - w/T)``. Exact for failures at uniform points of the job's progress: Poisson
    failures on the `progress` clock. The state at 0 is a save that has always been there, and a
    save that is struck is made again at its point of the grid. Source: derived here.
    """
    _require_no_waiting(useful_h, interval_h, background_h, n_in_flight)
    whole, rest_h = divmod(background_h, interval_h)
    rounded_up_h = (whole + 1.0) * (whole * interval_h / 2.0 + rest_h)  # the integral
    return interval_h / 2.0 + background_h - interval_h / useful_h * rounded_up_h


def content_age_of_long_job_h(interval_h: float, background_h: float) -> float:
    """Limit of `content_age_h` for a job of many intervals: ``w/2 + b`` [h].

    Notes
    -----
    The start of a job, whose content can't be older than the job, no longer counts. Derived here.
    """
    require_not_negative(interval_h=interval_h, background_h=background_h)
    return interval_h / 2.0 + background_h


def _require_no_waiting(
    useful_h: float, interval_h: float, background_h: float, n_in_flight: int
) -> None:
    whole_intervals(useful_h, interval_h)
    require_not_negative(background_h=background_h)
    require_count(1, n_in_flight=n_in_flight)
    if background_h > min(n_in_flight * interval_h, useful_h):
        raise ParameterError(
            f"a save takes {background_h} h; with {n_in_flight} in flight, each {interval_h} h of "
            f"a job of {useful_h} h, saves wait for those before them, and the age is another"
        )
