"""What each strategy costs at a point of a sweep, by the prices that hold there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from typing import Any

from cprsim.files import decode
from cprsim.records import Estimate
from cprsim.results.money import JobPrices, at_overhead, use_of
from cprsim.results.store import Body
from cprsim.scenario.prices import ACCURACY
from cprsim.sweeps.points import Point

COST_JOB, COST_MONTH = "cost_job", "cost_month"  # quantities; ``cost_month save``: of a part
OVERHEAD = "overhead_fraction"

Costs = Mapping[str, Mapping[str, Estimate]]  # by strategy and quantity


def costs_at(points: Sequence[Point], bodies: Sequence[Body]) -> list[Costs]:
    """What a job and a month cost at each point, in all and by part, in the prices' currency.

    Amounts are to the cent, and parts add up to their total. The intervals of the totals are those
    of the overhead. Every strategy has the same quantities; NaN where not all jobs finish.
    """
    found = [_costs(*pair) for pair in zip(points, bodies, strict=True)]
    names = dict.fromkeys(name for of in found for costs in of.values() for name in costs)
    return [{name: {**_blank(names, costs), **costs} for name, costs in of.items()} for of in found]


def _blank(names: Mapping[str, None], costs: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Parts that a strategy has not cost nothing, where it finishes; accuracy is not known then."""
    none = Estimate(0.0 if costs else nan)
    return {name: Estimate(nan) if name.endswith(f" {ACCURACY}") else none for name in names}


def _costs(point: Point, body: Body) -> Costs:
    prices = point.prices
    return {
        one["name"]: {} if prices is None else dict(_of_strategy(prices, point, one))
        for one in body["strategies"]
    }


def _of_strategy(
    prices: JobPrices, point: Point, strategy: Mapping[str, Any]
) -> Iterator[tuple[str, Estimate]]:
    policy = next(one for one in point.experiment.policies if one.name == strategy["name"])
    summary = {name: _estimate(*of[:3]) for name, of in strategy["quantities"].items()}
    use = use_of(point.experiment.useful_h, summary)
    if use is None:
        return
    billed, overhead = prices.billed(policy, use), summary[OVERHEAD]
    low, high = (
        None if isnan(end) else prices.billed(policy, at_overhead(use, end))
        for end in (overhead.low, overhead.high)
    )
    for name, of in ((COST_JOB, "job"), (COST_MONTH, "month")):
        total, least, most = (
            nan if end is None else getattr(end, of).total_cents / 100
            for end in (billed, low, high)
        )
        yield name, Estimate(total, least, most)
        for part, cents in getattr(billed, of).cents.items():
            yield f"{name} {part}", Estimate(cents / 100)


def _estimate(mean: Any, low: Any, high: Any) -> Estimate:
    return decode(Estimate, {"mean": mean, "low": low, "high": high})
