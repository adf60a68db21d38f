"""Times that vary, as a scenario writes them: by family and mean, or by a hazard between ages."""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cprsim.errors import ParameterError
from cprsim.failures import limits
from cprsim.failures.distributions import Constant, Distribution, PiecewiseHazard, with_mean
from cprsim.scenario.quantities import Age, Model, Mtbf, OneOf, PositiveTime, parameters, within
from cprsim.units import HAZARD, TIME, Quantity

PIECEWISE = "piecewise"
MAX_PIECES = 100
OR_DISTRIBUTION = ", or {family: gamma, mean: 94 s, shape: 2}"
PARAMETERS: dict[str, tuple[str, ...]] = {  # of each family, besides its mean
    "exponential": (), "gamma": ("shape",), "weibull": ("shape",), "lognormal": ("sigma",),
}  # fmt: skip

Family = Literal["exponential", "gamma", "weibull", "lognormal"]
FixedTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", OR_DISTRIBUTION)]
Hazard = Annotated[
    float, Quantity(HAZARD, "0.00000001 failures/h", "3600 failures/h", "0.02 failures/h")
]
AT_MOST = Field(min_length=1, max_length=MAX_PIECES)
Shape = Annotated[float, within(*limits.SHAPE)]


def _ascending(ends: tuple[float, float]) -> tuple[float, float]:
    if not ends[0] < ends[1]:
        raise ParameterError("is no interval: the lower end comes first")
    return ends


SpreadEnd = Annotated[float, Field(strict=True, gt=0, le=limits.SPREAD_95[1])]
Mtbf95 = Annotated[
    Annotated[tuple[Mtbf, Mtbf], AfterValidator(_ascending)] | None,
    Field(
        description="95 % interval of mtbf [two times], as `cprsim fit` finds it; absent: taken as "
        "known. `cprsim select` draws from it.",
        examples=[["9 h", "21 h"]],
    ),
]
Spread95 = Annotated[
    Annotated[tuple[SpreadEnd, SpreadEnd], AfterValidator(_ascending)] | None,
    Field(
        description="95 % interval of shape or sigma, no unit; absent: taken as known.",
        examples=[[0.5, 0.9]],
    ),
]
Sigma = Annotated[
    float | None,
    Field(
        strict=True,
        gt=0,
        le=limits.SIGMA[1],
        description="Of lognormal: standard deviation of the logarithm, no unit.",
    ),
]


class DurationSpec(Model):
    """A time that varies: its family, its mean and one more parameter."""

    family: Family = Field(description="Distribution: exponential, gamma, weibull or lognormal.")
    shape: Annotated[float, within(limits.SHAPE[0], 1e9)] | None = Field(
        None, description="Shape of gamma or weibull, no unit; the larger, the less it varies."
    )
    sigma: Sigma = None
    mean_h: PositiveTime = Field(description="Mean [time].")
    median_h: PositiveTime | None = Field(
        None, description="Of lognormal, instead of sigma: the median [time]."
    )

    @property
    def distribution(self) -> Distribution:
        """The same as the engines draw from it; a lognormal's mean / median is exp(sigma² / 2)."""
        spread = self.sigma or self.shape
        if self.median_h is not None:
            spread = sqrt(2.0 * log(self.mean_h / self.median_h))
        return with_mean(self.family, self.mean_h, spread)

    def problems(self) -> Iterator[tuple[str, str]]:
        """The parameters are those of the family; a median replaces sigma."""
        needed, has_median = PARAMETERS[self.family], self.median_h is not None
        if has_median and needed == ("sigma",):
            needed = ("median",)
        found = [*parameters(self, self.family, needed, ("shape", "sigma", "median"))]
        if self.median_h is not None and not self.median_h < self.mean_h:
            found.append(("median", "must be below the mean: a lognormal's median always is"))
        yield from found or _drawn(self, "median" if has_median else "")


Duration = Annotated[FixedTime | DurationSpec, OneOf("text", "section")]


def duration_of(spec: float | DurationSpec) -> Distribution | Constant:
    """A fixed time [h] or a time that varies, as the engines draw from it."""
    return spec.distribution if isinstance(spec, DurationSpec) else Constant(spec)


class Lifetime(Model):
    """Time between failures: a family with its mean, or a hazard that is constant between ages."""

    family: Literal[Family, "piecewise"] = Field(
        description="Distribution: exponential, gamma, weibull, lognormal, or piecewise (a hazard "
        "that is constant between ages)."
    )
    shape: Shape | None = Field(
        None, description="Shape of gamma or weibull, no unit; 1 is exponential, below 1 clusters."
    )
    sigma: Sigma = None
    mean_between_h: Mtbf | None = Field(
        None, alias="mtbf", description="Mean time between failures [time]; not of piecewise."
    )
    mtbf_95_h: Mtbf95 = None
    spread_95: Spread95 = None
    ages_h: Annotated[tuple[Age, ...], AT_MOST] | None = Field(
        None,
        description="Of piecewise: ages at which the hazard changes [time], the first of them 0 h.",
        examples=[["0 h", "12 h"]],
    )
    hazards_per_h: Annotated[tuple[Hazard, ...], AT_MOST] | None = Field(
        None,
        description="Of piecewise: the hazard from each of the ages on [failures per time].",
        examples=[["0.1 failures/h", "0.02 failures/h"]],
    )

    @property
    def spread(self) -> float | None:
        """The one parameter besides the mean: shape, or sigma; None for the others."""
        return self.sigma or self.shape

    @property
    def mtbf_h(self) -> float:
        """Mean time between failures [h]."""
        return self.mean_between_h or self.distribution.mean_h

    @property
    def mtbf_key(self) -> str:
        """The key that decides the mean."""
        return "hazards" if self.family == PIECEWISE else "mtbf"

    @property
    def distribution(self) -> Distribution:
        """The same as the engines draw from it."""
        if self.ages_h is not None and self.hazards_per_h is not None:
            return PiecewiseHazard(self.ages_h, self.hazards_per_h).simulable()
        return with_mean(self.family, self.mean_between_h or 0.0, self.spread)

    def problems(self) -> Iterator[tuple[str, str]]:
        """The parameters are those of the family."""
        is_piecewise, spread = self.family == PIECEWISE, PARAMETERS.get(self.family, ())
        needed = ("ages", "hazards") if is_piecewise else ("mtbf", *spread)
        others = ["mtbf", "shape", "sigma", "ages", "hazards"]
        others += ["mtbf_95"] * is_piecewise + ["spread_95"] * (not spread)
        found = [*parameters(self, self.family, needed, others)]
        yield from found or _drawn(self, needed[0])


def _drawn(section: DurationSpec | Lifetime, key: str) -> Iterator[tuple[str, str]]:
    """The engines can draw from it."""
    try:
        section.distribution  # noqa: B018
    except ParameterError as error:
        yield key, str(error)
