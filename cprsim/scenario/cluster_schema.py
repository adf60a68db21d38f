"""The section `cluster`: which nodes the job has and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from cprsim.scenario.costs_schema import Duration
from cprsim.scenario.failures_schema import ANY, EMB_PS, ROLE_NAME, TRAINER
from cprsim.scenario.quantities import MAX_NODES, Model, NodeCount, PositiveCount, Quantity
from cprsim.scenario.tables import Tables, tables_bytes
from cprsim.units import SIZE

ShardSize = Annotated[float, Quantity(SIZE, "1 B", "1000 PB", "50 GB")]
OtherRole = Annotated[str, Field(pattern=ROLE_NAME)]


class Cluster(Model):
    """The nodes of the job, its spares, and the bytes on its embedding servers."""

    trainers: NodeCount = Field(
        0, description="Trainers, each with a replica of the dense model; a count.", examples=[20]
    )
    emb_ps: PositiveCount = Field(
        description="Embedding parameter servers, each with a shard of the tables; a count.",
        examples=[18],
    )
    others: dict[OtherRole, PositiveCount] = Field(
        default_factory=dict,
        max_length=50,
        description="Further roles that hold nothing (readers, masters): nodes of each.",
        examples=[{"reader": 10}],
    )
    spares: NodeCount | None = Field(
        None, description="Spare nodes, a count; absent: one is always free.", examples=[4]
    )
    repair: Duration | None = Field(
        None,
        description="Until a failed node is back among the spares: a time or a distribution.",
        examples=[{"family": "lognormal", "mean": "5.9 h", "median": "1 h"}],
    )
    tables: Tables | None = Field(
        None,
        description="Embedding tables, spread evenly over the embedding servers: a preset or a "
        "list of {rows, dimension}; or give `shard_size`.",
    )
    shard_size_bytes: ShardSize | None = Field(
        None,
        alias="shard_size",
        description="Bytes on each embedding server [size]; or give `tables`.",
    )

    @property
    def shard_bytes(self) -> float | None:
        """Bytes on each embedding server; None where the scenario does not say."""
        if self.tables is not None:
            return tables_bytes(self.tables) / self.emb_ps
        return self.shard_size_bytes

    @property
    def n_nodes_of(self) -> dict[str, int]:
        """Nodes of each role, and of `any`."""
        roles = {EMB_PS: self.emb_ps, TRAINER: self.trainers, **self.others}
        return {**roles, ANY: sum(roles.values())}

    def problems(self) -> Iterator[tuple[str, str]]:
        """Sizes are said once, names are free, the sum is within reason."""
        if self.tables is not None and self.shard_size_bytes is not None:
            yield "shard_size", "give either `tables` or `shard_size`, not both"
        for name in self.others:
            if name in (EMB_PS, TRAINER, "trainers", ANY):
                yield (
                    f"others.{name}",
                    "is the name of a role that every cluster has; choose another",
                )
        if self.n_nodes_of[ANY] > MAX_NODES:
            yield "", f"has {self.n_nodes_of[ANY]} nodes; at most {MAX_NODES} are possible"
