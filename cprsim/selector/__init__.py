"""The selector: which strategy, at which interval, within the accuracy that a user may lose."""

from __future__ import annotations

from cprsim.selector.choice import Candidate, Flip, Selection
from cprsim.selector.deciding import WAYS
from cprsim.selector.limit import Limit, Quantity
from cprsim.selector.selecting import select

__all__ = ["WAYS", "Candidate", "Flip", "Limit", "Quantity", "Selection", "select"]
