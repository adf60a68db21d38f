"""The table of a sweep: a row per point, strategy and quantity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isnan, nan
from typing import Any

import pandas as pd

from cprsim.records import Estimate, ExpectedFailures
from cprsim.recovery.intervals import cpr_h, daly_h, young_h
from cprsim.results.money import at_overhead, use_of
from cprsim.results.store import Body
from cprsim.scenario.prices import ACCURACY
from cprsim.scenario.sweep import Values
from cprsim.sweeps.points import Point

VARIED = "varied"  # which axis a row of one-at-a-time varies; empty for the scenario as it is
COST_JOB, COST_MONTH = "cost_job", "cost_month"  # quantities; ``cost_month save``: of a part
OVERHEAD = "overhead_fraction"
NUMBERS = ("mean", "low", "high", "difference", "difference_low", "difference_high")


def sweep_table(
    axes: Mapping[str, Values], points: Sequence[Point], bodies: Sequence[Body]
) -> pd.DataFrame:
    """The tidy table of a sweep, in the order of its points."""
    both = list(zip(points, bodies, strict=True))
    costs = [[_costs_of(point, one) for one in body["strategies"]] for point, body in both]
    names = dict.fromkeys(name for some in costs for one in some for name in one)
    rows = []
    for (point, body), some in zip(both, costs, strict=True):
        place, job = _place(axes, point), point.experiment
        expected = job.failures.expected(job.cluster, job.useful_h)
        for strategy, cost in zip(body["strategies"], some, strict=True):
            head = {
                **place,
                "strategy": strategy["name"],
                "on_failure": strategy["on_failure"],
                "save_interval_h": _number(strategy["save_interval_h"], inf),
                "interval_rule": strategy["interval_rule"],
                **_rules(point, strategy["name"], expected),
            }
            beside = {"n": strategy["n"], "reference": body["reference"]}
            quantities = strategy["quantities"] | {
                name: [*one.triple, nan, nan, nan] for name, one in _with_all(cost, names).items()
            }
            for quantity, numbers in quantities.items():
                found = {name: _number(n) for name, n in zip(NUMBERS, numbers, strict=True)}
                rows.append({**head, "quantity": quantity, **beside, **found})
    return pd.DataFrame(rows)


def _place(axes: Mapping[str, Values], point: Point) -> dict[str, Any]:
    """Where a point is: its value on each axis; empty where the scenario's own holds."""
    place: dict[str, Any] = {}
    for (key, values), i in zip(axes.items(), point.coordinates, strict=True):
        place[values.column(key)] = None if i is None else values.listed[i]
    varied = [key for key, i in zip(axes, point.coordinates, strict=True) if i is not None]
    return {**place, VARIED: "" if not varied else " ".join(varied)}


def _rules(point: Point, strategy: str, expected: ExpectedFailures) -> Mapping[str, float]:
    """What Young's, Daly's and CPR's formulas would choose at this point [h]."""
    experiment = point.experiment
    entry = next(one for one in point.strategies if one.name == strategy)
    costs, n_emb_ps = experiment.at_costs_of(entry).costs, experiment.cluster.n_emb_ps
    save_h, chosen = costs.mean_h(costs.save_stall, n_emb_ps), nan
    if entry.target_pls and expected.n_shards_together:
        chosen = cpr_h(
            entry.target_pls, n_emb_ps, expected.mtbf_shard_h, expected.n_shards_together
        )
    return {
        "young_h": young_h(save_h, expected.mtbf_h) or nan,
        "daly_h": daly_h(save_h, expected.mtbf_h) or nan,
        "cpr_h": chosen,
    }


def _costs_of(point: Point, strategy: Mapping[str, Any]) -> dict[str, Estimate]:
    """What a job and a month cost at a point, in all and by part, in the prices' currency.

    Amounts are to the cent, and parts add up to their total. The intervals of the totals are those
    of the overhead. Empty where nothing has a price, or not all jobs finish.
    """
    policy = next(one for one in point.experiment.policies if one.name == strategy["name"])
    summary = {
        name: Estimate(_number(mean), _number(low), _number(high))
        for name, (mean, low, high, *_) in strategy["quantities"].items()
    }
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


def _with_all(costs: Mapping[str, Estimate], names: Iterable[str]) -> dict[str, Estimate]:
    """The same under all names: parts that a strategy has not cost nothing, where it finishes.

    What it loses of accuracy is not known then.
    """
    none = Estimate(0.0 if costs else nan)
    blank = {name: Estimate(nan) if name.endswith(f" {ACCURACY}") else none for name in names}
    return {**blank, **costs}


def _number(value: float | None, otherwise: float = nan) -> float:
    return otherwise if value is None else float(value)
