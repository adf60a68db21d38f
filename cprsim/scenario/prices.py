"""The section `prices`, and the cost of hours and bytes: to the cent, part by part.

An amount of money is a whole number of cents once it stands in a bill, so that the sum over the
parts is the total. Currencies are labels and never converted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from cprsim.errors import ParameterError
from cprsim.scenario.quantities import Model, within

ANY_ROLE = "any"
HOURS_PER_MONTH = 730.5  # 365.25 days / 12
HOURS_PER_YEAR = 8766.0  # 365.25 days
GB = 1e9  # bytes
STORAGE_KEPT, STORAGE_WRITTEN, ENERGY = "storage kept", "storage written", "energy"
ACCURACY = "accuracy"


LABEL = r"[A-Za-z$€£¥]{1,12}"
HIGHEST_PRICE = 10**9
_PRICE = re.compile(rf"\s*((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{{1,3}})?)\s*({LABEL})?\s*")


class Money(Decimal):
    """An amount and its label: ``2.50 USD``, or a bare number where `currency` has the label."""

    label: str

    def __new__(cls, written: object) -> Self:
        match = None if isinstance(written, bool) else _PRICE.fullmatch(str(written))
        if match is None or Decimal(match[1]) > HIGHEST_PRICE:
            raise ParameterError("is not a price: write for example 2.50 USD")
        money = super().__new__(cls, match[1])
        money.label = match[2] or ""
        return money

    def __str__(self) -> str:
        return f"{Decimal(self)} {self.label}".strip()

    def __reduce__(self) -> tuple[Any, ...]:  # Decimal's own forgets the label
        return Money, (str(self),)


def _by_role(value: Any) -> Any:
    return value if isinstance(value, dict) else {ANY_ROLE: value}


Price = Annotated[
    Money,
    PlainValidator(Money),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": ["string", "number"], "examples": ["2.50 USD"]}),
]
PriceByRole = Annotated[
    dict[str, Price], BeforeValidator(_by_role, json_schema_input_type=Price | dict[str, Price])
]
Label = Annotated[str, Field(strict=True, pattern=f"^{LABEL}$")]
PlainNumber = Annotated[float, within(0, 1e9)]
WattsByRole = Annotated[
    dict[str, PlainNumber],
    BeforeValidator(_by_role, json_schema_input_type=PlainNumber | dict[str, PlainNumber]),
]


class Prices(Model):
    """Prices in one currency, which is a label and never converted."""

    currency: Label | None = Field(None, description="Label of the amounts that stand without one.")
    node_hour: PriceByRole = Field(
        default_factory=dict,
        description="Of a node for an hour: one price, or one by role (`any`: the other roles).",
        examples=["2.50 USD", {"trainer": "2.50 USD", "emb_ps": "0.80 USD"}],
    )
    storage_month: Price | None = Field(
        None, description="Of a gigabyte (10^9 bytes) that the storage keeps for a month."
    )
    storage_written: Price | None = Field(
        None, description="Of a gigabyte (10^9 bytes) that is written to the storage."
    )
    watts: WattsByRole = Field(
        default_factory=dict,
        description="Power of a node [W]: one number, or one by role (`any`: the other roles).",
        examples=[700, {"trainer": 700, "emb_ps": 350}],
    )
    kwh: Price | None = Field(None, description="Of a kilowatt-hour.")
    carbon_kg_per_kwh: PlainNumber | None = Field(
        None, description="Kilograms of CO2 per kilowatt-hour."
    )
    auc_loss: Price | None = Field(
        None, description="Of 0.0001 of AUC that one job loses: `select` finds the cheapest in all."
    )

    @property
    def labels(self) -> list[str]:
        """Labels of the currency and of all amounts, each once."""
        single = (self.storage_month, self.storage_written, self.kwh, self.auc_loss)
        amounts = [*self.node_hour.values(), *filter(None, single)]
        return sorted({self.currency or "", *(amount.label for amount in amounts)} - {""})

    @property
    def label(self) -> str:
        """The label of all amounts; empty where none has one."""
        return next(iter(self.labels), "")

    @property
    def has_money(self) -> bool:
        """Whether anything has a price."""
        single = (self.storage_month, self.storage_written, self.kwh)
        return bool(self.node_hour) or any(price is not None for price in single)

    def problems(self) -> Iterator[tuple[str, str]]:
        if len(labels := self.labels) > 1:
            currencies = " and ".join(labels)
            yield "currency", f"prices are in {currencies}: currencies are never converted"
        for key in {"kwh", "carbon_kg_per_kwh"} & set(self.given) if not self.watts else ():
            yield key, "needs `watts`, the power of a node"


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that a job used.

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
    """Cost of the resources used, at some prices, in whole cents, by part."""

    currency: str
    cents: Mapping[str, int]

    @property
    def total_cents(self) -> int:
        return sum(self.cents.values())


def money_of_nodes(prices: Prices, node_h: Mapping[str, float]) -> Decimal:
    """Cost of node-hours by role, not rounded."""
    of = prices.node_hour
    amounts = (
        Decimal(hours) * of.get(role, of.get(ANY_ROLE, Decimal(0)))
        for role, hours in node_h.items()
    )
    return sum(amounts, Decimal(0))


def mean_node_hour(prices: Prices, n_nodes: Mapping[str, float]) -> float:
    """Price of a node-hour, the mean over a job's nodes by role.

    Exact for hours that all nodes of the job spend together, as the overhead of a run is. Spares
    and nodes that a recovery system takes on top are priced at this mean (assumed).
    """
    return float(money_of_nodes(prices, n_nodes) / Decimal(sum(n_nodes.values())))


def energy_kwh(prices: Prices, usage: Usage) -> float:
    """Energy used by the nodes at constant power [kWh]; none by roles without one."""
    watts = prices.watts
    return sum(
        hours * watts.get(role, watts.get(ANY_ROLE, 0.0)) / 1000.0
        for by_role in usage.node_h.values()
        for role, hours in by_role.items()
    )


def carbon_kg(prices: Prices, usage: Usage) -> float | None:
    """CO2 of the energy [kg]; None if the emission per kWh is unknown."""
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
    return Bill(prices.label, {name: to_cents(amount) for name, amount in lines.items()})


def to_cents(amount: Decimal) -> int:
    """Whole cents, halves to even."""
    return int((amount * 100).quantize(Decimal(1), ROUND_HALF_EVEN))


def shown(cents: float, currency: str) -> str:
    """``1,234.56 USD``."""
    return f"{round(cents) / 100:,.2f} {currency}".strip()
