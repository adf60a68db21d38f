"""The section `cluster`: which nodes the job has and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from cprsim import records
from cprsim.kernel.shape import PRESETS as SHAPES
from cprsim.records import Holds, Role
from cprsim.scenario.distributions import Duration, duration_of
from cprsim.scenario.failures import ANY, EMB_PS, ROLE_NAME, SYNC_PS, TRAINER, WORKER
from cprsim.scenario.quantities import (
    MAX_NODES,
    Bandwidth,
    Model,
    NodeCount,
    PositiveCount,
    ShardSize,
)
from cprsim.scenario.sync import Sync

OtherRole = Annotated[str, Field(pattern=ROLE_NAME)]


class Table(Model):
    """One embedding table."""

    rows: int = Field(strict=True, ge=1, le=10**13, description="Rows of the table, a count.")
    dimension: int = Field(strict=True, ge=1, le=10**6, description="Numbers per row, a count.")
    bytes_per_value: int = Field(
        4, strict=True, ge=1, le=16, description="Bytes per number: 4 for float32, 2 for float16."
    )

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole table."""
        return self.rows * self.dimension * self.bytes_per_value


# Of DLRM's two public reference models, `published` with the reference scripts
# (facebookresearch/dlrm), in float32. Terabyte: capped at 10 M rows, 0.875 sub-sampling.
PRESETS: dict[str, tuple[Table, ...]] = {
    name: tuple(Table(rows=rows, dimension=shape.dimension) for rows in shape.tables.rows)
    for name, shape in SHAPES.items()
}
Preset = Literal["criteo-kaggle", "criteo-terabyte"]


def _written_as(tables: Any) -> str:
    return "as:preset" if isinstance(tables, str) else "as:list"


Tables = Annotated[
    Annotated[Preset, Tag("as:preset")]
    | Annotated[tuple[Table, ...], Field(min_length=1, max_length=1_000), Tag("as:list")],
    Discriminator(_written_as),
]


def tables_bytes(tables: str | tuple[Table, ...]) -> int:
    """Bytes of all tables together; a name stands for the preset's."""
    return sum(
        table.size_bytes for table in (PRESETS[tables] if isinstance(tables, str) else tables)
    )


class Cluster(Model):
    """The nodes of the job, its spares, and the bytes on its embedding servers."""

    trainers: NodeCount = Field(
        0, description="Trainers, each with a replica of the dense model; a count.", examples=[20]
    )
    emb_ps: NodeCount = Field(
        0,
        description="Embedding parameter servers, each with a shard of the tables; a count. Or "
        "give `workers`.",
        examples=[18],
    )
    workers: NodeCount = Field(
        0,
        description="Nodes of a job without parameter servers, each with its part of the model's "
        "state: data, tensor, pipeline or expert parallel alike; a count.",
        examples=[128],
    )
    state_bytes: ShardSize | None = Field(
        None,
        alias="state",
        description="What each worker saves and loads [size]: parameters and optimizer state.",
    )
    link_bytes_per_h: Bandwidth | None = Field(
        None, alias="link", description="Of one node's link to the others [bandwidth]."
    )
    rack: PositiveCount | None = Field(
        None, description="Neighbouring nodes that share a rack, a count; for failures of racks."
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
        if self.workers:
            return self.state_bytes
        if self.tables is not None:
            return tables_bytes(self.tables) / self.emb_ps
        return self.shard_size_bytes

    @property
    def state_role(self) -> str:
        """The role whose nodes hold the state, each its own part."""
        return WORKER if self.workers else EMB_PS

    @property
    def n_nodes_of(self) -> dict[str, int]:
        """Nodes of each role, and of `any`."""
        state = {WORKER: self.workers} if self.workers else {EMB_PS: self.emb_ps}
        roles = {**state, TRAINER: self.trainers, **self.others}
        return {**roles, ANY: sum(roles.values())}

    def problems(self) -> Iterator[tuple[str, str]]:
        """Sizes are said once, names are free, the sum is within reason."""
        if self.tables is not None and self.shard_size_bytes is not None:
            yield "shard_size", "give either `tables` or `shard_size`, not both"
        if bool(self.emb_ps) == bool(self.workers):
            yield "emb_ps", "give either `emb_ps` (embedding servers) or `workers`, and at least 1"
        if self.workers:
            for key, given in (("tables", self.tables), ("shard_size", self.shard_size_bytes)):
                if given is not None:
                    yield key, "goes with `emb_ps`; of workers give `state`"
        elif self.state_bytes is not None:
            yield "state", "goes with `workers`; of embedding servers give `shard_size` or `tables`"
        for name in self.others:
            if name in (EMB_PS, WORKER, TRAINER, "trainers", ANY):
                yield (
                    f"others.{name}",
                    "is the name of a role that every cluster has; choose another",
                )
        if self.n_nodes_of[ANY] > MAX_NODES:
            yield "", f"has {self.n_nodes_of[ANY]} nodes; at most {MAX_NODES} are possible"

    def record(self, sync: Sync | None) -> records.Cluster:
        """The nodes as the engines take them, those who keep the trainers in step included."""
        go_on = sync is not None and not sync.form.holds_all_up
        roles = [Role(self.state_role, self.n_nodes_of[self.state_role], Holds.SHARD)]
        if self.trainers:
            roles.append(Role(TRAINER, self.trainers, Holds.REPLICA, go_on))
        roles += [Role(name, n, Holds.NOTHING) for name, n in self.others.items()]
        if sync is not None and (servers := sync.server_role(SYNC_PS)) is not None:
            roles.append(servers)
        repair = None if self.repair is None else duration_of(self.repair)
        return records.Cluster(tuple(roles), self.spares, repair)
