"""A selection's numbers as people read them, the same in table, sentences and figure."""

from __future__ import annotations

from math import floor, log10

from cprsim.selector.choice import Candidate
from cprsim.selector.limit import Limit, Quantity

WORDS = {Quantity.AUC: "AUC loss", Quantity.LOG_LOSS: "log-loss rise", Quantity.PLS: "PLS"}


def quantity_of(limit: Limit) -> str:
    """What is limited, in words."""
    return WORDS[limit.quantity]


def saving(one: Candidate) -> str:
    """How often a candidate saves, in words."""
    return (
        "never saving" if one.n_saves == 0 else f"saving every {typed(one.policy.save_interval_h)}"
    )


def typed(interval_h: float) -> str:
    """An interval with all the digits that it has, so that it can be typed."""
    per_hour, unit = (1.0, "h") if interval_h >= 1 else (60.0, "min")
    if interval_h < 1 / 60:
        per_hour, unit = 3600.0, "s"
    return f"{interval_h * per_hour:.10g} {unit}"


def decimals(limit: float) -> int:
    """Decimals that show a limit, and what is held to it, with three significant digits."""
    return 6 if limit <= 0 else max(2 - floor(log10(limit)), 2)
