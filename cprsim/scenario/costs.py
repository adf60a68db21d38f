"""The sections `storage` and `costs`: what saving and loading cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from cprsim.records import OverLink
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.scenario.distributions import OR_DISTRIBUTION, Duration, DurationSpec
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
