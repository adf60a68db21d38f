"""How long something lives: the family, its numbers, and the clock on which it ages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from cprsim.scenario.quantities import Mtbf, Quantity, Spread
from cprsim.units import HAZARD, TIME

PIECEWISE = "piecewise"
MAX_PIECES = 100

Clock = Annotated[
    Literal["progress", "uptime", "wall"],
    Field(
        description="Clock on which failures age: progress (only first-time useful work), uptime "
        "(everything but recovery) or wall (everything; failures strike anywhere).",
    ),
]
Start = Annotated[
    Literal["fresh", "stationary"],
    Field(
        description="Age at the start of the job: fresh (just renewed) or stationary (up for long)."
    ),
]
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
        Annotated[float, Field(strict=True, gt=0, le=1000)],
        Annotated[float, Field(strict=True, gt=0, le=1000)],
    ]
    | None,
    Field(
        description="95 % interval of shape or sigma, no unit; absent: taken as known.",
        examples=[[0.5, 0.9]],
    ),
]


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

    family: Literal["exponential", "gamma", "weibull", "lognormal", "piecewise"] = Field(
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
    def mtbf_h(self) -> float:
        """Mean time between failures [h]."""
        if self.ages_h is not None and self.hazards_per_h is not None:
            from cprsim.failures.piecewise import PiecewiseHazard  # costs 0.3 s; few need it

            return PiecewiseHazard(self.ages_h, self.hazards_per_h).mean_h
        assert self.mean_between_h is not None
        return self.mean_between_h

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
        for key, said in pieces.items():
            if said is not None:
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
