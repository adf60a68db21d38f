"""Numbers that count from 1970: in which unit they seem to, and a unit that can't be meant."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cprsim.failures.traces.reading import FIRST_ROW, trace_error
from cprsim.records import Floats

PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
EARLIEST_S, LATEST_S = 788_918_400.0, 2_208_988_800.0  # 1995 and 2040: between are the logs


def epoch_unit(numbers: Floats) -> str | None:
    """The unit in which all numbers (n,) lie between 1995 and 2040; None if there is none."""
    if len(numbers) == 0:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    fitting = (
        unit for unit, per_s in PER_SECOND.items() if EARLIEST_S * per_s <= low
        and high <= LATEST_S * per_s
    )  # fmt: skip
    return next(fitting, None)


def require_plausible(numbers: Floats, unit: str, path: Path) -> None:
    """Raise TraceError for numbers (n,) that are plainly times since 1970 in another unit."""
    likely = epoch_unit(numbers)
    if likely is None or likely == unit:
        return
    first, last = (_day(float(n) / PER_SECOND[likely]) for n in (numbers.min(), numbers.max()))
    message = (
        f"the times look like {likely} since 1970 ({first} to {last}), not like {unit}: say "
        f"--time-unit {likely}"
        if likely in ("s", "ms")
        else f"the times look like {likely} since 1970 ({first} to {last}): leave --time-unit out"
    )
    more = f"; if they are {unit} since another instant, subtract the first from all"
    raise trace_error(path, FIRST_ROW, message + more, "time_unit")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
