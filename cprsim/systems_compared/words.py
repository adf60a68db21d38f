"""How a system of a comparison is said, the same in table, figure and page."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from cprsim.records import NO_NUMBER, Estimate
from cprsim.results.metrics import FINISHED
from cprsim.results.words import every, hours, percent, with_interval
from cprsim.systems_compared.after import Fate, LossKind
from cprsim.systems_compared.comparison import (
    BEST,
    LESS,
    MORE,
    TIED,
    UNPRICED,
    Comparison,
    Standing,
)

LOST = {LossKind.START: "all", LossKind.NOTHING: "0", LossKind.SHARDS: "stale"}


def name_of(one: Standing) -> str:
    """Its name, with a star behind that of what loses accuracy that nothing prices."""
    return one.name + (" *" if one.accuracy == UNPRICED else "")


def interval_of(one: Standing) -> str:
    """How often it saves; ``never`` where the interval is as long as the job."""
    interval_h = one.policy.interval_h
    useful_h = one.summary["wall_h"].mean / (1.0 + one.overhead.mean) if one.finishes else inf
    return "never" if interval_h >= useful_h * (1 - 1e-9) else every(one.policy)


def overhead(one: Standing) -> str:
    """The overhead in percent; where not all finish, how many do."""
    if not one.finishes:
        return f"{percent(one.summary[FINISHED].mean)} done"
    of_all = in_percent(one.overhead)
    return f"at least {of_all.split(' ±')[0]}" if one.facts.unknown else of_all


def in_percent(fraction: Estimate) -> str:
    """A share with its interval, without the sign."""
    return with_interval(100 * fraction.mean, 100 * fraction.half_width)


def ratio(quantity: str, one: Standing) -> str:
    """A mean with three decimals."""
    return f"{one.summary[quantity].mean:.3f}" if one.finishes else NO_NUMBER


def difference(one: Standing) -> str:
    """What it costs more than the best, or that it can't be told."""
    if one.facts.unknown:
        return NO_NUMBER
    if one.more is not None and one.more.low == one.more.high == 0:
        return BEST  # the same in each job
    if one.verdict in (MORE, LESS) and one.more is not None:
        return in_percent(one.more)
    return one.verdict if one.verdict in (BEST, TIED) else NO_NUMBER


def columns_of_fates(found: Sequence[Standing]) -> list[list[str]]:
    """Kinds of failures; those that no system tells apart are together."""
    together: dict[tuple[Fate, ...], list[str]] = {}
    for name in found[0].facts.fates:
        together.setdefault(tuple(one.facts.fates[name] for one in found), []).append(name)
    return list(together.values())


def lost_at_most(kind: str, one: Standing) -> str:
    """What a failure of a kind takes at most, as in a cell of a table."""
    fate = one.facts.fates[kind]
    return LOST.get(fate.kind) or hours(fate.up_to_h)


def intervals_in_words(comparison: Comparison) -> str:
    """How the intervals came about."""
    if comparison.fixed:
        return "each at the scenario's interval or its default"
    kept = f", {comparison.today} at its own" if comparison.today else ""
    return f"each at its best interval{kept}"
