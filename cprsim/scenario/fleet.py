"""The section `fleet`: many jobs like the scenario's on one cluster, and what they share."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from scipy import special

from cprsim.records import Floats
from cprsim.scenario.quantities import Bandwidth, Model, Mtbf, ShardSize, UsefulTime
from cprsim.units import TIME, Quantity

MOST_JOBS = 1_000_000
MOST_KINDS = 2_000
MOST_NODES = 10_000_000
KINDS = 340  # of jobs, where a fleet does not say how many
Window = Annotated[float, Quantity(TIME, "1 h", "100000 h", "720 h")]
Count = Annotated[int, Field(strict=True, ge=1, le=MOST_NODES)]
Nodes = Annotated[int, Field(strict=True, ge=0, le=MOST_NODES)]
Number = Annotated[float, Field(strict=True, ge=1, le=100_000)]
VaryFamily = Literal["lognormal", "log-uniform", "uniform"]
Sigma = Annotated[float, Field(strict=True, gt=0, le=5)]

_FAMILY = "lognormal (median, sigma), cut at low and high; log-uniform; uniform."
_MEDIAN = "Of lognormal, before it is cut."
_SIGMA = "Of lognormal: standard deviation of the logarithm, no unit."


class _Varies(Model):
    """How one value differs from job to job; those who inherit this say its unit."""

    family: VaryFamily = Field(description=_FAMILY)
    sigma: Sigma | None = Field(None, description=_SIGMA)
    median: float | None = None
    low: float
    high: float

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Independent values (n,), in the unit inside."""
        u = rng.random(n)
        if self.family == "uniform":
            return self.low + u * (self.high - self.low)
        if self.family == "log-uniform":
            return np.exp(log(self.low) + u * log(self.high / self.low))
        assert self.median is not None, "lognormal has a median, and a sigma"
        assert self.sigma is not None
        ends = [log(end / self.median) / self.sigma for end in (self.low, self.high)]
        below, above = special.ndtr(ends)
        normal = special.ndtri(below + u * (above - below))
        values: Floats = self.median * np.exp(self.sigma * normal)
        return values

    def problems(self) -> Iterator[tuple[str, str]]:
        """The parameters are those of the family, and low lies below high."""
        for key, given in (("median", self.median), ("sigma", self.sigma)):
            if self.family == "lognormal" and given is None:
                yield key, "is missing: lognormal needs it"
            if self.family != "lognormal" and given is not None:
                yield key, f"is no parameter of {self.family}, which takes low and high"
        if not self.low < self.high:
            yield "high", "must lie above low"


class VariesUseful(_Varies):
    """How the useful time differs from job to job."""

    median: UsefulTime | None = Field(None, description=_MEDIAN)
    low: UsefulTime = Field(description="The least [time].")
    high: UsefulTime = Field(description="The most [time].")


class VariesShard(_Varies):
    """How the bytes on each server that holds state differ from job to job."""

    median: ShardSize | None = Field(None, description=_MEDIAN)
    low: ShardSize = Field(description="The least [size].")
    high: ShardSize = Field(description="The most [size].")


class VariesMtbf(_Varies):
    """How the mean time between failures differs from job to job."""

    median: Mtbf | None = Field(None, description=_MEDIAN)
    low: Mtbf = Field(description="The least [time].")
    high: Mtbf = Field(description="The most [time].")


class VariesNodes(_Varies):
    """How the number of nodes differs from job to job."""

    median: Number | None = Field(None, description=_MEDIAN)
    low: Number = Field(description="The fewest, a count.")
    high: Number = Field(description="The most, a count.")


class VarySection(Model):
    """What differs from job to job, each value independently of the others."""

    useful: VariesUseful | None = Field(None, description="job.useful of each job.")
    shard_size: VariesShard | None = Field(
        None, description="cluster.shard_size of each job, or cluster.state."
    )
    mtbf: VariesMtbf | None = Field(None, description="failures.mtbf of each job.")
    nodes: VariesNodes | None = Field(
        None,
        description="Nodes of each job; the roles keep their shares. The MTBF of a job falls as "
        "one over its nodes: where only one of the two is here, the other follows from it, so that "
        "the scenario's own job keeps both of its values.",
    )


class Fleet(Model):
    """Many jobs on one cluster; the scenario says what a typical one is."""

    window_h: Window = Field(
        720.0, alias="window", description="Time in which the jobs arrive [time]; default 720 h."
    )
    jobs: Annotated[int, Field(strict=True, ge=1, le=MOST_JOBS)] | None = Field(
        None, description="Jobs that arrive in the window, a count; or give `table`."
    )
    kinds: Annotated[int, Field(strict=True, ge=1, le=MOST_KINDS)] | None = Field(
        None,
        description=f"Different jobs among them, a count; default {KINDS}. Each is there equally "
        "often, with failures of its own each time.",
    )
    table: str | None = Field(
        None,
        strict=True,
        min_length=1,
        max_length=500,
        description="CSV file with a line per job or kind of job, instead of `jobs` and `vary`: "
        "useful_h, and as wanted arrive_h, nodes, shard_gb, mtbf_h, jobs.",
    )
    vary: VarySection = Field(
        default_factory=lambda: VarySection.model_validate({}),
        description="What differs from job to job.",
    )
    arrivals: Literal["random", "even", "together"] = Field(
        "random",
        description="random: at random instants of the window; even: at equal distances; together: "
        "all at its begin.",
    )
    nodes: Count | None = Field(
        None,
        description="Nodes for jobs, a count: jobs start in the order of their arrival, as soon as "
        "enough are free; absent: without limit.",
    )
    spares: Nodes | None = Field(
        None,
        description="Nodes kept back for failures of all jobs, a count; absent: one is always "
        "free. A failed node comes back after `cluster.repair`.",
    )
    storage_bytes_per_h: Bandwidth | None = Field(
        None,
        alias="storage",
        description="Bandwidth that the saves and loads of all jobs share [bandwidth]; absent: "
        "each job has `storage.bandwidth` to itself.",
    )
    histories: Annotated[int, Field(strict=True, ge=1, le=10_000)] = Field(
        1,
        description="Histories of the whole fleet, a count; from 2 on they make the intervals, "
        "else the kinds of jobs do.",
    )

    @property
    def n_kinds(self) -> int:
        """Different jobs, where they are drawn."""
        return min(self.kinds or KINDS, self.jobs or KINDS)

    def problems(self) -> Iterator[tuple[str, str]]:
        """The number of jobs is given once."""
        if (self.jobs is None) == (self.table is None):
            yield "jobs", "give either `jobs`, how many there are, or `table`, a file with them"
        if self.table is not None:
            for key in ("useful", "shard_size", "mtbf", "nodes"):
                if getattr(self.vary, key) is not None:
                    yield f"vary.{key}", "goes with `jobs`; in a table each job says its own"
            if self.kinds is not None:
                yield "kinds", "goes with `jobs`; a table has a kind per line"
