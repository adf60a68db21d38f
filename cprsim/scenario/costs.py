"""The sections `storage` and `costs`: what saving, loading, detecting and rescheduling take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from cprsim import records
from cprsim.failures.distributions import Constant
from cprsim.records import OverLink, Reliability, Transfer
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.scenario.distributions import (
    OR_DISTRIBUTION,
    Duration,
    DurationSpec,
    duration_of,
    duration_written_as,
)
from cprsim.scenario.quantities import Bandwidth, Model
from cprsim.units import SHARE, TIME, Quantity

TRANSFER = "transfer"
OR_TRANSFER = f", or `transfer`{OR_DISTRIBUTION}"
TransferTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", OR_TRANSFER)]
LinksH = tuple[tuple[str, float], ...]  # hours of a node's state over each link, by name
Chance = Annotated[float, Quantity(SHARE, "0 %", "50 %", "1 %")]


def link_or_duration(value: Any) -> str:
    """How a time is written that a link may give: the tag of the union's member."""
    if isinstance(value, OverLink) or (isinstance(value, dict) and "link" in value):
        return "as:link"
    return duration_written_as(value)


def _cost_written_as(value: Any) -> str:
    return "as:transfer" if value == TRANSFER else link_or_duration(value)


Cost = Annotated[
    Annotated[TransferTime, Tag("as:time")]
    | Annotated[DurationSpec, Tag("as:distribution")]
    | Annotated[OverLink, Tag("as:link")]
    | Annotated[Literal["transfer"], Tag("as:transfer")],
    Discriminator(_cost_written_as),
]


def cost_of(
    spec: float | DurationSpec | OverLink | str, links_h: LinksH
) -> records.Duration | Transfer:
    """A cost that a scenario writes, as the record that holds it."""
    if isinstance(spec, OverLink):
        return Constant(dict(links_h)[spec.link])
    return Transfer() if isinstance(spec, str) else duration_of(spec)


class SaveCost(Model):
    """What a save takes: it stalls the job, and may then go on beside the training."""

    stall: Cost = Field(
        description="How long a save stalls the job: a time, a distribution, or `transfer` (bytes "
        "per server over bandwidth)."
    )
    background: Cost | None = Field(
        None,
        description="How long the save then goes on beside the training until it is valid; absent: "
        "not at all.",
    )
    fails_fraction: Chance = Field(
        0.0, alias="fails", description="Share of saves that come to nothing [per cent]; default 0."
    )
    corrupt_fraction: Chance = Field(
        0.0,
        alias="corrupt",
        description="Share of saves found useless when they are loaded [per cent]; default 0.",
    )
    kept: int = Field(
        1,
        strict=True,
        ge=1,
        le=MOST_GENERATIONS,
        description="Saves that the storage keeps; an older one is loaded if a newer is corrupt.",
        examples=[2],
    )

    def as_record(self, links_h: LinksH) -> dict[str, Any]:
        """What the record of costs holds of a save."""
        return {
            "save_stall": cost_of(self.stall, links_h),
            "save_background": None
            if self.background is None
            else cost_of(self.background, links_h),
            "reliability": Reliability(self.fails_fraction, self.corrupt_fraction, self.kept),
        }


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
        description="One save: a time, a distribution, `transfer`, or {stall: ..., "
        "background: ...}."
    )
    load: Cost = Field(
        description="Loading state after a failure: a time, a distribution, or `transfer`."
    )
    detect: Duration = Field(
        0.0, description="Until a failure is noticed: a time or a distribution; default 0 s."
    )
    reschedule: Duration = Field(
        0.0,
        description="Until the replacement runs: a time or a distribution; default 0 s.",
        examples=["2 min"],
    )

    def record(self, storage: records.Storage | None, links_h: LinksH) -> records.Costs:
        """The same as the engines take it."""
        return records.Costs(**_as_record(self, links_h), storage=storage, links_h=links_h)


class OwnCosts(Model):
    """What differs under one strategy from the section `costs`."""

    save: Save | None = Field(None, description="One save, as in `costs`; absent: as there.")
    load: Cost | None = Field(
        None, description="Loading state after a failure, as in `costs`; absent: as there."
    )
    detect: Duration | None = Field(
        None, description="Until a failure is noticed: a time or a distribution; absent: as there."
    )
    reschedule: Duration | None = Field(
        None,
        description="Until the replacement runs: a time or a distribution; absent: as there.",
        examples=["2 min"],
    )

    def instead_of(self, costs: records.Costs) -> records.Costs:
        """The scenario's costs, but for what differs."""
        return replace(costs, **_as_record(self, costs.links_h))

    def problems(self) -> Iterator[tuple[str, str]]:
        """Something differs."""
        keys = tuple(type(self).model_fields)
        if all(getattr(self, key) is None for key in keys):
            yield "", f"says nothing: give {', '.join(keys[:-1])} or {keys[-1]}, or leave it out"


def by_bytes(costs: CostsSection | OwnCosts) -> Iterator[tuple[str, str | OverLink]]:
    """The costs that follow from bytes over a bandwidth, by key."""
    save = costs.save
    each = {
        "save": save and save.stall,
        "save.background": save and save.background,
        "load": costs.load,
    }
    return ((key, cost) for key, cost in each.items() if isinstance(cost, str | OverLink))


def _as_record(costs: CostsSection | OwnCosts, links_h: LinksH) -> dict[str, Any]:
    """What the record of costs holds of those that are given."""
    times = {"load": costs.load, "detect": costs.detect, "reschedule": costs.reschedule}
    given = {key: cost_of(time, links_h) for key, time in times.items() if time is not None}
    return given if costs.save is None else given | costs.save.as_record(links_h)


class StorageSection(Model):
    """Where checkpoints go; all who save or load at once share its bandwidth evenly."""

    bandwidth_bytes_per_h: Bandwidth = Field(
        alias="bandwidth", description="Of the storage as a whole [bandwidth]."
    )
    per_server_bytes_per_h: Bandwidth | None = Field(
        None,
        alias="per_server",
        description="Of each server's own link [bandwidth]; absent: unlimited.",
    )

    def record(self, mean_bytes: float | None, uneven_bytes: tuple[float, ...]) -> records.Storage:
        """The same as the engines take it."""
        link = self.per_server_bytes_per_h
        return records.Storage(
            bandwidth_bytes_per_h=self.bandwidth_bytes_per_h,
            server_bandwidth_bytes_per_h=inf if link is None else link,
            shard_bytes=mean_bytes or 0.0,
            bytes_of_shards=uneven_bytes,
        )
