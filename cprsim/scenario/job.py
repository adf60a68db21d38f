"""The sections `job`, `simulation` and `fleet`: the useful work, replications, many such jobs."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Annotated, Generic, Literal, TypeVar

import numpy as np
from pydantic import Field
from scipy import special

from cprsim.records import Floats
from cprsim.scenario.quantities import (
    Bandwidth,
    Model,
    Mtbf,
    PositiveTime,
    Seed,
    ShardSize,
    Text,
    UsefulTime,
    parameters,
    within,
)
from cprsim.units import SHARE, THROUGHPUT, Quantity

Throughput = Annotated[float, Quantity(THROUGHPUT, "0.001 samples/s", "1e15 samples/s")]
Precision = Annotated[float, Quantity(SHARE, "0.01 %", "50 %")]
REPLICATIONS = 1000
MOST_REPLICATIONS = 10**7
EngineName = Literal["auto", "simpy"]


class Job(Model):
    """The useful work: hours at full speed, or samples and throughput."""

    useful_time_h: UsefulTime | None = Field(
        None, alias="useful", description="Useful work at full speed [time]."
    )
    samples: Annotated[float, within(1, 1e18)] | None = Field(
        None, description="Samples to train on, a count; needs `throughput`."
    )
    throughput_per_h: Throughput | None = Field(None, description="Samples per time at full speed.")
    step_h: PositiveTime | None = Field(
        None, description="A training step at full speed [time]; some recovery systems need it."
    )
    horizon_h: UsefulTime | None = Field(
        None, description="Wall time at which the job ends in any case [time]; absent: no limit."
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
            for key in {"samples", "throughput"} & set(self.given):
                yield key, "give either `useful`, or `samples` and `throughput`"
        elif self.samples is None or self.throughput_per_h is None:
            yield "useful", "is missing: give `useful: 50 h`, or `samples` and `throughput`"
        elif not 1 / 3600 <= self.useful_h <= 100_000:
            yield "samples", f"makes {self.useful_h:.3g} h of work; it must be 1 s to 100000 h"


class Simulation(Model):
    """How many replications, from which seed."""

    seed: Seed = Field(1, description="Seed of all random numbers, an integer.")
    precision_fraction: Precision | None = Field(
        None,
        description="Half-width of the 95 % interval of the overhead, in per cent of its mean; "
        "decides the number of replications.",
    )
    replications: Annotated[int, within(1, MOST_REPLICATIONS)] | None = Field(
        default_factory=lambda section: None if section.get("precision_fraction") else REPLICATIONS,
        description=f"Replications of the job, a count; default {REPLICATIONS}; or give "
        "`precision`.",
    )
    at_most: Annotated[int, within(100, MOST_REPLICATIONS)] | None = Field(
        default_factory=lambda section: 100_000 if section.get("precision_fraction") else None,
        description="With `precision`: replications at which to stop in any case; default 100000.",
    )
    engine: EngineName = Field(
        "auto", description="auto: the compiled loop; simpy: event by event; equal up to rounding."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        """The number of replications is said once."""
        if (self.replications is None) == (self.precision_fraction is None):
            yield "replications", "give either `replications` or `precision`"
        if self.at_most is not None and self.precision_fraction is None:
            yield "at_most", "goes with `precision`"


# ---------------------------------------------------------------------- fleets

MOST_JOBS = 1_000_000
MOST_KINDS = 2_000
MOST_NODES = 10_000_000
KINDS = 340  # of jobs, where a fleet does not say how many
Count = Annotated[int, within(1, MOST_NODES)]
Nodes = Annotated[int, within(0, MOST_NODES)]
Number = Annotated[float, within(1, 100_000)]
VaryFamily = Literal["lognormal", "log-uniform", "uniform"]
Sigma = Annotated[float, Field(strict=True, gt=0, le=5)]

Value = TypeVar("Value", bound=float)


class Varies(Model, Generic[Value]):
    """How one value differs from job to job."""

    family: VaryFamily = Field(
        description="lognormal (median, sigma), cut at low and high; log-uniform; uniform."
    )
    sigma: Sigma | None = Field(
        None, description="Of lognormal: standard deviation of the logarithm, no unit."
    )
    median: Value | None = Field(None, description="Of lognormal, before it is cut.")
    low: Value = Field(description="The least value.")
    high: Value = Field(description="The greatest value.")

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
        both = ("median", "sigma")
        needed = both if self.family == "lognormal" else ()
        yield from parameters(self, self.family, needed, both)
        if not self.low < self.high:
            yield "high", "must lie above low"


class VariesUseful(Varies[UsefulTime]):
    """How the useful time differs from job to job."""


class VariesShard(Varies[ShardSize]):
    """How the bytes on each server that holds state differ from job to job."""


class VariesMtbf(Varies[Mtbf]):
    """How the mean time between failures differs from job to job."""


class VariesNodes(Varies[Number]):
    """How the number of nodes differs from job to job."""


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

    window_h: UsefulTime = Field(
        720.0, description="Time in which the jobs arrive [time]; default 720 h."
    )
    jobs: Annotated[int, within(1, MOST_JOBS)] | None = Field(
        None, description="Jobs that arrive in the window, a count; or give `table`."
    )
    kinds: Annotated[int, within(1, MOST_KINDS)] | None = Field(
        None,
        description=f"Different jobs among them, a count; default {KINDS}. Each is there equally "
        "often, with failures of its own each time.",
    )
    table: Text | None = Field(
        None,
        description="CSV file with a line per job or kind of job, instead of `jobs` and `vary`: "
        "useful_h, and as wanted arrive_h, nodes, shard_gb, mtbf_h, jobs.",
    )
    vary: VarySection = Field(
        default_factory=VarySection, description="What differs from job to job."
    )
    arrivals: Literal["random", "even", "together"] = Field(
        "random", description="random in the window, at even distances, or together at its begin."
    )
    nodes: Count | None = Field(
        None, description="Nodes for jobs, a count; jobs queue as they arrive; absent: no limit."
    )
    spares: Nodes | None = Field(
        None,
        description="Nodes kept back for failures of all jobs, a count; absent: one is always "
        "free. A failed node comes back after `cluster.repair`.",
    )
    storage_bytes_per_h: Bandwidth | None = Field(
        None,
        description="Bandwidth that the saves and loads of all jobs share [bandwidth]; absent: "
        "each job has `storage.bandwidth` to itself.",
    )
    histories: Annotated[int, within(1, 10_000)] = Field(
        1, description="Histories of the whole fleet, a count; from 2 on they make the intervals."
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
            for key in [
                *(f"vary.{key}" for key in self.vary.given),
                *{"kinds"} & self.given.keys(),
            ]:
                yield key, "goes with `jobs`: a table says it of each"
