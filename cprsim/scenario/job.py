"""The sections `job` and `simulation`: the useful work, and how often it is simulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from cprsim.scenario.quantities import Model, UsefulTime
from cprsim.units import SHARE, THROUGHPUT, TIME, Quantity

StepTime = Annotated[float, Quantity(TIME, "1 us", "100 h", "10 s")]
Throughput = Annotated[float, Quantity(THROUGHPUT, "0.001 samples/s", "1e15 samples/s")]
Precision = Annotated[float, Quantity(SHARE, "0.01 %", "50 %")]
REPLICATIONS = 1000
EngineName = Literal["auto", "simpy"]


class Job(Model):
    """The useful work: hours at full speed, or samples and throughput."""

    useful_time_h: UsefulTime | None = Field(
        None, alias="useful", description="Useful work at full speed [time]."
    )
    samples: float | None = Field(
        None,
        strict=True,
        ge=1,
        le=1e18,
        description="Samples to train on, a count; needs `throughput`.",
    )
    throughput_per_h: Throughput | None = Field(
        None, alias="throughput", description="Samples per time at full speed."
    )
    step_h: StepTime | None = Field(
        None,
        alias="step",
        description="Time of a training step at full speed [time]; recovery systems that save or "
        "retry by steps need it.",
    )
    horizon_h: UsefulTime | None = Field(
        None,
        alias="horizon",
        description="Wall time at which the job ends, done or not [time]; absent: when its work is "
        "done.",
    )

    @property
    def useful_h(self) -> float:
        """Useful work in hours at full speed."""
        if self.useful_time_h is not None:
            return self.useful_time_h
        assert self.samples is not None
        assert self.throughput_per_h is not None
        return self.samples / self.throughput_per_h

    def problems(self) -> Iterator[tuple[str, str]]:
        """The work is said once and in full."""
        if self.useful_time_h is not None:
            for key, other in (("samples", self.samples), ("throughput", self.throughput_per_h)):
                if other is not None:
                    yield key, "give either `useful`, or `samples` and `throughput`"
        elif self.samples is None or self.throughput_per_h is None:
            yield "useful", "is missing: give `useful: 50 h`, or `samples` and `throughput`"
        elif not 1 / 3600 <= self.useful_h <= 100_000:
            yield "samples", f"makes {self.useful_h:.3g} h of work; it must be 1 s to 100000 h"


class Simulation(Model):
    """How many replications, from which seed."""

    seed: int = Field(
        1, strict=True, ge=0, le=2**63 - 1, description="Seed of all random numbers, an integer."
    )
    replications: int | None = Field(
        None,
        strict=True,
        ge=1,
        le=10**7,
        description=f"Replications of the job, a count; default {REPLICATIONS}; or give "
        "`precision`.",
    )
    precision_fraction: Precision | None = Field(
        None,
        alias="precision",
        description="Half-width of the 95 % interval of the overhead, in per cent of its mean; "
        "decides the number of replications.",
    )
    at_most: int | None = Field(
        None,
        strict=True,
        ge=100,
        le=10**7,
        description="With `precision`: replications at which to stop in any case; default 100000.",
    )
    engine: EngineName = Field(
        "auto",
        description="What runs the replications: auto, the compiled loop; simpy, event by event. "
        "The numbers are the same up to rounding.",
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, section: Any) -> Any:
        if not isinstance(section, dict):
            return section
        if section.get("precision") is None:
            absent = section.get("replications") is None and section.get("at_most") is None
            return {**section, "replications": REPLICATIONS} if absent else section
        return {"at_most": 100_000, **section}

    def problems(self) -> Iterator[tuple[str, str]]:
        """The number of replications is said once."""
        if self.replications is not None and self.precision_fraction is not None:
            yield "replications", "give either `replications` or `precision`"
        if self.at_most is not None and self.precision_fraction is None:
            yield "at_most", "goes with `precision`"
