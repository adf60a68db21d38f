"""Failures of kind `correlated`: nodes that differ, and failures that come together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from cprsim.scenario.lifetimes import Clock, Mtbf95, Spread95, Start, intervals_agree
from cprsim.scenario.quantities import MAX_NODES, Model, Mtbf, PositiveCount, Quantity
from cprsim.units import SHARE, TIME

MAX_SIZES = 1000

Share = Annotated[float, Quantity(SHARE, "0.001 %", "99.999 %", "10 %")]
Watched = Annotated[float, Quantity(TIME, "0 h", "1000000 h", "349 d")]


class Gamma(Model):
    """Every node has a factor on its hazard, drawn from a gamma distribution with mean 1."""

    shape: float = Field(
        strict=True,
        ge=0.01,
        le=100,
        description="Shape of the factors, no unit; their variance is 1 / shape.",
        examples=[0.8],
    )


class Lemons(Model):
    """A share of the nodes fails more often."""

    share_fraction: Share = Field(alias="share", description="Share of such nodes [per cent].")
    factor: float = Field(
        strict=True,
        ge=1e-6,
        le=1e6,
        description="Their hazard over that of the others, no unit.",
        examples=[5.6],
    )


class Shocks(Model):
    """Events that strike several nodes at once."""

    every_h: Mtbf = Field(
        alias="every", description="Mean time between them in the cluster that was watched [time]."
    )
    sizes: dict[
        Annotated[int, Field(ge=1, le=MAX_NODES)], Annotated[float, Field(strict=True, gt=0)]
    ] = Field(
        min_length=1,
        max_length=MAX_SIZES,
        description="Nodes struck at once, and how often that was seen (a count, or any weight).",
        examples=[{2: 20, 3: 5}],
    )
    nodes: PositiveCount = Field(
        description="Nodes of the cluster that was watched; the job has some of them, at random."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        """No shock strikes more nodes than there are."""
        for size in self.sizes:
            if size > self.nodes:
                yield f"sizes.{size}", f"there are only {self.nodes} nodes to be struck"


class CorrelatedFailures(Model):
    """Nodes with Weibull lifetimes that differ, and shocks besides; all nodes of the job."""

    kind: Literal["correlated"] = Field(
        description="A clock for every node, each with its own hazard, and shocks besides."
    )
    family: Literal["weibull"] = Field("weibull", description="Of the lifetimes: weibull.")
    mtbf_h: Mtbf = Field(
        alias="mtbf", description="Mean time between failures of a node with the factor 1 [time]."
    )
    shape: float = Field(
        strict=True,
        ge=0.1,
        le=100,
        description="Shape of the lifetimes, no unit; 1 is exponential, below 1 clusters.",
        examples=[0.39],
    )
    mtbf_95_h: Mtbf95 = None
    spread_95: Spread95 = None
    frailty: Gamma | None = Field(
        None, description="Spread of the factors on the nodes' hazards; absent: all are 1."
    )
    lemons: Lemons | None = Field(
        None, description="A share of the nodes that fails more often; absent: none."
    )
    shocks: Shocks | None = Field(
        None, description="Failures of several nodes at once; absent: none."
    )
    start: Start = "stationary"
    watched_h: Watched = Field(
        0.0,
        alias="watched",
        description="The job starts at a random instant of so long a time after `start` [time]: "
        "the length of the log that was fitted; default 0 h.",
    )
    clock: Clock = "wall"

    def problems(self) -> Iterator[tuple[str, str]]:
        """Intervals are intervals."""
        yield from intervals_agree(self.mtbf_95_h, self.spread_95, self.shape)
