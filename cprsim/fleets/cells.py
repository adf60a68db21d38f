"""What a history of a fleet comes to: overheads, hours, money; small enough to be sent around."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

import numpy as np

from cprsim.codec import FieldMark, decode, encode
from cprsim.fleets.course import PreparedFleet
from cprsim.fleets.records import JobRows
from cprsim.prices import (
    GB,
    HOURS_PER_MONTH,
    Bill,
    Prices,
    Usage,
    bill_of,
    carbon_kg,
    energy_kwh,
    node_hour_price,
    watts_of,
)
from cprsim.records import Floats

HOURS_PER_YEAR = 8766.0
USEFUL, SPARE, SYSTEM = "useful", "spare", "system nodes"  # parts of the node-hours
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95}
BY_KIND = ("n", "overhead", "lost_node_h", "queued_h", "wait_h")


@dataclass(frozen=True, slots=True)
class FleetCell:
    """One history of a fleet under one strategy.

    `usage` is of the whole history, that of its spares included; a part `spare` is what the spares
    stand there for over the window.

    Parameters
    ----------
    by_kind : sums over the jobs of each kind, (n_kinds, n_columns of BY_KIND)
    usage_by_kind : what the jobs of each kind use, without the spares
    """

    n_jobs: int
    finished: float  # share of the jobs
    statistics: Mapping[str, float]
    usage: Usage
    window_h: float
    by_kind: Annotated[Floats, FieldMark.NOT_STORED]
    usage_by_kind: tuple[Usage, ...]
    by_events: bool

    @property
    def months(self) -> float:
        """How many months the fleet's window is."""
        return self.window_h / HOURS_PER_MONTH


def cell_as_plain(cell: FleetCell) -> dict[str, Any]:
    """What JSON can hold of a cell: all of it."""
    return {"cell": encode(cell), "by_kind": cell.by_kind.tolist()}


def cell_from(plain: Mapping[str, Any]) -> FleetCell:
    """The cell that `cell_as_plain` made plain."""
    by_kind = np.array(plain["by_kind"], dtype=np.float64)
    return decode(FleetCell, plain["cell"], by_kind=by_kind)


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


def cell_of(fleet: PreparedFleet, strategy: int, rows: JobRows) -> FleetCell:
    """What a history comes to."""
    by_kind = _sums_by_kind(fleet, rows)
    usages = tuple(_usages_by_kind(fleet, strategy, rows))
    return FleetCell(
        n_jobs=len(rows.kind),
        finished=float(rows.finished.mean()),
        statistics=_statistics(fleet, rows),
        usage=_with_spares(fleet, _sum_of(usages)),
        window_h=fleet.section.window_h,
        by_kind=by_kind,
        usage_by_kind=usages,
        by_events=rows.by_events,
    )


def _statistics(fleet: PreparedFleet, rows: JobRows) -> dict[str, float]:
    window_h = fleet.section.window_h
    within = np.clip(window_h - rows.start_h, 0.0, rows.wall_h)  # hours in the window
    busy_h = float((rows.n_nodes * within).sum())
    useful_h = float((rows.n_nodes * within * rows.useful_h / rows.wall_h).sum())
    n_nodes = fleet.section.nodes
    ended = rows.finished & (rows.end_h <= window_h)
    return {
        "overhead": float(rows.overhead.mean()),
        **{name: float(np.quantile(rows.overhead, at)) for name, at in QUANTILES.items()},
        "machine_years": float(rows.lost_node_h.sum()) / HOURS_PER_YEAR,
        "queued_h": float(rows.queued_h.mean()),
        "wait_h": float(rows.hours_of("wait").mean()),
        "jobs_per_month": float(ended.sum()) * HOURS_PER_MONTH / window_h,
        "utilisation": float("nan") if n_nodes is None else useful_h / (n_nodes * window_h),
        "busy_nodes": busy_h / window_h,
        "pls": float(rows.pls.mean()),
    }


def _sums_by_kind(fleet: PreparedFleet, rows: JobRows) -> Floats:
    columns = [
        np.ones(len(rows.kind)), rows.overhead, rows.lost_node_h, rows.queued_h,
        rows.hours_of("wait"),
    ]  # fmt: skip
    n = len(fleet.kinds)
    return np.stack([np.bincount(rows.kind, column, n) for column in columns], axis=1)


def _usages_by_kind(fleet: PreparedFleet, strategy: int, rows: JobRows) -> list[Usage]:
    """What the jobs of each kind use: nodes by part and role, and the storage."""
    n = len(fleet.kinds)
    hours = {USEFUL: rows.useful_h, **{part: rows.hours_of(part) for part in rows.parts}}
    sums = {part: np.bincount(rows.kind, column, n) for part, column in hours.items()}
    wall_h = np.bincount(rows.kind, rows.wall_h, n)
    written = np.bincount(rows.kind, rows.written_bytes, n) / GB
    found = []
    for number, kind in enumerate(fleet.kinds):
        policy, roles = kind.experiment.policies[strategy], kind.nodes_by_role
        node_h = {
            part: {role: n_nodes * float(values[number]) for role, n_nodes in roles.items()}
            for part, values in sums.items()
        }
        if policy.extra_nodes:
            node_h[SYSTEM] = {SYSTEM: policy.extra_nodes * float(wall_h[number])}
        keeps = kind.state_bytes / GB if policy.save_interval_h < kind.experiment.useful_h else 0.0
        kept = keeps * float(wall_h[number]) / HOURS_PER_MONTH
        found.append(Usage(node_h, kept, float(written[number])))
    return found


def _sum_of(usages: tuple[Usage, ...]) -> Usage:
    node_h: dict[str, dict[str, float]] = {}
    for usage in usages:
        for part, by_role in usage.node_h.items():
            mine = node_h.setdefault(part, {})
            for role, hours in by_role.items():
                mine[role] = mine.get(role, 0.0) + hours
    return Usage(
        node_h,
        sum(usage.kept_gb_months for usage in usages),
        sum(usage.written_gb for usage in usages),
    )


def _with_spares(fleet: PreparedFleet, usage: Usage) -> Usage:
    """The same with the spares, which stand there all the window."""
    n_spares = fleet.section.spares
    if not n_spares:
        return usage
    node_h = {**usage.node_h, SPARE: {SPARE: n_spares * fleet.section.window_h}}
    return replace(usage, node_h=node_h)


# ------------------------------------------------------------------------------ in money


@dataclass(frozen=True, slots=True)
class PricedCell:
    """A cell in money per month, or in node-hours where there are no prices."""

    bill: Bill | None  # per month, to the cent
    cost: float  # per month: cents, or node-hours where nothing has a price
    cost_by_kind: Floats  # (n_kinds,) likewise, without the spares, which belong to no kind
    energy_kwh: float | None  # per month
    carbon_kg: float | None  # per month


def priced(cell: FleetCell, prices: Prices | None) -> PricedCell:
    """What a cell costs per month. Node-hours of spares have the mean price of the jobs' nodes."""
    per_month = 1.0 / cell.months
    if prices is None or not prices.has_money:
        by_kind = np.array([_node_h(usage) for usage in cell.usage_by_kind])
        cost = _node_h(cell.usage) * per_month
        return PricedCell(None, cost, by_kind * per_month, None, None)
    prices = with_spares(prices, cell.usage)
    monthly = scaled(cell.usage, per_month)
    bill = bill_of(prices, monthly)
    by_kind = np.array([_cents(prices, usage) for usage in cell.usage_by_kind]) * per_month
    drawn = energy_kwh(prices, monthly) if prices.watts else None
    return PricedCell(bill, float(bill.total_cents), by_kind, drawn, carbon_kg(prices, monthly))


def _node_h(usage: Usage) -> float:
    return sum(sum(by_role.values()) for by_role in usage.node_h.values())


def _cents(prices: Prices, usage: Usage) -> float:
    """What some usage costs, unrounded."""
    nodes = sum(
        hours
        * (float(node_hour_price(prices, role))
           + watts_of(prices, role) / 1000.0 * float(prices.kwh or 0))
        for by_role in usage.node_h.values()
        for role, hours in by_role.items()
    )  # fmt: skip
    kept = usage.kept_gb_months * float(prices.storage_month or 0)
    return 100.0 * (nodes + kept + usage.written_gb * float(prices.storage_written or 0))


def with_spares(prices: Prices, usage: Usage) -> Prices:
    """Prices that have one for a spare and a system's nodes: the mean of the jobs' nodes.

    A spare that nobody gives a power draw draws none.
    """
    node_h: dict[str, float] = {}
    for part, by_role in usage.node_h.items():
        for role, hours in by_role.items() if part not in (SPARE, SYSTEM) else ():
            node_h[role] = node_h.get(role, 0.0) + hours
    all_h = sum(node_h.values())
    if not all_h:
        return prices
    price = sum(float(node_hour_price(prices, role)) * h for role, h in node_h.items()) / all_h
    watts = sum(watts_of(prices, role) * h for role, h in node_h.items()) / all_h
    node_hour = {SPARE: Decimal(repr(price)), SYSTEM: Decimal(repr(price)), **prices.node_hour}
    drawn = {SPARE: 0.0, SYSTEM: watts, **prices.watts} if prices.watts else prices.watts
    return replace(prices, node_hour=node_hour, watts=drawn)


def scaled(usage: Usage, factor: float) -> Usage:
    """So many times the usage."""
    return Usage(
        {part: {role: factor * hours for role, hours in by_role.items()}
         for part, by_role in usage.node_h.items()},
        factor * usage.kept_gb_months,
        factor * usage.written_gb,
    )  # fmt: skip
