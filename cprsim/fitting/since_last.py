"""Whether the rate of failures has changed since an earlier fit (``cprsim fit --since-last``)."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.fitting.observation import node_hours
from cprsim.fitting.rate_change import Change, change
from cprsim.foreign import read_json

HINT = "give what `cprsim fit LOG --json` printed"


class Before(NamedTuple):
    """What an earlier fit rests on."""

    n_instants: int
    node_hours: float
    dispersion: float  # variance over mean of the failures per week; NaN where not known
    ends: str


class Since(NamedTuple):
    """A comparison, and the same with the failures' bunching allowed for."""

    before: Before
    plain: Change
    allowing: Change | None  # None where failures do not bunch, or that is not known
    dispersion: float


def read_before(path: Path) -> Before:
    """An earlier result. Raises ParameterError for what is none."""
    try:
        result = read_json(path)
        exposure, dispersion = result["exposure"], result["weekly_dispersion"]
        return Before(
            int(exposure["instants"]),
            float(exposure["node_hours"]),
            float("nan") if dispersion is None else float(dispersion),
            str(result["observation"]["ends"]["value"]),
        )
    except OSError as error:
        raise ParameterError(f"--since-last {path}: {error.strerror or error}") from None
    except (KeyError, TypeError, ValueError):
        raise ParameterError(f"--since-last {path}: is no result of a fit: {HINT}") from None


def compared(before: Before, outages: Outages, dispersion: float) -> Since:
    """The part of a log that came after an earlier fit, held against it.

    Failures at one instant count once. Where failures bunch (variance over mean per week above 1,
    the larger of both), both numbers are divided by that for a second comparison.

    Raises
    ------
    ParameterError
        where the log ends before the earlier result does, or is on another clock.
    """
    from_h = _since_h(before.ends, outages)
    if not from_h < outages.window_h:
        raise ParameterError(
            f"--since-last: the log ends before {before.ends}, where that result did"
        )
    from_h = max(from_h, 0.0)
    later = outages.in_window & outages.chosen & (outages.start_h > from_h)
    n_since = len(set(outages.start_h[later].tolist()))
    hours = node_hours(outages) * (outages.window_h - from_h) / outages.window_h
    plain = change(before.n_instants, before.node_hours, n_since, hours)
    known = [one for one in (before.dispersion, dispersion) if isfinite(one)]
    bunching = max([1.0, *known])
    allowing = None
    if bunching > 1 and n_since + before.n_instants > 0:
        counts = (round(before.n_instants / bunching), round(n_since / bunching))
        if sum(counts):
            allowing = change(counts[0], before.node_hours, counts[1], hours)
    return Since(before, plain, allowing, bunching)


def _since_h(ends: str, outages: Outages) -> float:
    """Where the earlier result ended, on the clock of the log [h]."""
    try:
        instants = [datetime.fromisoformat(text) for text in (ends, outages.origin)]
    except ValueError:
        pass
    else:
        end, origin = (one if one.tzinfo else one.replace(tzinfo=UTC) for one in instants)
        return (end - origin).total_seconds() / 3600
    number, _, unit = ends.partition(" ")
    origin_number, _, origin_unit = outages.origin.partition(" ")
    try:
        if unit != origin_unit:
            raise ValueError
        return float(number) - float(origin_number)
    except ValueError:
        raise ParameterError(
            f"--since-last: that result ends at {ends}, this log begins at {outages.origin}: "
            "they are on two clocks"
        ) from None
