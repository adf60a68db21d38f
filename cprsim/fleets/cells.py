"""What a history of a fleet comes to: overheads, hours, money; small enough to be sent around."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import nan
from typing import Any

import numpy as np

from cprsim.experiments.assemble import Experiment
from cprsim.fleets.course import History, PreparedFleet, state_bytes
from cprsim.prices import (
    GB,
    HOURS_PER_MONTH,
    Bill,
    Prices,
    Usage,
    bill_of,
    energy_kwh,
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
    """One history of a fleet under one strategy.

    Parameters
    ----------
    means : those of the statistics that are means over jobs, by kind of job
    usage : of the jobs of each kind, without the spares
    spare_h : node-hours of the spares, which stand there all the window
    """

    finished: float  # share of the jobs
    statistics: Mapping[str, float]
    n_jobs: tuple[int, ...]  # of each kind
    means: Mapping[str, tuple[float, ...]]
    usage: tuple[Usage, ...]
    spare_h: float
    window_h: float

    @property
    def months(self) -> float:
        """How many months the fleet's window is."""
        return self.window_h / HOURS_PER_MONTH

    @property
    def used_per_month(self) -> Usage:
        """What all jobs and the spares use."""
        node_h: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for usage in self.usage:
            for part, by_role in usage.node_h.items():
                for role, hours in by_role.items():
                    node_h[part][role] += hours / self.months
        if self.spare_h:
            node_h[SPARE][SPARE] = self.spare_h / self.months
        return Usage(
            {part: dict(by_role) for part, by_role in node_h.items()},
            sum(usage.kept_gb_months for usage in self.usage) / self.months,
            sum(usage.written_gb for usage in self.usage) / self.months,
        )


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
    totals = jobs[["wall_h", "written_bytes"]].groupby(jobs.kind).sum()
    by_part = {USEFUL: jobs.useful_h, **{str(part): column for part, column in hours.items()}}
    sums = {part: column.groupby(jobs.kind).sum().tolist() for part, column in by_part.items()}
    return FleetCell(
        finished=float(jobs.finished.mean()),
        statistics={name: float(statistics[name]) for name in STATISTICS},
        n_jobs=tuple(kind.n_jobs for kind in fleet.population.kinds),
        means={str(name): tuple(of) for name, of in each.groupby(jobs.kind).mean().items()},
        usage=tuple(
            _usage(kind, strategy, {part: of[n] for part, of in sums.items()}, *total)
            for n, (kind, total) in enumerate(zip(fleet.kinds, totals.to_numpy(), strict=True))
        ),
        spare_h=(section.spares or 0) * window_h,
        window_h=window_h,
    )


def _usage(
    kind: Experiment, strategy: int, hours: Mapping[str, float], wall_h: float, written: float
) -> Usage:
    """What the jobs of a kind use: nodes by part and role, and the storage."""
    policy = kind.policies[strategy]
    roles = {role.name: role.n_nodes for role in kind.cluster.roles}
    node_h = {part: {role: n * h for role, n in roles.items()} for part, h in hours.items()}
    if policy.extra_nodes:
        node_h[SYSTEM] = {SYSTEM: policy.extra_nodes * float(wall_h)}
    keeps_gb = state_bytes(kind) / GB if policy.interval_h < kind.useful_h else 0.0
    return Usage(node_h, keeps_gb * float(wall_h) / HOURS_PER_MONTH, float(written) / GB)


# ------------------------------------------------------------------------------ in money


@dataclass(frozen=True, slots=True)
class PricedCell:
    """A cell in money per month, or in node-hours where there are no prices."""

    bill: Bill | None  # per month, to the cent
    cost: float  # per month: cents, or node-hours where nothing has a price
    cost_by_kind: Floats  # (n_kinds,) likewise, without the spares, which belong to no kind
    energy_kwh: float = nan  # per month
    carbon_kg: float = nan  # per month


def priced(cell: FleetCell, prices: Prices | None) -> PricedCell:
    """What a cell costs per month. Node-hours of spares have the mean price of the jobs' nodes."""
    used = cell.used_per_month
    if prices is None or not prices.has_money:
        by_kind = np.array([_node_h(usage) for usage in cell.usage]) / cell.months
        return PricedCell(None, _node_h(used), by_kind)
    prices = with_spares(prices, used)
    bill = bill_of(prices, used)
    by_kind = np.array([_cents(prices, usage) for usage in cell.usage]) / cell.months
    drawn = energy_kwh(prices, used) if prices.watts else nan
    carbon = nan if prices.carbon_kg_per_kwh is None else prices.carbon_kg_per_kwh
    carbon *= energy_kwh(prices, used)
    return PricedCell(bill, float(bill.total_cents), by_kind, drawn, carbon)


def _node_h(usage: Usage) -> float:
    return sum(sum(by_role.values()) for by_role in usage.node_h.values())


def _cents(prices: Prices, usage: Usage) -> float:
    """What some usage costs, unrounded."""
    nodes = sum(
        hours * float(node_hour_price(prices, role))
        for by_role in usage.node_h.values()
        for role, hours in by_role.items()
    )
    kept = usage.kept_gb_months * float(prices.storage_month or 0)
    written = usage.written_gb * float(prices.storage_written or 0)
    return 100.0 * (nodes + kept + written + energy_kwh(prices, usage) * float(prices.kwh or 0))


def with_spares(prices: Prices, usage: Usage) -> Prices:
    """Prices that have one for a spare and a system's nodes: the mean of the jobs' nodes.

    A spare whose power draw nobody gives draws none.
    """
    jobs = {part: of for part, of in usage.node_h.items() if part not in (SPARE, SYSTEM)}
    pairs = [(role, hours) for of in jobs.values() for role, hours in of.items()]
    all_h = sum(hours for _, hours in pairs)
    if not all_h:
        return prices
    price = sum(float(node_hour_price(prices, role)) * hours for role, hours in pairs) / all_h
    watts = sum(watts_of(prices, role) * hours for role, hours in pairs) / all_h
    node_hour = {SPARE: Decimal(repr(price)), SYSTEM: Decimal(repr(price)), **prices.node_hour}
    drawn = {SPARE: 0.0, SYSTEM: watts, **prices.watts} if prices.watts else prices.watts
    return replace(prices, node_hour=node_hour, watts=drawn)
