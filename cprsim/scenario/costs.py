"""The sections `storage` and `costs`: what saving, loading, detecting and rescheduling take."""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from cprsim.failures.distributions import Constant, Distribution, with_mean
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.scenario.quantities import Bandwidth, Family, Model, PositiveTime, Quantity, Spread
from cprsim.units import SHARE, TIME

TRANSFER = "transfer"
_OR = ", or {family: gamma, mean: 94 s, shape: 2}"
CostTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", _OR)]
TransferTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", f", or `transfer`{_OR}")]
Chance = Annotated[float, Quantity(SHARE, "0 %", "50 %", "1 %")]
MOST_SKEWED = 900  # mean over median; beyond it no affordable number of draws finds the mean


class DurationSpec(Spread):
    """A time that varies: its family, its mean and one more parameter."""

    family: Family = Field(description="Distribution: exponential, gamma, weibull or lognormal.")
    shape: float | None = Field(
        None,
        strict=True,
        ge=0.1,
        le=1e9,  # what is measured often hardly varies
        description="Shape of gamma or weibull, no unit; the larger, the less it varies.",
        examples=[2],
    )
    mean_h: PositiveTime = Field(alias="mean", description="Mean [time].", examples=["5.9 h"])
    median_h: PositiveTime | None = Field(
        None, alias="median", description="Of lognormal, instead of sigma: the median [time]."
    )

    @property
    def spread(self) -> float | None:
        """The one parameter beside the mean: shape, or sigma; None for exponential.

        Notes
        -----
        A lognormal's ``mean / median = exp(sigma^2 / 2)``.
        """
        if self.family == "lognormal" and self.median_h is not None:
            return sqrt(2.0 * log(self.mean_h / self.median_h))
        return self.sigma if self.family == "lognormal" else self.shape

    def problems(self) -> Iterator[tuple[str, str]]:
        """The parameters are those of the family; a median replaces sigma."""
        if self.median_h is None:
            yield from super().problems()
        elif self.family != "lognormal" or self.sigma is not None or self.shape is not None:
            yield "median", "goes with family lognormal, instead of sigma"
        elif not self.median_h < self.mean_h:
            yield "median", "must be below the mean: a lognormal's median always is"
        elif self.mean_h > MOST_SKEWED * self.median_h:
            yield "median", f"lies too far below the mean: at most {MOST_SKEWED} times"


def _duration_written_as(value: Any) -> str:
    return "as:distribution" if isinstance(value, dict | DurationSpec) else "as:time"


def _cost_written_as(value: Any) -> str:
    return "as:transfer" if value == TRANSFER else _duration_written_as(value)


Duration = Annotated[
    Annotated[CostTime, Tag("as:time")] | Annotated[DurationSpec, Tag("as:distribution")],
    Discriminator(_duration_written_as),
]
Cost = Annotated[
    Annotated[TransferTime, Tag("as:time")]
    | Annotated[DurationSpec, Tag("as:distribution")]
    | Annotated[Literal["transfer"], Tag("as:transfer")],
    Discriminator(_cost_written_as),
]


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


def _stall_alone(save: Any) -> Any:
    """`save: 94 s`, and a distribution in its place, are short for `{stall: ...}`."""
    is_section = isinstance(save, SaveCost) or (
        isinstance(save, dict) and not ({"family", "mean"} & set(save))
    )
    return save if is_section else {"stall": save}


Save = Annotated[SaveCost, BeforeValidator(_stall_alone, json_schema_input_type=Cost | SaveCost)]


class Costs(Model):
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

    @property
    def transfers(self) -> Iterator[str]:
        """Keys of the costs that follow from bytes over bandwidth."""
        return _transfers(self.save, self.load)


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

    @property
    def transfers(self) -> Iterator[str]:
        """Keys of the costs that follow from bytes over bandwidth."""
        return _transfers(self.save, self.load)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Something differs."""
        keys = tuple(type(self).model_fields)
        if all(getattr(self, key) is None for key in keys):
            yield "", f"says nothing: give {', '.join(keys[:-1])} or {keys[-1]}, or leave it out"


def _transfers(save: SaveCost | None, load: Any) -> Iterator[str]:
    costs = {
        "save": save and save.stall,
        "save.background": save and save.background,
        "load": load,
    }
    return (key for key, cost in costs.items() if cost == TRANSFER)


class Storage(Model):
    """Where checkpoints go; all who save or load at once share its bandwidth evenly."""

    bandwidth_bytes_per_h: Bandwidth = Field(
        alias="bandwidth", description="Of the storage as a whole [bandwidth]."
    )
    per_server_bytes_per_h: Bandwidth | None = Field(
        None,
        alias="per_server",
        description="Of each server's own link [bandwidth]; absent: unlimited.",
    )


def duration_of(spec: float | DurationSpec) -> Distribution:
    """A fixed time [h], or a distribution."""
    if isinstance(spec, DurationSpec):
        return with_mean(spec.family, spec.mean_h, spec.spread)
    return Constant(spec)
