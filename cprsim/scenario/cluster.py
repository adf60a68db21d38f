"""The sections `cluster`, `storage` and `costs`: nodes, and the costs of saves and recovery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from cprsim.files.units import SHARE, SIZE, TIME, Quantity
from cprsim.job.distributions import Constant
from cprsim.job.model_shape import MODEL_PRESETS
from cprsim.job.policy import MOST_GENERATIONS
from cprsim.job.records import MAX_NODES, STATE, Attempts, OverLink, Reliability, Storage
from cprsim.job.records import Duration as JobDuration
from cprsim.scenario.failures import ANY, EMB_PS, TRAINER, WORKER, RoleKey
from cprsim.scenario.quantities import (
    OR_DISTRIBUTION,
    Bandwidth,
    Duration,
    DurationSpec,
    MixSpec,
    Model,
    NodeCount,
    PositiveCount,
    PositiveShare,
    ShardSize,
    duration_of,
    one_of,
    within,
)


class TableSection(Model):
    """One embedding table."""

    rows: int = Field(strict=True, ge=1, le=10**13, description="Rows of the table, a count.")
    dimension: int = Field(strict=True, ge=1, le=10**6, description="Numbers per row, a count.")
    bytes_per_value: int = Field(
        4, strict=True, ge=1, le=16, description="Bytes per number: 4 for float32, 2 for float16."
    )


Preset = Literal["criteo-kaggle", "criteo-terabyte"]  # the names of `MODEL_PRESETS`
TableList = Annotated[tuple[TableSection, ...], Field(min_length=1, max_length=1_000)]
Tables = Annotated[Preset | TableList, one_of("text", "list")]


def tables_bytes(tables: str | tuple[TableSection, ...]) -> int:
    """Bytes of all tables together, given as a list or as the name of a preset."""
    if isinstance(tables, str):
        return MODEL_PRESETS[tables].table_bytes
    return sum(table.rows * table.dimension * table.bytes_per_value for table in tables)


MOST_AWRY = 1e-6  # that shares of accesses may miss 1 by
STATE_OF = {  # how the state is given, by what holds it
    EMB_PS: "`shard_size` or `tables`", "workers": "`state`", "roles": "the `state` of each"
}  # fmt: skip


class ShardsSection(Model):
    """Some embedding servers that hold as much, and are asked as often, as each other."""

    servers: PositiveCount = Field(description="Embedding servers, a count.")
    size_bytes: ShardSize = Field(description="Bytes on each of them [size].")
    access: PositiveShare | None = Field(
        None, description="Share of the look-ups that goes to each, no unit; absent: all alike."
    )


class StatefulRole(Model):
    """Nodes that each hold a part of the model's state."""

    nodes: PositiveCount = Field(description="Nodes of the role, a count.")
    state_bytes: ShardSize = Field(description="Saved state of each node [size].")


class ClusterSection(Model):
    """The nodes of the job, its spares, and the bytes on its embedding servers."""

    trainers: NodeCount = Field(
        0, description="Trainers, each with a replica of the dense model; a count."
    )
    emb_ps: NodeCount = Field(
        0, description="Embedding parameter servers, a count, each with a shard; or give `workers`."
    )
    workers: NodeCount = Field(
        0,
        description="Nodes of a job without parameter servers, each with its part of the model's "
        "state: data, tensor, pipeline or expert parallel alike; a count.",
    )
    roles: dict[RoleKey, StatefulRole] = Field(
        default_factory=dict,
        description="Instead of `workers`, roles whose nodes hold different amounts of state, such "
        "as pipeline stages and expert slots: {nodes, state} of each.",
        examples=[{"stage": {"nodes": 64, "state": "40 GB"}}],
    )
    state_bytes: ShardSize | None = Field(
        None, description="Saved state of each worker [size]: parameters and optimizer state."
    )
    replicas: PositiveCount = Field(
        1,
        description="Data-parallel replicas of the state among the workers, a count: each replica "
        "lies on `workers`/`replicas` nodes. 1: each part of the state exists once. A save "
        "moves the state of each node.",
    )
    link_bytes_per_h: Bandwidth | None = Field(
        None, description="Of one node's link to the others [bandwidth]."
    )
    links: dict[RoleKey, Bandwidth] = Field(
        default_factory=dict,
        description="Further links of a node by name, such as to its host memory or disk "
        "[bandwidth]; costs name them: `stall: {link: pcie}`.",
        examples=[{"pcie": "25 GB/s"}],
    )
    memory_bytes: ShardSize | None = Field(
        None,
        description="Memory of a node that copies of the state may take [size]; absent: as much as "
        "a recovery system needs.",
    )
    rack: PositiveCount | None = Field(
        None, description="Neighbouring nodes that share a rack, a count; for failures of racks."
    )
    others: dict[RoleKey, PositiveCount] = Field(
        default_factory=dict,
        description="Further roles that hold nothing (readers, masters): nodes of each.",
        examples=[{"reader": 10}],
    )
    spares: NodeCount | None = Field(
        None, description="Spare nodes, a count; absent: one is always free."
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
        None, description="Bytes on each embedding server [size]; or give `tables`."
    )
    shards: tuple[ShardsSection, ...] = Field(
        (),
        max_length=1_000,
        description="Instead of `shard_size`, embedding servers that hold different amounts or are "
        "asked differently often, in their order: {servers, size, access}.",
        examples=[[{"servers": 2, "size": "90 GB", "access": 0.3}]],
    )

    @property
    def nodes_and_bytes(self) -> list[tuple[int, float]]:
        """Nodes that hold state and the bytes on each, in order; empty without sizes."""
        if self.roles:
            return [(role.nodes, role.state_bytes) for role in self.roles.values()]
        if self.shards:
            return [(shards.servers, shards.size_bytes) for shards in self.shards]
        node_bytes = self.state_bytes if self.workers else self.shard_size_bytes
        if self.tables is not None and not self.workers:
            node_bytes = tables_bytes(self.tables) / self.emb_ps
        return [] if node_bytes is None else [(self.workers or self.emb_ps, node_bytes)]

    @property
    def shard_bytes(self) -> float | None:
        """Mean bytes on each node that holds state; None if the scenario does not give sizes."""
        if len(self.nodes_and_bytes) < 2:
            return self.largest_bytes
        n_nodes = sum(n for n, _ in self.nodes_and_bytes)
        return sum(n * size for n, size in self.nodes_and_bytes) / n_nodes

    @property
    def largest_bytes(self) -> float | None:
        """Bytes on the node that holds most; None if the scenario does not give sizes."""
        return max((size for _, size in self.nodes_and_bytes), default=None)

    @property
    def state_said(self) -> str:
        """Size of the state in all and on one node, in words; empty if it is not given."""
        n_nodes, node_bytes = self.n_nodes_of[self.state_role], self.shard_bytes
        if node_bytes is None:
            return ""
        sizes = node_bytes, n_nodes * node_bytes
        on_node, in_all = (SIZE.format(float(f"{size:.3g}")) for size in sizes)
        return f"state of {in_all} in all, {on_node} on each of {n_nodes} nodes"

    @property
    def accesses(self) -> tuple[float, ...]:
        """Share of the look-ups of each embedding server; empty where all are alike."""
        return tuple(
            s.access for s in self.shards if s.access is not None for _ in range(s.servers)
        )

    @property
    def state_role(self) -> str:
        """The role whose nodes hold the state, each its own part; `state` for several roles."""
        if self.roles:
            return STATE
        return WORKER if self.workers else EMB_PS

    @property
    def n_nodes_of_stateful(self) -> dict[str, int]:
        if self.roles:
            return {name: role.nodes for name, role in self.roles.items()}
        return {WORKER: self.workers} if self.workers else {EMB_PS: self.emb_ps}

    @property
    def n_nodes_of(self) -> dict[str, int]:
        """Nodes of each role, of `any`, and of `state` where several roles hold it."""
        stateful = self.n_nodes_of_stateful
        roles = {**stateful, TRAINER: self.trainers, **self.others}
        of_state = {STATE: sum(stateful.values())} if self.roles else {}
        return {**roles, **of_state, ANY: sum(roles.values())}

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.tables is not None and self.shard_size_bytes is not None:
            yield "shard_size", "give either `tables` or `shard_size`, not both"
        holders = [key for key in STATE_OF if getattr(self, key)]
        if len(holders) != 1:
            message = "give one of `emb_ps` (embedding servers), `workers` and `roles`"
            yield "emb_ps", f"{message}, and at least 1"
        for key, holder in {"tables": EMB_PS, "shard_size": EMB_PS, "state": "workers"}.items():
            if key in self.given and len(holders) == 1 and holder not in holders:
                yield key, f"goes with `{holder}`; of `{holders[0]}` give {STATE_OF[holders[0]]}"
        if self.replicas > 1 and not self.workers:
            yield "replicas", "goes with `workers`: shards of embedding servers exist once"
        elif self.workers % self.replicas:
            yield "replicas", f"is {self.replicas}; it must divide the {self.workers} workers"
        for name in {EMB_PS, WORKER, TRAINER, "trainers", ANY, STATE} & {*self.roles, *self.others}:
            section = "roles" if name in self.roles else "others"
            yield f"{section}.{name}", "is a name that has a meaning; choose another"
        for name in set(self.roles) & set(self.others):
            yield f"others.{name}", "is one of `roles` already; choose another name"
        if self.n_nodes_of[ANY] > MAX_NODES:
            yield "", f"has {self.n_nodes_of[ANY]} nodes; at most {MAX_NODES} are possible"
        n_servers, accesses = sum(shards.servers for shards in self.shards), self.accesses
        if self.shards and {"tables", "shard_size"} & self.given.keys():
            yield "shards", "give the sizes already: leave out `tables` and `shard_size`"
        if self.shards and n_servers != self.emb_ps:
            yield "shards", f"are on {n_servers} servers, and `emb_ps` is {self.emb_ps}"
        elif accesses and len(accesses) < n_servers:
            yield "shards", "have an `access` for some: give it for all, or for none"
        elif accesses and abs(sum(accesses) - 1.0) > MOST_AWRY:
            in_all = f"are asked for {sum(accesses):.6g} of the look-ups in all"
            yield "shards", f"{in_all}, which should be 1: `access` is of each server"


OR_TRANSFER = f", or `transfer`{OR_DISTRIBUTION}"
TransferTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", OR_TRANSFER)]
Chance = Annotated[float, Quantity(SHARE, "0 %", "50 %", "1 %")]
FailingShare = Annotated[float, Quantity(SHARE, "0 %", "99 %", "30 %", or_number=True)]


Cost = Annotated[
    TransferTime | DurationSpec | MixSpec | OverLink | Literal["transfer"],
    one_of("text", "section", "mix", "link", "word", words=["transfer"]),
]


class StorageSection(Model):
    """Storage of checkpoints; the servers of a save, and loads, share its bandwidth evenly."""

    bandwidth_bytes_per_h: Bandwidth = Field(description="Of the storage as a whole [bandwidth].")
    per_server_bytes_per_h: Bandwidth | None = Field(
        None, description="Of each server's own link [bandwidth]; absent: unlimited."
    )


class SaveCost(Model):
    """Cost of a save: it stalls the job, and may continue in the background of the training."""

    stall: Cost = Field(
        description="How long it stalls the job; `transfer`: bytes per server over bandwidth."
    )
    background: Cost | None = Field(
        None, description="Time in the background until the save is valid; absent: none."
    )
    fails_fraction: Chance = Field(
        0.0, description="Probability that a save fails [per cent]; default 0."
    )
    corrupt_fraction: Chance = Field(
        0.0, description="Probability that a load finds the save corrupt [per cent]; default 0."
    )
    kept: Annotated[int, within(1, MOST_GENERATIONS)] = Field(
        1, description="Saves that the storage keeps; an older one is loaded if a newer is corrupt."
    )


def _stall_alone(save: Any) -> Any:
    """`save: 94 s`, and a distribution in its place, are short for `{stall: ...}`."""
    is_section = isinstance(save, SaveCost) or (
        isinstance(save, dict) and not ({"family", "mean", "mix", "link"} & set(save))
    )
    return save if is_section else {"stall": save}


Save = Annotated[SaveCost, BeforeValidator(_stall_alone, json_schema_input_type=Cost | SaveCost)]


class RestartSection(Model):
    """Attempts to restart that fail; a failed one costs its stages from `reschedule` on."""

    fails_fraction: FailingShare = Field(
        description="Share of attempts that fail, each independently [per cent, or a number]."
    )
    retry: Duration = Field(
        0.0, description="Pause before the next attempt: a time or a distribution; default 0 s."
    )
    gives_up_after: PositiveCount | None = Field(
        None, description="Failed attempts in a row after which a person is needed, a count."
    )
    operator: Duration | None = Field(
        None, description="The pause until a person has come: a time or a distribution."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if (self.operator is None) != (self.gives_up_after is None):
            missing = "operator" if self.operator is None else "gives_up_after"
            yield missing, "is missing: `gives_up_after` and `operator` go together"


class CostsSection(Model):
    """Costs of one save, load, detection and rescheduling."""

    save: Save = Field(
        description="A time, a distribution, `transfer`, or {stall: ..., background: ...}."
    )
    load: Cost = Field(
        description="Loading state after a failure: a time, a distribution, or `transfer`."
    )
    detect: Duration = Field(
        0.0, description="Until a failure is noticed: a time or a distribution; default 0 s."
    )
    reschedule: Duration = Field(
        0.0, description="Until the replacement runs, with teardown and relaunch; default 0 s."
    )
    warmup: Duration | None = Field(
        None,
        description="After a restart, time without progress that lasts: compilation, caches.",
        examples=["130 s"],
    )
    restart: RestartSection | None = Field(
        None, description="Attempts to restart that fail; absent: all succeed."
    )


AS_THERE = "As in the section `costs`; absent: the value there."


class OwnCosts(Model):
    """Costs of one strategy that differ from the section `costs`."""

    save: Save | None = Field(None, description=AS_THERE)
    load: Cost | None = Field(None, description=AS_THERE)
    detect: Duration | None = Field(None, description=AS_THERE)
    reschedule: Duration | None = Field(None, description=AS_THERE)
    warmup: Duration | None = Field(None, description=AS_THERE)
    restart: RestartSection | None = Field(None, description=AS_THERE)

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.given:
            yield "", f"says nothing: give {', '.join(type(self).model_fields)}, or leave it out"


def given_costs(
    section: CostsSection | OwnCosts, cluster: ClusterSection, storage: Storage | None
) -> dict[str, Any]:
    """Arguments of the record of costs, for the keys that a section gives."""

    def cost(spec: Any) -> JobDuration | Storage | None:
        if isinstance(spec, OverLink):
            return Constant((cluster.largest_bytes or 0.0) / cluster.links[spec.link])
        return storage if isinstance(spec, str) else duration_of(spec)

    times = {key: spec for key, spec in section.given.items() if key not in ("restart", "save")}
    costs: dict[str, Any] = {key: cost(spec) for key, spec in times.items()}
    if (of := section.restart) is not None:
        person = None if of.operator is None else duration_of(of.operator)
        retry, after = duration_of(of.retry), of.gives_up_after or 0
        costs["restart"] = Attempts(of.fails_fraction, retry, after, person)
    if (save := section.save) is not None:
        costs["save_stall"] = cost(save.stall)
        costs["save_background"] = None if save.background is None else cost(save.background)
        costs["reliability"] = Reliability(save.fails_fraction, save.corrupt_fraction, save.kept)
    return costs
