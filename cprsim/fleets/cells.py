"""What a history of a fleet comes to: overheads, hours, money; small enough to be sent around."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.codec import Number
from cprsim.experiments.assemble import Experiment
from cprsim.fleets.course import History, PreparedFleet, state_bytes
from cprsim.prices import (
    GB,
    HOURS_PER_MONTH,
    Prices,
    Usage,
    amounts_of,
    bill_of,
    node_hour_price,
    watts_of,
)
from cprsim.records import Floats

HOURS_PER_YEAR = 8766.0
USEFUL, SPARE, SYSTEM = "useful", "spare", "system nodes"  # parts of the node-hours
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95}
STATISTICS = {
    "overhead": "mean overhead, share of useful time",
    "p50": "overhead that half of the jobs stay below",
    "p90": "overhead that 90 % of the jobs stay below",
    "p95": "overhead that 95 % of the jobs stay below",
    "machine_years": "node-hours of overhead, in years of 8766 h",
    "queued_h": "mean hours from arrival to start",
    "wait_h": "mean hours in which a job waits for a spare",
    "jobs_per_month": "jobs that end within the window, per month of 730.5 h",
    "utilisation": "useful node-hours within the window, of those that `nodes` has in it",
    "busy_nodes": "nodes that are in jobs, mean over the window",
    "pls": "mean PLS of a job",
}


@dataclass(frozen=True, slots=True)
class FleetCell:
    """One history of a fleet under one strategy; usage is per month.

    Parameters
    ----------
    means : those of the statistics that are means over jobs, by kind of job
    used : by all jobs and the spares, which stand there all the window
    usage : of the jobs of each kind
    """

    finished: float  # share of the jobs
    statistics: Mapping[str, Number]
    n_jobs: tuple[int, ...]  # of each kind
    means: Mapping[str, tuple[Number, ...]]
    used: Usage
    usage: tuple[Usage, ...]


def cell_of(fleet: PreparedFleet, strategy: int, history: History) -> FleetCell:
    """What a history comes to."""
    (jobs, hours), section, window_h = history, fleet.section, fleet.section.window_h
    within = np.clip(window_h - jobs.start_h, 0.0, jobs.wall_h)  # hours in the window
    useful_h = (jobs.n_nodes * within * jobs.useful_h / jobs.wall_h).sum()
    n_ended = (jobs.finished & (jobs.start_h + jobs.wall_h <= window_h)).sum()
    each = jobs[["overhead", "queued_h"]].assign(wait_h=hours.get("wait", 0.0))
    statistics: Mapping[Any, Any] = {
        **each.mean(),
        **jobs.overhead.quantile(list(QUANTILES.values())).set_axis(list(QUANTILES)),
        "machine_years": (jobs.n_nodes * (jobs.wall_h - jobs.useful_h)).sum() / HOURS_PER_YEAR,
        "jobs_per_month": n_ended * HOURS_PER_MONTH / window_h,
        "utilisation": useful_h / ((section.nodes or nan) * window_h),
        "busy_nodes": (jobs.n_nodes * within).sum() / window_h,
        "pls": jobs.pls.mean(),
    }
    totals = jobs[["wall_h", "written_bytes"]].groupby(jobs.kind).sum().to_numpy()
    by_part = {USEFUL: jobs.useful_h, **{str(part): column for part, column in hours.items()}}
    sums = pd.DataFrame(by_part).groupby(jobs.kind).sum().to_dict("records")
    months = window_h / HOURS_PER_MONTH
    usage = tuple(
        _usage(kind, strategy, of_parts, wall_h, written, months)
        for kind, of_parts, (wall_h, written) in zip(
            fleet.kinds, sums, totals.tolist(), strict=True
        )
    )
    return FleetCell(
        finished=float(jobs.finished.mean()),
        statistics={name: float(statistics[name]) for name in STATISTICS},
        n_jobs=tuple(kind.n_jobs for kind in fleet.population.kinds),
        means={str(name): tuple(of) for name, of in each.groupby(jobs.kind).mean().items()},
        used=_together(usage, (section.spares or 0) * HOURS_PER_MONTH),
        usage=usage,
    )


def _usage(
    kind: Experiment, strategy: int, hours: Mapping[Any, float], wall_h: float, written: float,
    months: float,
) -> Usage:  # fmt: skip
    """What the jobs of a kind use per month: nodes by part and role, and the storage."""
    policy = kind.policies[strategy]
    roles = {role.name: role.n_nodes for role in kind.cluster.roles}
    node_h = {
        part: {role: n * h / months for role, n in roles.items()} for part, h in hours.items()
    }
    if policy.tax.nodes:
        node_h[SYSTEM] = {SYSTEM: policy.tax.nodes * wall_h / months}
    keeps_gb = state_bytes(kind) / GB if policy.interval_h < kind.useful_h else 0.0
    return Usage(node_h, keeps_gb * wall_h / HOURS_PER_MONTH / months, written / GB / months)


def _together(some: Sequence[Usage], spare_h: float) -> Usage:
    """What jobs of several kinds use, and spares."""
    node_h: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for usage in some:
        for part, by_role in usage.node_h.items():
            for role, hours in by_role.items():
                node_h[part][role] += hours
    if spare_h:
        node_h[SPARE][SPARE] = spare_h
    return Usage(
        {part: dict(by_role) for part, by_role in node_h.items()},
        sum(usage.kept_gb_months for usage in some),
        sum(usage.written_gb for usage in some),
    )


# ------------------------------------------------------------------------------ in money


def cost_of(cell: FleetCell, prices: Prices | None) -> float:
    """What a cell costs per month: whole cents, or node-hours where nothing has a price."""
    if prices is None:
        return node_hours(cell.used)
    return float(bill_of(with_spares(prices, cell.used), cell.used).total_cents)


def cost_by_kind(cell: FleetCell, prices: Prices | None) -> Floats:
    """The same of the jobs of each kind, not rounded; spares belong to none."""
    if prices is None:
        return np.array([node_hours(usage) for usage in cell.usage])
    prices = with_spares(prices, cell.used)
    amounts = [sum(amounts_of(prices, usage).values()) for usage in cell.usage]
    return np.array([100.0 * float(one) for one in amounts])


def node_hours(usage: Usage) -> float:
    """The sum over parts and roles."""
    return sum(sum(by_role.values()) for by_role in usage.node_h.values())


def with_spares(prices: Prices, used: Usage) -> Prices:
    """Prices that have one for a spare and a system's nodes: the mean of the jobs' nodes.

    A spare whose power draw nobody gives draws none.
    """
    jobs = [by_role for part, by_role in used.node_h.items() if part not in (SPARE, SYSTEM)]
    pairs = [(role, hours) for by_role in jobs for role, hours in by_role.items()]
    all_h = sum(hours for _, hours in pairs)
    if not all_h:
        return prices
    price = sum(float(node_hour_price(prices, role)) * hours for role, hours in pairs) / all_h
    watts = sum(watts_of(prices, role) * hours for role, hours in pairs) / all_h
    node_hour = {SPARE: Decimal(repr(price)), SYSTEM: Decimal(repr(price)), **prices.node_hour}
    drawn = {SPARE: 0.0, SYSTEM: watts, **prices.watts} if prices.watts else prices.watts
    return replace(prices, node_hour=node_hour, watts=drawn)
