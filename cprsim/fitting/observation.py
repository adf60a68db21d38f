"""What a log observed, and from where that is known: given, read from the file, or inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from cprsim.failures.outages import Outages
from cprsim.fitting.lifetimes import FirstUptime


class Source(StrEnum):
    """From where something is known."""

    GIVEN = "given"  # by the user, with an option
    READ = "read"  # the file says it
    INFERRED = "inferred"  # from what the file happens to hold


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that the observation rests on."""

    value: int | float | str
    source: Source
    how: str  # which option, or by what reasoning

    @property
    def origin(self) -> str:
        """Its origin in words."""
        return f"{self.source}: {self.how}"


@dataclass(frozen=True, slots=True)
class Observation:
    """What was watched: which nodes, from when to when, and of what age they were."""

    n_nodes: Fact
    begins: Fact
    ends: Fact
    window_h: float
    ages: Fact
    cause: str | None = None  # the only one that is asked about

    def lines(self) -> list[str]:
        """All of it in words, a line for each fact."""
        return [
            f"nodes: {self.n_nodes.value} ({self.n_nodes.origin})",
            f"window: {self.window_h:.6g} h, from {self.begins.value} ({self.begins.origin}) "
            f"to {self.ends.value} ({self.ends.origin})",
            f"ages: {self.ages.value} ({self.ages.origin})",
        ]


AGES = {
    FirstUptime.NEW: "nodes count as new when the log begins",
    FirstUptime.UNKNOWN: "unknown when the log begins: first up-times are left out",
}
LIVING = {
    FirstUptime.NEW: "nodes count as new when they were installed",
    FirstUptime.UNKNOWN: "unknown when they entered: first up-times are left out",
}
Origin = tuple[Source, str]
INFERRED: dict[str, Origin] = {
    name: (Source.INFERRED, how)
    for name, how in (
        ("n_nodes", "those that the file names; nodes that never failed are missing, see --nodes"),
        ("begins", "the first failure in the file, see --period"),
        ("ends", "the last instant in the file, see --period"),
        ("ages", "the log does not know them, see --age"),
    )
}


def observation(
    outages: Outages,
    first: FirstUptime,
    known: Mapping[str, Origin] | None = None,
    cause: str | None = None,
) -> Observation:
    """The observation of a log; `known` is what a user said besides."""
    facts = {name: (Source(how[0]), how[1]) for name, how in outages.facts.items()}
    origin = INFERRED | facts | dict(known or {})
    ages = AGES[first] if outages.lives is None else LIVING[first]
    return Observation(
        Fact(outages.n_nodes, *origin["n_nodes"]),
        Fact(outages.origin, *origin["begins"]),
        Fact(instant(outages, outages.window_h), *origin["ends"]),
        outages.window_h,
        Fact(ages, *origin["ages"]),
        cause,
    )


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
