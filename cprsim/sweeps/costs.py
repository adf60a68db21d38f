"""What each strategy costs at a point of a sweep, by the prices that hold there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Any

from cprsim.records import Estimate
from cprsim.results.money import at_overhead, use_of
from cprsim.scenario.prices import ACCURACY
from cprsim.sweeps.points import Point

COST_JOB, COST_MONTH = "cost_job", "cost_month"  # quantities; ``cost_month save``: of a part
OVERHEAD = "overhead_fraction"


def costs_of(point: Point, strategy: Mapping[str, Any]) -> dict[str, Estimate]:
    """What a job and a month cost at a point, in all and by part, in the prices' currency.

    Amounts are to the cent, and parts add up to their total. The intervals of the totals are those
    of the overhead. Empty where nothing has a price, or not all jobs finish.
    """
    policy = next(one for one in point.experiment.policies if one.name == strategy["name"])
    summary = {}
    for name, of in strategy["quantities"].items():
        mean, low, high = (nan if number is None else number for number in of[:3])
        summary[name] = Estimate(mean, low, high)
    prices, use = point.prices, use_of(point.experiment.useful_h, summary)
    if prices is None or use is None:
        return {}
    billed, overhead = prices.billed(policy, use), summary[OVERHEAD]
    low, high = (
        None if isnan(end) else prices.billed(policy, at_overhead(use, end))
        for end in (overhead.low, overhead.high)
    )
    found = {}
    for name, of in ((COST_JOB, "job"), (COST_MONTH, "month")):
        total, least, most = (
            nan if end is None else getattr(end, of).total_cents / 100
            for end in (billed, low, high)
        )
        found[name] = Estimate(total, least, most)
        for part, cents in getattr(billed, of).cents.items():
            found[f"{name} {part}"] = Estimate(cents / 100)
    return found


def with_all(costs: Mapping[str, Estimate], names: Iterable[str]) -> dict[str, Estimate]:
    """The same under all names: parts that a strategy has not cost nothing, where it finishes.

    What it loses of accuracy is not known then.
    """
    none = Estimate(0.0 if costs else nan)
    blank = {name: Estimate(nan) if name.endswith(f" {ACCURACY}") else none for name in names}
    return {**blank, **costs}
