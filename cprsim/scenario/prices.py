"""The section `prices`: what a node-hour, a gigabyte and a kilowatt-hour cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from cprsim.errors import ParameterError
from cprsim.prices import ANY_ROLE, Money, Prices
from cprsim.scenario.quantities import Model

LABEL = r"[A-Za-z$€£¥]{1,12}"
MOST = Decimal(10) ** 9
_PRICE = re.compile(rf"\s*((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{{1,3}})?)\s*({LABEL})?\s*")


def _price(value: Any) -> Money:
    """An amount and its label: ``2.50 USD``, or a bare number where `currency` has the label."""
    text = str(value) if isinstance(value, str | int | float) and value is not True else ""
    match = _PRICE.fullmatch(text)
    try:
        if isinstance(value, Money):
            return value
        if match is None or Decimal(match[1]) > MOST:
            raise InvalidOperation
        return Money(Decimal(match[1]), match[2] or "")
    except InvalidOperation:
        raise ParameterError("is not a price: write for example 2.50 USD") from None


def _by_role(value: Any) -> Any:
    return value if isinstance(value, dict) else {ANY_ROLE: value}


Price = Annotated[
    Money,
    BeforeValidator(_price),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": ["string", "number"], "examples": ["2.50 USD"]}),
]
ONE_PRICE = {"type": ["string", "number"]}
ByRole = Annotated[
    dict[str, Price],
    BeforeValidator(_by_role),
    WithJsonSchema({"anyOf": [ONE_PRICE, {"type": "object", "additionalProperties": ONE_PRICE}]}),
]
PlainNumber = Annotated[float, Field(strict=True, ge=0, le=1e9)]
ONE_NUMBER = {"type": "number", "minimum": 0}
Watts = Annotated[
    dict[str, PlainNumber],
    BeforeValidator(_by_role),
    WithJsonSchema({"anyOf": [ONE_NUMBER, {"type": "object", "additionalProperties": ONE_NUMBER}]}),
]


class PricesSection(Model):
    """What is paid for, in one currency, which is a label and never converted."""

    model_config = Model.model_config | {"arbitrary_types_allowed": True}

    currency: str | None = Field(
        None,
        strict=True,
        pattern=f"^{LABEL}$",
        description="Label of the amounts that stand without one.",
        examples=["USD"],
    )
    node_hour: ByRole = Field(
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
    watts: Watts = Field(
        default_factory=dict,
        description="What a node draws [W]: one number, or one by role (`any`: the other roles).",
        examples=[700, {"trainer": 700, "emb_ps": 350}],
    )
    kwh: Price | None = Field(None, description="Of a kilowatt-hour.")
    carbon_kg_per_kwh: PlainNumber | None = Field(
        None, description="Kilograms of CO2 per kilowatt-hour.", examples=[0.4]
    )
    auc_loss: Price | None = Field(
        None,
        description="Of 0.0001 of AUC that one job loses: `select` finds the cheapest in all.",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        """There is one currency, and what needs a power draw has one."""
        labels = {price.label for price in self._amounts()} | {self.currency or ""}
        if len(named := sorted(labels - {""})) > 1:
            yield "currency", f"prices are in {' and '.join(named)}: currencies are never converted"
        for key, given in (("kwh", self.kwh), ("carbon_kg_per_kwh", self.carbon_kg_per_kwh)):
            if given is not None and not self.watts:
                yield key, "needs `watts`, what a node draws"

    def _amounts(self) -> list[Money]:
        single = (self.storage_month, self.storage_written, self.kwh, self.auc_loss)
        return [*self.node_hour.values(), *(price for price in single if price is not None)]

    def record(self) -> Prices:
        """The same as plain numbers of one currency: each key is a field of the record."""
        label = next((price.label for price in self._amounts() if price.label), self.currency or "")
        numbers = {key: _without_label(value) for key, value in self}
        return Prices(**numbers | {"currency": label})


def _without_label(value: Any) -> Any:
    """An amount of money, or several by role, as numbers; what is none stays."""
    if isinstance(value, dict):
        return {role: _without_label(one) for role, one in value.items()}
    return value.amount if isinstance(value, Money) else value
