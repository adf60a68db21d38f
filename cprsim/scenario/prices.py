"""Prices, and what hours and bytes come to at them: to the cent, part by part.

An amount of money is a whole number of cents once it stands in a bill, so that the sum over the
parts is the total. Currencies are labels and never converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

ANY_ROLE = "any"
HOURS_PER_MONTH = 730.5  # 365.25 days / 12
GB = 1e9  # bytes
STORAGE_KEPT, STORAGE_WRITTEN, ENERGY = "storage kept", "storage written", "energy"
ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True)
class Money:
    """An amount as somebody wrote it, with the label of its currency."""

    amount: Decimal
    label: str = ""

    def __str__(self) -> str:
        return f"{self.amount} {self.label}".strip()


@dataclass(frozen=True, slots=True)
class Prices:
    """What is paid for, all in one currency; None: it costs nothing, or nobody said.

    `node_hour` and `watts` are by role; ``any`` stands for the roles that have no entry.
    """

    currency: str = ""
    node_hour: Mapping[str, Decimal] = field(default_factory=dict)
    storage_month: Decimal | None = None  # of a GB
    storage_written: Decimal | None = None  # of a GB
    watts: Mapping[str, float] = field(default_factory=dict)  # of a node
    kwh: Decimal | None = None
    carbon_kg_per_kwh: float | None = None
    auc_loss: Decimal | None = None  # of 0.0001 of AUC that one job loses

    @property
    def has_money(self) -> bool:
        """Whether anything has a price."""
        single = (self.storage_month, self.storage_written, self.kwh)
        return bool(self.node_hour) or any(one is not None for one in single)


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used.

    Parameters
    ----------
    node_h : node-hours by part (useful, lost, save, ...) and by role
    kept_gb_months : gigabytes that the storage kept, times months
    written_gb : gigabytes that were written to it
    """

    node_h: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    kept_gb_months: float = 0.0
    written_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Bill:
    """What was used at some prices, in whole cents, by part."""

    currency: str
    cents: Mapping[str, int]

    @property
    def total_cents(self) -> int:
        """The sum over the parts."""
        return sum(self.cents.values())


def node_hour_price(prices: Prices, role: str) -> Decimal:
    """Of one node of a role for an hour; 0 where it has no price."""
    return prices.node_hour.get(role, prices.node_hour.get(ANY_ROLE, Decimal(0)))


def watts_of(prices: Prices, role: str) -> float:
    """What one node of a role draws [W]; 0 where nobody said."""
    return prices.watts.get(role, prices.watts.get(ANY_ROLE, 0.0))


def money_of_nodes(prices: Prices, node_h: Mapping[str, float]) -> Decimal:
    """Of node-hours by role, not rounded."""
    return sum(
        (Decimal(hours) * node_hour_price(prices, role) for role, hours in node_h.items()),
        Decimal(0),
    )


def mean_node_hour(prices: Prices, n_nodes: Mapping[str, float]) -> float:
    """Price of a node-hour, the mean over a job's nodes by role.

    Exact for hours that all nodes of the job spend together, as the overhead of a run is. Spares
    and nodes that a recovery system takes on top are priced at this mean (assumed).
    """
    return float(money_of_nodes(prices, n_nodes) / Decimal(sum(n_nodes.values())))


def energy_kwh(prices: Prices, usage: Usage) -> float:
    """What the nodes drew, each all the time [kWh]."""
    return sum(
        hours * watts_of(prices, role) / 1000.0
        for by_role in usage.node_h.values()
        for role, hours in by_role.items()
    )


def carbon_kg(prices: Prices, usage: Usage) -> float | None:
    """CO2 of the energy [kg]; None where it is not known."""
    if prices.carbon_kg_per_kwh is None:
        return None
    return energy_kwh(prices, usage) * prices.carbon_kg_per_kwh


def amounts_of(prices: Prices, usage: Usage) -> dict[str, Decimal]:
    """What some usage costs, not rounded: a line per part of the node-hours, storage, energy."""
    lines = {part: money_of_nodes(prices, by_role) for part, by_role in usage.node_h.items()}
    if prices.storage_month is not None:
        lines[STORAGE_KEPT] = Decimal(usage.kept_gb_months) * prices.storage_month
    if prices.storage_written is not None:
        lines[STORAGE_WRITTEN] = Decimal(usage.written_gb) * prices.storage_written
    if prices.kwh is not None:
        lines[ENERGY] = Decimal(energy_kwh(prices, usage)) * prices.kwh
    return lines


def bill_of(prices: Prices, usage: Usage) -> Bill:
    """What some usage costs, in whole cents."""
    lines = amounts_of(prices, usage)
    return Bill(prices.currency, {name: to_cents(amount) for name, amount in lines.items()})


def to_cents(amount: Decimal) -> int:
    """Whole cents, halves to even."""
    return int((amount * 100).quantize(Decimal(1), ROUND_HALF_EVEN))


def shown(cents: float, currency: str) -> str:
    """``1,234.56 USD``."""
    return f"{round(cents) / 100:,.2f} {currency}".strip()
