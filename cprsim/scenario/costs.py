"""The sections `storage`, `costs` and `prices`: what saving, loading and nodes cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from cprsim.errors import ParameterError
from cprsim.records import OverLink
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.scenario.distributions import OR_DISTRIBUTION, Duration, DurationSpec
from cprsim.scenario.prices import ANY_ROLE, Money, Prices
from cprsim.scenario.quantities import Bandwidth, Model, OneOf, within
from cprsim.units import SHARE, TIME, Quantity

OR_TRANSFER = f", or `transfer`{OR_DISTRIBUTION}"
TransferTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", OR_TRANSFER)]
Chance = Annotated[float, Quantity(SHARE, "0 %", "50 %", "1 %")]


Cost = Annotated[
    TransferTime | DurationSpec | OverLink | Literal["transfer"],
    OneOf("text", "section", "link", "word", words=["transfer"]),
]


class StorageSection(Model):
    """Where checkpoints go; all who save or load at once share its bandwidth evenly."""

    bandwidth_bytes_per_h: Bandwidth = Field(description="Of the storage as a whole [bandwidth].")
    per_server_bytes_per_h: Bandwidth | None = Field(
        None, description="Of each server's own link [bandwidth]; absent: unlimited."
    )


class SaveCost(Model):
    """What a save takes: it stalls the job, and may then go on beside the training."""

    stall: Cost = Field(
        description="How long it stalls the job; `transfer`: bytes per server over bandwidth."
    )
    background: Cost | None = Field(
        None, description="Time beside the training until the save is valid; absent: none."
    )
    fails_fraction: Chance = Field(
        0.0, description="Share of saves that come to nothing [per cent]; default 0."
    )
    corrupt_fraction: Chance = Field(
        0.0, description="Share of saves found useless when they are loaded [per cent]; default 0."
    )
    kept: Annotated[int, within(1, MOST_GENERATIONS)] = Field(
        1, description="Saves that the storage keeps; an older one is loaded if a newer is corrupt."
    )


def _stall_alone(save: Any) -> Any:
    """`save: 94 s`, and a distribution in its place, are short for `{stall: ...}`."""
    is_section = isinstance(save, SaveCost) or (
        isinstance(save, dict) and not ({"family", "mean", "link"} & set(save))
    )
    return save if is_section else {"stall": save}


Save = Annotated[SaveCost, BeforeValidator(_stall_alone, json_schema_input_type=Cost | SaveCost)]


class CostsSection(Model):
    """What one save, load, detection and rescheduling take."""

    save: Save = Field(
        description="A time, a distribution, `transfer`, or {stall: ..., background: ...}."
    )
    load: Cost = Field(
        description="Loading state after a failure: a time, a distribution, or `transfer`."
    )
    detect: Duration = Field(
        0.0, description="Until a failure is noticed: a time or a distribution; default 0 s."
    )
    reschedule: Duration = Field(
        0.0, description="Until the replacement runs: a time or a distribution; default 0 s."
    )


AS_THERE = "As in the section `costs`; absent: what is said there."


class OwnCosts(Model):
    """What differs under one strategy from the section `costs`."""

    save: Save | None = Field(None, description=AS_THERE)
    load: Cost | None = Field(None, description=AS_THERE)
    detect: Duration | None = Field(None, description=AS_THERE)
    reschedule: Duration | None = Field(None, description=AS_THERE)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Something differs."""
        if not self.given:
            yield "", "says nothing: give save, load, detect or reschedule, or leave it out"


def by_bytes(costs: CostsSection | OwnCosts) -> Iterator[tuple[str, str | OverLink]]:
    """The costs that follow from bytes over a bandwidth, by key."""
    save = costs.save
    each = {
        "save": save and save.stall,
        "save.background": save and save.background,
        "load": costs.load,
    }
    return ((key, cost) for key, cost in each.items() if isinstance(cost, str | OverLink))


# ---------------------------------------------------------------------- prices

LABEL = r"[A-Za-z$€£¥]{1,12}"
MOST = Decimal(10) ** 9
Label = Annotated[str, Field(strict=True, pattern=f"^{LABEL}$")]
_PRICE = re.compile(rf"\s*((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{{1,3}})?)\s*({LABEL})?\s*")


def _price(value: Any) -> Money:
    """An amount and its label: ``2.50 USD``, or a bare number where `currency` has the label."""
    found = None if isinstance(value, bool) else _PRICE.fullmatch(str(value))
    if found is None or Decimal(found[1]) > MOST:
        raise ParameterError("is not a price: write for example 2.50 USD")
    return Money(Decimal(found[1]), found[2] or "")


def _by_role(value: Any) -> Any:
    return value if isinstance(value, dict) else {ANY_ROLE: value}


Price = Annotated[
    Money,
    BeforeValidator(_price),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": ["string", "number"], "examples": ["2.50 USD"]}),
]
PriceByRole = Annotated[
    dict[str, Price], BeforeValidator(_by_role, json_schema_input_type=Price | dict[str, Price])
]
PlainNumber = Annotated[float, within(0, 1e9)]
WattsByRole = Annotated[
    dict[str, PlainNumber],
    BeforeValidator(_by_role, json_schema_input_type=PlainNumber | dict[str, PlainNumber]),
]


class PricesSection(Model):
    """What is paid for, in one currency, which is a label and never converted."""

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
        description="What a node draws [W]: one number, or one by role (`any`: the other roles).",
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
        """Of the currency and of all amounts, each once."""
        single = (self.storage_month, self.storage_written, self.kwh, self.auc_loss)
        amounts = [*self.node_hour.values(), *filter(None, single)]
        return sorted({self.currency or "", *(one.label for one in amounts)} - {""})

    def problems(self) -> Iterator[tuple[str, str]]:
        """There is one currency, and what needs a power draw has one."""
        if len(labels := self.labels) > 1:
            both = " and ".join(labels)
            yield "currency", f"prices are in {both}: currencies are never converted"
        for key in {"kwh", "carbon_kg_per_kwh"} & set(self.given) if not self.watts else ():
            yield key, "needs `watts`, what a node draws"

    def record(self) -> Prices:
        """The same as plain numbers of one currency: each key is a field of the record."""
        numbers = {key: _without_label(value) for key, value in self}
        return Prices(**numbers | {"currency": next(iter(self.labels), "")})


def _without_label(value: Any) -> Any:
    """An amount of money, or several by role, as numbers; what is none stays."""
    if isinstance(value, dict):
        return {role: _without_label(one) for role, one in value.items()}
    return value.amount if isinstance(value, Money) else value
