"""A log taken apart: by cause, by groups of nodes, or by domains."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.fitting.by_group import ByGroup
from cprsim.fitting.causes import CauseFragment, OfCause
from cprsim.fitting.domains import ByDomain


@dataclass(frozen=True, slots=True)
class TakenApart:
    """What was asked for; the rest is empty."""

    causes: tuple[OfCause, ...] = ()  # the one to fix first on top
    cause_fragments: tuple[CauseFragment, ...] = ()  # of each alone
    fragment_of_causes: str | None = None  # with a source for each
    groups: ByGroup | None = None
    domains: ByDomain | None = None


WHOLE = TakenApart()
