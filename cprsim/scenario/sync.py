"""The section `sync`: how the trainers stay in step with each other.

Zheng et al. 2020, "ShadowSync" (arXiv 2003.03477): every trainer has a replica of the dense weights
that its worker threads share without locks; the embedding tables exist once.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Annotated

from pydantic import Field

from cprsim.in_step.setting import Algorithm, Method, Stragglers, SyncSetting
from cprsim.scenario.distributions import Duration, DurationSpec, duration_of
from cprsim.scenario.quantities import Bandwidth, Model, OneOf, PositiveShare, PositiveTime, within
from cprsim.units import SHARE, SIZE, Quantity

DenseSize = Annotated[float, Quantity(SIZE, "1 B", "1000 GB", "8 MB")]
Portion = Annotated[float, Quantity(SHARE, "0 %", "90 %", "3 %")]
Iterations = Annotated[int, within(1, 10**9)]

OF_MEAN = (Algorithm.SHADOW_MA, Algorithm.SHADOW_BMUF)
ELASTIC = 0.5
ELASTIC_OF_MEAN = 0.1  # what workers learn during an AllReduce counts by 1 - elastic


Threads = Annotated[int, within(1, 1024)]
Every = Annotated[Iterations | PositiveTime, OneOf("number", "text")]


class StandIn(Model):
    """What `cprsim train` trains in step: threads scaled down as the batch of `kernel` is."""

    threads: Threads = Field(
        4,
        description="Worker threads of each trainer of the stand-in, a count. What a thread does "
        "every k iterations it then does every k x threads / `sync.threads`.",
    )
    warm_start_fraction: Portion = Field(
        0.0,
        description="Share of the clicks that one trainer trains first, alone; its model is what "
        "all replicas begin with; default 0 %.",
    )


class Sync(Model):
    """How the trainers stay in step: who synchronises when, through what."""

    algorithm: Algorithm = Field(
        description="shadow-easgd, shadow-ma, shadow-bmuf: in the background; fr-easgd, fr-ma, "
        "fr-bmuf: at a fixed rate (`every`), workers wait; sync-sgd: every iteration, all wait; "
        "none: replicas are averaged at the end."
    )
    threads: Threads = Field(
        24, description="Worker threads of each trainer, which share its replica; a count."
    )
    batch: Annotated[int, within(1, 10**7)] = Field(
        200, description="Samples of one iteration of one thread, a count."
    )
    iteration: Duration = Field(
        description="One iteration of one thread: a time or a distribution."
    )
    dense_size_bytes: DenseSize = Field(
        description="Bytes of the dense weights, which every trainer holds [size]."
    )
    servers: Annotated[int, within(1, 10_000)] | None = Field(
        None,
        description="Sync servers, over which the central copy of EASGD is spread; a count. With "
        "other algorithms they stand idle.",
    )
    server_bandwidth_bytes_per_h: Bandwidth | None = Field(
        None, description="Of each sync server [bandwidth]."
    )
    trainer_bandwidth_bytes_per_h: Bandwidth | None = Field(
        None, description="Of each trainer [bandwidth]; what averages over all of them needs it."
    )
    every: Every | None = Field(
        None,
        description="Of fixed-rate forms: iterations of a thread between two synchronisations, a "
        "count, or the time between them.",
    )
    elastic_given: PositiveShare | None = Field(
        None,
        alias="elastic",
        description="How far a synchronisation pulls a replica to the central copy or the mean "
        "(fr-ma and fr-bmuf always overwrite: 1); default 0.5, of shadow-ma and shadow-bmuf 0.1: "
        "of what their workers learn, 1 - elastic counts.",
    )
    momentum: float | None = Field(
        None, strict=True, ge=0, lt=1, description="Block momentum of BMUF; default 0."
    )
    block_rate: float | None = Field(
        None, strict=True, gt=0, le=10, description="Block learning rate of BMUF; default 1."
    )
    stragglers: Stragglers | None = Field(
        None, description="Trainers that are slower; absent: none."
    )
    shadow_cost_fraction: Portion = Field(
        0.0,
        description="Of the workers' speed, what the shadow thread beside them takes; default 0 %.",
    )

    stand_in: StandIn = Field(
        default_factory=StandIn, description="What `cprsim train` trains in step."
    )

    @property
    def elastic(self) -> float:
        """The elastic coefficient, by algorithm where none is given."""
        if self.elastic_given is not None:
            return self.elastic_given
        return ELASTIC_OF_MEAN if self.algorithm in OF_MEAN else ELASTIC

    def setting(self, n_trainers: int) -> SyncSetting:
        """How so many trainers stay in step, as plain numbers."""
        link = self.trainer_bandwidth_bytes_per_h
        n_servers = (self.servers or 0) if self.algorithm.has_servers else 0  # others stand idle
        return SyncSetting(
            algorithm=self.algorithm,
            n_trainers=n_trainers,
            n_threads=self.threads,
            batch=self.batch,
            iteration=duration_of(self.iteration),
            dense_bytes=self.dense_size_bytes,
            server_bandwidth_bytes_per_h=n_servers * (self.server_bandwidth_bytes_per_h or 0.0),
            n_servers=n_servers,
            trainer_bandwidth_bytes_per_h=inf if link is None else link,
            every_iterations=self.every if isinstance(self.every, int) else None,
            every_h=self.every if isinstance(self.every, float) else None,
            elastic=self.elastic,
            momentum=self.momentum or 0.0,
            block_rate=self.block_rate or 1.0,
            stragglers=self.stragglers,
            shadow_cost_fraction=self.shadow_cost_fraction,
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        """Every algorithm gets what it needs; servers and links may be there unused."""
        if not isinstance(self.iteration, DurationSpec) and self.iteration == 0:
            yield "iteration", "takes no time: write for example 43 ms"
        algorithm, given = self.algorithm, self.given
        if algorithm.has_servers:
            for key in {"servers", "server_bandwidth"} - given.keys():
                yield key, f"is missing: {algorithm} keeps its central copy on sync servers"
        if algorithm.at_fixed_rate and self.every is None:
            yield "every", f"is missing: {algorithm} synchronises at a fixed rate, such as 5"
        elif not algorithm.at_fixed_rate and self.every is not None:
            yield "every", f"is of fixed-rate forms (fr-...), {algorithm} has no rate"
        if algorithm.is_collective and self.trainer_bandwidth_bytes_per_h is None:
            yield "trainer_bandwidth", f"is missing: {algorithm} averages over it"
        if algorithm.method is not Method.BMUF:
            for key in {"momentum", "block_rate"} & given.keys():
                yield key, f"is of shadow-bmuf and fr-bmuf alone, not of {algorithm}"
        if algorithm in OF_MEAN and self.elastic == 1:
            yield "elastic", f"is 1: {algorithm} then undoes all that its workers learn; 0.1?"
