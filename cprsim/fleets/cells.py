"""What a history of a fleet comes to: overheads, hours, money; small enough to be sent around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.fleets.course import History, PreparedFleet
from cprsim.prices import HOURS_PER_MONTH, Prices, Usage, amounts_of, bill_of
from cprsim.records import Floats
from cprsim.results.money import SYSTEM, USEFUL, state_bytes_of, usage_of, with_system

HOURS_PER_YEAR = 8766.0
SPARE = "spare"  # a part of the node-hours, and a role
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
    statistics: Mapping[str, float]
    n_jobs: tuple[int, ...]  # of each kind
    means: Mapping[str, tuple[float, ...]]
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
    by_part: dict[Any, Any] = {USEFUL: jobs.useful_h, **hours}
    sums: Any = pd.DataFrame(by_part).groupby(jobs.kind).sum().to_dict("records")
    usage = []
    for kind, of_parts, n_saves in zip(
        fleet.kinds, sums, jobs.n_saves.groupby(jobs.kind).sum().tolist(), strict=True
    ):
        assert kind.scenario is not None
        nodes = {role.name: role.n_nodes for role in kind.cluster.roles}
        state_bytes = state_bytes_of(kind.scenario.cluster)
        policy, per_month = kind.policies[strategy], HOURS_PER_MONTH / window_h
        usage.append(
            usage_of(policy, nodes, state_bytes, kind.useful_h, of_parts, n_saves, per_month)
        )
    spare_h = (section.spares or 0) * HOURS_PER_MONTH
    of_spares = [Usage({SPARE: {SPARE: spare_h}})] if spare_h else []
    return FleetCell(
        finished=float(jobs.finished.mean()),
        statistics={name: float(statistics[name]) for name in STATISTICS},
        n_jobs=tuple(kind.n_jobs for kind in fleet.population.kinds),
        means={str(name): tuple(of) for name, of in each.groupby(jobs.kind).mean().items()},
        used=_together([*usage, *of_spares]),
        usage=tuple(usage),
    )


def _together(some: Sequence[Usage]) -> Usage:
    parts = dict.fromkeys(part for usage in some for part in usage.node_h)
    return Usage(
        {part: summed([usage.node_h.get(part, {}) for usage in some]) for part in parts},
        sum(usage.kept_gb_months for usage in some),
        sum(usage.written_gb for usage in some),
    )


def summed(some: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sums by key."""
    keys = dict.fromkeys(key for one in some for key in one)
    return {key: sum(one.get(key, 0.0) for one in some) for key in keys}


# ------------------------------------------------------------------------------ in money


def cost_of(cell: FleetCell, prices: Prices | None) -> float:
    """What a cell costs per month: whole cents, or node-hours where nothing has a price."""
    if prices is None:
        return sum(node_hours(cell.used).values())
    return float(bill_of(with_spares(prices, cell.used), cell.used).total_cents)


def cost_by_kind(cell: FleetCell, prices: Prices | None) -> Floats:
    """The same of the jobs of each kind, not rounded; spares belong to none."""
    if prices is None:
        return np.array([sum(node_hours(usage).values()) for usage in cell.usage])
    prices = with_spares(prices, cell.used)
    amounts = [sum(amounts_of(prices, usage).values()) for usage in cell.usage]
    return np.array([100.0 * float(one) for one in amounts])


def node_hours(usage: Usage) -> dict[str, float]:
    """The sum over roles, by part."""
    return {part: sum(by_role.values()) for part, by_role in usage.node_h.items()}


def with_spares(prices: Prices, used: Usage) -> Prices:
    """Prices with one for a spare, too: that of a system's nodes; a spare draws nothing."""
    jobs = [by_role for part, by_role in used.node_h.items() if part not in (SPARE, SYSTEM)]
    prices = with_system(prices, summed(jobs))
    return replace(
        prices,
        node_hour={SPARE: prices.node_hour[SYSTEM], **prices.node_hour},
        watts={SPARE: 0.0, **prices.watts} if prices.watts else {},
    )
