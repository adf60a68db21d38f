"""How a system of a comparison is said, the same in table, figure and page."""

from __future__ import annotations

from math import inf

from cprsim.records import Estimate
from cprsim.recovery.paper import NEVER
from cprsim.results.metrics import FINISHED
from cprsim.results.words import every, percent, with_interval
from cprsim.systems_compared.comparison import UNPRICED, Comparison, Standing


def name_of(one: Standing) -> str:
    """Its name, with a star behind that of what loses accuracy that nothing prices."""
    return one.name + (" *" if one.accuracy == UNPRICED else "")


def interval_of(one: Standing) -> str:
    """How often it saves; `NEVER` where the interval is as long as the job."""
    interval_h = one.policy.interval_h
    useful_h = one.summary["wall_h"].mean / (1.0 + one.overhead.mean) if one.finishes else inf
    return NEVER if interval_h >= useful_h * (1 - 1e-9) else every(one.policy)


def overhead(one: Standing) -> str:
    """The overhead in percent; where not all finish, how many do."""
    if not one.finishes:
        return f"{percent(one.summary[FINISHED].mean)} done"
    of_all = in_percent(one.overhead)
    return f"at least {of_all.split(' ±')[0]}" if one.facts.unknown else of_all


def in_percent(fraction: Estimate) -> str:
    """A share with its interval, without the sign."""
    return with_interval(100 * fraction.mean, 100 * fraction.half_width)


def intervals_in_words(comparison: Comparison) -> str:
    """How the intervals came about."""
    if comparison.fixed:
        return "each at the scenario's interval or its default"
    kept = f", {comparison.today} at its own" if comparison.today else ""
    return f"each at its best interval{kept}"
