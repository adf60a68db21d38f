"""What a log observed, and from where that is known: given, read from the file, or inferred."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from cprsim.failures.outages import Outages
from cprsim.fitting.lifetimes import FirstUptime


class Fact(NamedTuple):
    """One thing that the observation rests on, and from where it is known."""

    value: int | str
    source: (
        str  # given with an option, read from the file, or inferred from what it happens to hold
    )
    how: str  # which option, or by what reasoning

    def __str__(self) -> str:
        return f"{self.value} ({self.source}: {self.how})"


Observation = dict[str, Fact]
"""Which nodes were watched (`n_nodes`), when (`begins`, `ends`), and of what `ages` they were."""

AGES = {
    FirstUptime.NEW: "nodes count as new when the log begins",
    FirstUptime.UNKNOWN: "unknown when the log begins: first up-times are left out",
}
LIVING = {
    FirstUptime.NEW: "nodes count as new when they were installed",
    FirstUptime.UNKNOWN: "unknown when they entered: first up-times are left out",
}
INFERRED = {
    "n_nodes": "those that the file names; nodes that never failed are missing, see --nodes",
    "begins": "the first failure in the file, see --period",
    "ends": "the last instant in the file, see --period",
    "ages": "the log does not know them, see --age",
}


def observation(
    outages: Outages, first: FirstUptime, known: Mapping[str, tuple[str, str]] | None = None
) -> Observation:
    """The observation of a log; `known` is what a user said besides."""
    origins = {name: ("inferred", how) for name, how in INFERRED.items()}
    origins |= {**outages.facts, **(known or {})}
    values: dict[str, int | str] = {
        "n_nodes": outages.n_nodes,
        "begins": outages.origin,
        "ends": instant(outages, outages.window_h),
        "ages": (AGES if outages.lives is None else LIVING)[first],
    }
    return {name: Fact(value, *origins[name]) for name, value in values.items()}


def instant(outages: Outages, at_h: float) -> str:
    """An instant of the log [h], written as its begin is."""
    try:
        begins = datetime.fromisoformat(outages.origin)
        return (begins + timedelta(hours=at_h)).replace(microsecond=0).isoformat()
    except (ValueError, OverflowError):
        pass
    number, _, unit = outages.origin.partition(" ")
    try:
        return f"{float(number) + at_h:g} {unit}"
    except ValueError:
        return f"{at_h:g} h later"


def node_hours(outages: Outages) -> float:
    """Hours that all nodes were there together [h], down ones included."""
    if outages.lives is None:
        return outages.n_nodes * outages.window_h
    return float((outages.lives[2] - outages.lives[1]).sum())
