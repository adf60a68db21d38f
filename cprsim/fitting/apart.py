"""A log taken apart: by cause, or by groups of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.fitting.by_group import ByGroup
from cprsim.fitting.causes import CauseFragment, OfCause


@dataclass(frozen=True, slots=True)
class TakenApart:
    """What was asked for; the rest is empty."""

    causes: tuple[OfCause, ...] = ()  # the one to fix first on top
    cause_fragments: tuple[CauseFragment, ...] = ()  # of each alone
    fragment_of_causes: str | None = None  # with a source for each
    groups: ByGroup | None = None


WHOLE = TakenApart()
