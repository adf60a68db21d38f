"""The selector: which strategy, at which interval, within the accuracy that a user may lose."""

from __future__ import annotations

from cprsim.selector.choice import Candidate, Flip, Selection
from cprsim.selector.deciding import WAYS, loses, ways_of
from cprsim.selector.limit import NO_LIMIT, Limit, LimitedQuantity
from cprsim.selector.selecting import select

__all__ = [
    "NO_LIMIT",
    "WAYS",
    "Candidate",
    "Flip",
    "Limit",
    "LimitedQuantity",
    "Selection",
    "loses",
    "select",
    "ways_of",
]
