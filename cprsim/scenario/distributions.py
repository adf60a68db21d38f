"""Times that vary, as a scenario writes them: by family and mean, or by a hazard between ages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log, sqrt
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from cprsim.failures import limits
from cprsim.failures.distributions import Constant, Distribution, PiecewiseHazard, with_mean
from cprsim.scenario.quantities import Model, Mtbf, PositiveTime
from cprsim.units import HAZARD, TIME, Quantity

PIECEWISE = "piecewise"
MAX_PIECES = 100
MOST_SKEWED = 900  # mean over median; beyond it no affordable number of draws finds the mean
OR_DISTRIBUTION = ", or {family: gamma, mean: 94 s, shape: 2}"

Family = Literal["exponential", "gamma", "weibull", "lognormal"]
FixedTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", OR_DISTRIBUTION)]
Age = Annotated[float, Quantity(TIME, "0 h", "100000000 h", "12 h")]
Hazard = Annotated[
    float, Quantity(HAZARD, "0.00000001 failures/h", "3600 failures/h", "0.02 failures/h")
]
Mtbf95 = Annotated[
    tuple[Mtbf, Mtbf] | None,
    Field(
        alias="mtbf_95",
        description="95 % interval of mtbf [two times], as `cprsim fit` finds it; absent: taken as "
        "known. `cprsim select` draws from it.",
        examples=[["9 h", "21 h"]],
    ),
]
Spread95 = Annotated[
    tuple[
        Annotated[float, Field(strict=True, gt=0, le=limits.SPREAD_95[1])],
        Annotated[float, Field(strict=True, gt=0, le=limits.SPREAD_95[1])],
    ]
    | None,
    Field(
        description="95 % interval of shape or sigma, no unit; absent: taken as known.",
        examples=[[0.5, 0.9]],
    ),
]


class Spread(Model):
    """How a random time scatters about its mean."""

    family: str = Field(description="Distribution; those who inherit this say which there are.")
    shape: float | None = Field(
        None,
        strict=True,
        ge=limits.SHAPE[0],
        le=limits.SHAPE[1],
        description="Shape of gamma or weibull, no unit; 1 is exponential, below 1 clusters.",
        examples=[0.67],
    )
    sigma: float | None = Field(
        None,
        strict=True,
        gt=0,
        le=limits.SIGMA[1],
        description="Of lognormal: standard deviation of the logarithm, no unit.",
        examples=[1.2],
    )

    @property
    def spread(self) -> float | None:
        """The one parameter beside the mean: shape, or sigma; None for exponential."""
        return self.sigma if self.family == "lognormal" else self.shape

    def problems(self) -> Iterator[tuple[str, str]]:
        """The parameters are those of the family."""
        wanted = {"gamma": "shape", "weibull": "shape", "lognormal": "sigma"}.get(self.family)
        if wanted is not None and self.spread is None:
            yield wanted, f"is missing: {self.family} needs it"
        for key in ("shape", "sigma"):
            if key != wanted and getattr(self, key) is not None:
                yield (
                    key,
                    f"is no parameter of {self.family}"
                    + (f", which takes {wanted}" if wanted else ""),
                )


# ---------------------------------------------------------------------- durations


class DurationSpec(Spread):
    """A time that varies: its family, its mean and one more parameter."""

    family: Family = Field(description="Distribution: exponential, gamma, weibull or lognormal.")
    shape: float | None = Field(
        None,
        strict=True,
        ge=limits.SHAPE[0],
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

        A lognormal's ``mean / median = exp(sigma^2 / 2)``.
        """
        if self.family == "lognormal" and self.median_h is not None:
            return sqrt(2.0 * log(self.mean_h / self.median_h))
        return self.sigma if self.family == "lognormal" else self.shape

    @property
    def distribution(self) -> Distribution:
        """The same as the engines draw from it."""
        return with_mean(self.family, self.mean_h, self.spread)

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


def duration_written_as(value: Any) -> str:
    """Which member of `Duration` a value is."""
    return "as:distribution" if isinstance(value, dict | DurationSpec) else "as:time"


Duration = Annotated[
    Annotated[FixedTime, Tag("as:time")] | Annotated[DurationSpec, Tag("as:distribution")],
    Discriminator(duration_written_as),
]


def duration_of(spec: float | DurationSpec) -> Distribution:
    """A fixed time [h] or a time that varies, as the engines draw from it."""
    return spec.distribution if isinstance(spec, DurationSpec) else Constant(spec)


# ---------------------------------------------------------------------- lifetimes


def intervals_agree(
    mtbf_95_h: tuple[float, float] | None,
    spread_95: tuple[float, float] | None,
    spread: float | None,
) -> Iterator[tuple[str, str]]:
    """Intervals of parameters ascend, and belong to a parameter."""
    for key, interval in (("mtbf_95", mtbf_95_h), ("spread_95", spread_95)):
        if interval is not None and not interval[0] < interval[1]:
            yield key, f"the lower end, {interval[0]:g}, comes first, and lies below the other"
    if spread_95 is not None and spread is None:
        yield "spread_95", "there is no shape or sigma whose interval it could be"


class Lifetime(Spread):
    """Time between failures: a family with its mean, or a hazard that is constant between ages."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"family": {"const": PIECEWISE}}},
            "then": {"required": ["ages", "hazards"]},
            "else": {"required": ["mtbf"]},
        }
    )

    family: Literal[Family, "piecewise"] = Field(
        description="Distribution: exponential, gamma, weibull, lognormal, or piecewise (a hazard "
        "that is constant between ages)."
    )
    mean_between_h: Mtbf | None = Field(
        None,
        alias="mtbf",
        description="Mean time between failures, of the job or of a node [time]; of piecewise it "
        "follows from ages and hazards.",
    )
    mtbf_95_h: Mtbf95 = None
    spread_95: Spread95 = None
    ages_h: tuple[Age, ...] | None = Field(
        None,
        alias="ages",
        min_length=1,
        max_length=MAX_PIECES,
        description="Of piecewise: ages at which the hazard changes [time], the first of them 0 h.",
        examples=[["0 h", "12 h"]],
    )
    hazards_per_h: tuple[Hazard, ...] | None = Field(
        None,
        alias="hazards",
        min_length=1,
        max_length=MAX_PIECES,
        description="Of piecewise: the hazard from each of the ages on [failures per time].",
        examples=[["0.1 failures/h", "0.02 failures/h"]],
    )

    @property
    def pieces(self) -> PiecewiseHazard | None:
        """The hazard between ages; None where the family is another one."""
        if self.ages_h is None or self.hazards_per_h is None:
            return None
        return PiecewiseHazard(self.ages_h, self.hazards_per_h)

    @property
    def mtbf_h(self) -> float:
        """Mean time between failures [h]."""
        if self.pieces is not None:
            return self.pieces.mean_h
        assert self.mean_between_h is not None
        return self.mean_between_h

    @property
    def distribution(self) -> Distribution:
        """The same as the engines draw from it.

        Raises ParameterError for a hazard that can't be simulated.
        """
        if self.pieces is not None:
            return self.pieces.simulable()
        return with_mean(self.family, self.mtbf_h, self.spread)

    @property
    def mtbf_key(self) -> str:
        """The key that decides the mean."""
        return "hazards" if self.family == PIECEWISE else "mtbf"

    def problems(self) -> Iterator[tuple[str, str]]:
        """The numbers are those of the family."""
        yield from super().problems()
        yield from intervals_agree(self.mtbf_95_h, self.spread_95, self.spread)
        pieces = {"ages": self.ages_h, "hazards": self.hazards_per_h}
        if self.family == PIECEWISE:
            yield from _pieces_agree(self.ages_h, self.hazards_per_h)
            if self.mean_between_h is not None:
                yield "mtbf", "follows from ages and hazards: leave it out"
            if self.mtbf_95_h is not None:
                yield "mtbf_95", "goes with mtbf, which follows from ages and hazards here"
            return
        if self.mean_between_h is None:
            yield "mtbf", "is missing (mean time between failures [time])"
        for key, value in pieces.items():
            if value is not None:
                yield key, f"belongs to family {PIECEWISE}, not {self.family}"


def _pieces_agree(
    ages_h: tuple[float, ...] | None, hazards_per_h: tuple[float, ...] | None
) -> Iterator[tuple[str, str]]:
    if ages_h is None:
        yield "ages", "is missing: say from which ages on each hazard holds, the first 0 h"
    if hazards_per_h is None:
        yield "hazards", "is missing: say the hazard from each of the ages on"
    if ages_h is None or hazards_per_h is None:
        return
    if ages_h[0] != 0:
        yield "ages.0", "the first age is 0 h: the hazard of what has just been renewed"
    for i, (age_h, next_h) in enumerate(pairwise(ages_h), 1):
        if next_h <= age_h:
            yield f"ages.{i}", f"{next_h:g} h does not lie beyond the age before it ({age_h:g} h)"
    if len(hazards_per_h) != len(ages_h):
        yield "hazards", f"there are {len(hazards_per_h)}, but {len(ages_h)} ages: one for each"
