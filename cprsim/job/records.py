"""The records that the stages hand on: frozen, named by the field, read by whoever comes later.

    Cluster, Costs, Policy ─┐
    FailureTrace ───────────┴─> EventLog ──> CostBreakdown, ShardLoss

Units stand in the names: `_h` hours, `_at_h` or `at_h` an instant on a named clock, `_bytes` bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum, StrEnum
from itertools import pairwise
from math import inf, isfinite, nan, sqrt
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from cprsim.files import OMITTED, Endless, Number, stated

MAX_NODES = 100_000  # of a job
S_PER_H = 3600.0
DAY_H = 24.0
WEEK_H = 168.0
STOPPED_BEYOND = 100.0  # times the useful time: a replication that takes longer is given up

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Clock(StrEnum):
    """The clock on which failures age (docs/model.md, section 2)."""

    PROGRESS = "progress"  # only work done for the first time ages
    UPTIME = "uptime"  # everything but recovery ages: no failure strikes while recovering
    WALL = "wall"  # everything ages: failures strike anywhere


class Method(StrEnum):
    """Method by which a synchronisation changes the dense weights."""

    EASGD = "easgd"  # a trainer and the central copy pull each other closer
    MA = "ma"  # all trainers move to their mean
    BMUF = "bmuf"  # the mean moves a central copy with momentum, and that moves the trainers
    SGD = "sgd"  # all gradients of an iteration are averaged before any trainer goes on
    NONE = "none"  # no trainer synchronises; replicas are averaged at the end


class Algorithm(StrEnum):
    """A synchronisation method, and its schedule.

    Shadow forms run continuously in the background of the training; fixed-rate forms (`fr`) block
    the worker threads. Source: Zheng et al. 2020 (arXiv 2003.03477).
    """

    SHADOW_EASGD = "shadow-easgd"
    SHADOW_MA = "shadow-ma"
    SHADOW_BMUF = "shadow-bmuf"
    FR_EASGD = "fr-easgd"
    FR_MA = "fr-ma"
    FR_BMUF = "fr-bmuf"
    SYNC_SGD = "sync-sgd"
    NONE = "none"

    @property
    def method(self) -> Method:
        return Method(self.value.rpartition("-")[2])

    @property
    def in_background(self) -> bool:
        """Whether a shadow thread does it, so that no worker waits."""
        return self.value.startswith("shadow")

    @property
    def at_fixed_rate(self) -> bool:
        """Whether worker threads synchronise themselves, at a fixed rate."""
        return self.value.startswith("fr")

    @property
    def has_servers(self) -> bool:
        """Whether the central copy is on sync servers."""
        return self.method is Method.EASGD

    @property
    def is_collective(self) -> bool:
        """Whether all trainers take part simultaneously, by an AllReduce among themselves."""
        return self.method in (Method.MA, Method.BMUF, Method.SGD)

    @property
    def holds_all_up(self) -> bool:
        """Whether all workers of all trainers wait for the slowest."""
        return self.is_collective and not self.in_background


@dataclass(frozen=True, slots=True)
class Stragglers:
    """Trainers that are slower than the others, always the same ones: the last by number."""

    n_trainers: int = stated("How many, a count.", 1, ge=1, le=MAX_NODES, alias="trainers")
    factor: float = stated("How many times longer their iterations take.", 1.5, ge=1, le=1000)


class Duration(Protocol):
    """A time that may vary from draw to draw; a fixed one is the degenerate case."""

    @property
    def mean_h(self) -> float: ...

    def sample(self, rng: np.random.Generator, size: int) -> Floats: ...


# --------------------------------------------------------------------------- the cluster


class Holds(StrEnum):
    """What of the model's state the nodes of a role hold."""

    SHARD = "shard"  # each node its own part: a failure loses it (embedding parameter servers)
    REPLICA = "replica"  # each node all of it: lost only if all nodes are lost (trainers)
    CENTRAL = "central"  # each node its part of the central copy of the dense model (sync servers)
    NOTHING = "nothing"  # readers, masters: a failure loses nothing


@dataclass(frozen=True, slots=True)
class Role:
    """One kind of node: its number, the state it holds, and whether others wait for a lost one."""

    name: str
    n_nodes: int
    holds: Holds
    others_go_on: bool = False  # under partial recovery, while a node of it is replaced


STATE = "state"  # all roles that hold shards, where there are several


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes of the job, numbered through by slot, role after role.

    A slot is a place in the job; the node in it may be replaced. Without `n_spares` a spare is
    always free; otherwise a failed node returns to the pool after its repair.
    """

    roles: tuple[Role, ...]
    n_spares: int | None = None
    repair: Duration | None = None
    accesses: tuple[float, ...] = ()  # of each shard, a share of all; none: all alike

    @property
    def n_nodes(self) -> int:
        return sum(role.n_nodes for role in self.roles)

    def slots(self, role_name: str) -> range:
        """Slots of one role, or of `STATE`: of all roles that hold shards."""
        first = 0
        for role in self.roles:
            if role.name == role_name:
                return range(first, first + role.n_nodes)
            first += role.n_nodes
        if role_name == STATE:
            return self.shard_slots
        raise KeyError(role_name)

    def slots_that_hold(self, holds: Holds) -> range:
        """Slots of the roles that hold this kind of state, which are neighbours; else empty."""
        of_roles = [self.slots(role.name) for role in self.roles if role.holds is holds]
        return range(of_roles[0].start, of_roles[-1].stop) if of_roles else range(0)

    @property
    def shard_slots(self) -> range:
        return self.slots_that_hold(Holds.SHARD)

    @property
    def replica_slots(self) -> range:
        return self.slots_that_hold(Holds.REPLICA)

    @property
    def n_emb_ps(self) -> int:
        return len(self.shard_slots)

    def shares(self, slots: Ints) -> Floats:
        """Fraction of the model in the shards of some slots, (n,): by accesses, if given."""
        if not self.accesses:
            return np.full(len(slots), 1.0 / max(self.n_emb_ps, 1))
        return np.array(self.accesses)[slots - self.shard_slots.start]


# --------------------------------------------------------------------------- what things cost


@dataclass(frozen=True, slots=True)
class OverLink:
    """The state of a node over one link of this node, without other traffic."""

    link: str = stated("One of `cluster.links`.", "pcie", max_length=60)


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage of checkpoints. The servers of a save, and loads, share its bandwidth evenly.

    As a cost it is a transfer, whose time follows from the bandwidth that is free at the moment.
    """

    bandwidth_bytes_per_h: float
    server_bandwidth_bytes_per_h: Number = float("inf")  # of each server's own link
    shard_bytes: float = 0.0  # what one embedding server saves and loads, on average
    bytes_of_shards: tuple[float, ...] = ()  # of each in order of the slots; none: all alike

    def rate_bytes_per_h(self, n_flows: int) -> float:
        """Bytes per hour of each of `n_flows` equal flows."""
        return min(self.server_bandwidth_bytes_per_h, self.bandwidth_bytes_per_h / n_flows)

    def mean_rate_bytes_per_h(self, n_flows: int) -> float:
        """The same of flows until the last shard has moved, on average."""
        if n_flows != len(self.bytes_of_shards):
            return self.rate_bytes_per_h(n_flows)
        return self.shard_bytes / self.transfer_h(n_flows)

    def transfer_h(self, n_flows: int) -> float:
        """Hours in which `n_flows` servers move a shard each, without other traffic."""
        if n_flows != len(self.bytes_of_shards):
            return self.shard_bytes / self.rate_bytes_per_h(n_flows)
        hours = moved_bytes = 0.0
        for n_done, size_bytes in enumerate(sorted(self.bytes_of_shards)):
            hours += (size_bytes - moved_bytes) / self.rate_bytes_per_h(n_flows - n_done)
            moved_bytes = size_bytes
        return hours


@dataclass(frozen=True, slots=True)
class Reliability:
    """Failure probabilities of saves to the storage, and their retention."""

    p_fail: float = 0.0  # that a save fails
    p_corrupt: float = 0.0  # that a save proves corrupt when it is loaded
    kept: int = 1


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failures of restart attempts, independent of each other, and the pauses after them."""

    p_fail: float
    retry: Duration  # until the next attempt begins ...
    gives_up_after: int = 0  # ... but after so many in a row (0: never), then counted anew, ...
    operator: Duration | None = None  # ... until a person has come

    @property
    def mean_pause_h(self) -> float:
        """Pauses of a restart together, on average [h]."""
        pause_h = self.p_fail / (1.0 - self.p_fail) * self.retry.mean_h
        if self.operator is None:
            return pause_h
        p_visit = self.p_fail**self.gives_up_after
        return pause_h + p_visit / (1.0 - p_visit) * (self.operator.mean_h - self.retry.mean_h)


@dataclass(frozen=True, slots=True)
class Costs:
    """Durations of a save, a load, a detection and a rescheduling.

    A save stalls the job for `save_stall`, then continues in the background for `save_background`
    (None: no background part); it is valid when its last part ends.
    """

    save_stall: Duration | Storage
    load: Duration | Storage
    detect: Duration
    reschedule: Duration
    save_background: Duration | Storage | None = None
    storage: Storage | None = None
    reliability: Reliability = Reliability()
    warmup: Duration | None = None  # without progress, after a restart
    restart: Attempts | None = None  # None: all succeed

    @property
    def mean_attempts(self) -> float:
        """Attempts of a restart, on average."""
        return 1.0 if self.restart is None else 1.0 / (1.0 - self.restart.p_fail)

    @property
    def further_h(self) -> float:
        """Expected hours of a restart besides its loads and the first rescheduling."""
        n, restart = self.mean_attempts, self.restart
        further_h = 0.0 if self.warmup is None else n * self.warmup.mean_h
        further_h += (n - 1.0) * self.reschedule.mean_h
        return further_h + (0.0 if restart is None else restart.mean_pause_h)

    @staticmethod
    def mean_h(cost: Duration | Storage | None, n_servers: int) -> float:
        """Expected hours of one of the costs if `n_servers` have it simultaneously."""
        if cost is None:
            return 0.0
        return cost.transfer_h(n_servers) if isinstance(cost, Storage) else cost.mean_h


# --------------------------------------------------------------------------- recovery as data


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a strategy recovers as it does: the first-order prices of both ways."""

    chosen: Literal["partial", "full"]
    partial_interval_h: Endless
    full_interval_h: Endless
    partial_overhead_fraction: Endless
    full_overhead_fraction: Endless
    expected_pls: Endless


class ShardBy(StrEnum):
    """Unit of the model that is assigned to servers."""

    ROWS = "rows"
    TABLES = "tables"


class SmallTables(StrEnum):
    """When the tables that a priority strategy does not prioritise are saved."""

    EACH_INTERVAL = "interval"  # with the save that ends T_save, as in the paper: equal bytes
    EACH_SUB_SAVE = "sub-save"  # with every sub-save: more bytes, fresher rows


@dataclass(frozen=True, slots=True)
class SubSaves:
    """Priority saving: each interval is cut into 1 / `fraction` saves of the most urgent rows.

    All sub-saves of an interval together cost `bytes_share` of a whole save, each of them its part
    and `extra_h` on top, for choosing the rows and as fixed latency. The last one of an interval
    is the one that counts for PLS. Which rows are urgent is the tracker's business.
    """

    tracker: str
    fraction: float = 0.125  # the paper's r (recalled)
    extra_h: float = 0.0
    n_large_tables: int = 7
    small_tables: SmallTables = SmallTables.EACH_INTERVAL
    sample_period: int = 2  # of SSU: it looks at every so-manieth sample
    bytes_share: float = 1.0  # what all of an interval write, over what a whole save does

    @property
    def n_per_interval(self) -> int:
        """How many an interval has, the one that ends it included."""
        return round(1.0 / self.fraction)

    @property
    def cost_share(self) -> float:
        """Mean cost of a sub-save relative to a whole save, without `extra_h`."""
        return self.fraction * self.bytes_share


# --------------------------------------------------------------------------- failures


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of one replication: the slots that it strikes, at an instant of its clock."""

    at_h: float
    slots: tuple[int, ...]
    repair_h: tuple[float, ...]  # until each failed node is back in the pool of spares
    source: int = 0  # that it is of, where the job has several


@dataclass(frozen=True, slots=True)
class FailureTrace:
    """Failures of a block of replications up to a horizon of their clock, as flat arrays.

    Those of replication i are ``first[i]:first[i + 1]``, in order of time; no two of one source
    share an instant: nodes that fail together are one failure. The nodes of failure i stand at
    ``slot[first_slot[i]:first_slot[i + 1]]``.
    """

    until_h: float  # all failures before this instant of the clock are here
    first: Ints  # (n_replications + 1,)
    at_h: Floats  # (n_failures,)
    first_slot: Ints  # (n_failures + 1,)
    slot: Ints  # (n_failed_nodes,)
    repair_h: Floats  # (n_failed_nodes,) zero where the scenario names no repair
    source: Ints | None = None  # (n_failures,) that each is of; None: the job has one source

    @property
    def n_failures(self) -> int:
        return len(self.at_h)

    @property
    def replication(self) -> Ints:
        """Number within the block of each failure's replication, (n_failures,)."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def of(self, replication: int) -> list[Failure]:
        """The failures of one replication of the block, in order of time."""
        first, last = self.first[replication : replication + 2].tolist()
        borders = pairwise(self.first_slot[first : last + 1].tolist())
        return [
            Failure(
                float(self.at_h[n]),
                tuple(self.slot[begin:end].tolist()),
                tuple(self.repair_h[begin:end].tolist()),
                0 if self.source is None else int(self.source[n]),
            )
            for n, (begin, end) in zip(range(first, last), borders, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class ExpectedFailures:
    """Inputs of the formulas from a failure source, over the useful hours of the job.

    `mtbf_h` is job hours over expected failures of any role, `mtbf_shard_h` over those that strike
    at least one embedding server, `n_shards_together` how many servers such a failure strikes on
    average. They are infinite, infinite and 0 without failures.
    """

    mtbf_h: float
    mtbf_shard_h: float
    n_shards_together: float


# --------------------------------------------------------------------------- what happened


class Activity(IntEnum):
    """Activity of the job; every hour of a replication belongs to exactly one.

    All but the first and the last are the parts of its overhead (`PARTS`).
    """

    USEFUL = 0  # work done for the first time
    LOST = 1  # work done again after a rollback: the hours that the failure cost
    SAVE = 2  # stalled by a save
    DETECT = 3  # stalled until the failure is noticed
    WAIT = 4  # stalled until a spare is free
    RESCHEDULE = 5  # stalled until the replacement runs
    LOAD = 6  # stalled until the state is loaded
    OVER = 7  # the job has ended
    # of recovery systems alone
    REGROUP = 8  # stalled while those who are left form groups anew
    REPLAY = 9  # stalled while the struck do again what they lost
    REBUILD = 10  # stalled until lost state is computed from what others hold
    WARM_UP = 11  # stalled by work that leaves no progress
    RETRY = 12  # stalled between two attempts to restart
    PLANNED = 13  # stopped by plan

    @property
    def part(self) -> str:
        """What tables call it."""
        return self.name.lower().replace("_", "-")


PARTS = tuple(part.name.lower() for part in Activity)[Activity.LOST : Activity.OVER]
"""Names of the parts of the overhead."""


class EventKind(IntEnum):
    """Kind of an event in the log; see docs/model.md for the order of events."""

    STARTED = 0
    SAVE_DUE = 1  # the save before is still being written: wait for its commit
    SAVE_STARTED = 2  # content of the save: progress_h of this event
    SAVE_RESUMED = 3  # the stall is over, the rest goes on in the background
    SAVE_COMMITTED = 4
    SAVE_ABANDONED = 5
    FAILED = 6  # one event per failed slot
    MISSED = 7  # a failure of a slot that waits for a spare: there is no node to strike
    REVERTED = 8  # one per slot whose shard goes back to the last save; the others go on
    ROLLED_BACK = 9  # all go back; progress_h is what they go back to
    STAGE = 10  # recovery goes on to its next stage: the activity says which
    RESUMED = 11  # recovery is over
    CAUGHT_UP = 12  # re-execution has come to where the job had been
    FINISHED = 13
    STOPPED = 14  # given up: this job does not finish (docs/model.md, section 9)
    SUB_SAVE_STARTED = 15  # of a priority strategy, between two saves
    SUB_SAVE_COMMITTED = 16
    REPLACED = 17  # a node that nobody waited for is back: one event per slot


@dataclass(frozen=True, slots=True)
class EventLog:
    """Everything that happened in some replications, in order: the product of the simulation.

    Each event says in which activity the job is from this instant on, so the hours of an activity
    are sums of differences of `at_h`.
    """

    replication: Ints  # (n_events,)
    at_h: Floats  # (n_events,) wall time since the start of the job
    kind: Ints  # (n_events,) an EventKind
    activity: Ints  # (n_events,) an Activity: what the job does from here on
    progress_h: Floats  # (n_events,) useful work that the job's state contains, after the event
    slot: Ints  # (n_events,) the slot concerned, -1 where none is


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """Where the hours of each replication went; a row per replication.

    Useful hours and those of all parts add up to the wall time, in every row.
    """

    replication: Ints
    finished: Bools
    wall_h: Floats
    useful_h: Floats
    parts: tuple[str, ...]  # what all other hours went into
    hours: Floats  # (n_replications, n_parts)
    n_failures: Ints
    n_saves: Ints  # committed

    @property
    def n_replications(self) -> int:
        return len(self.replication)

    def hours_of(self, part: str) -> Floats:
        """Hours of one part, (n_replications,). Raises ValueError where there is no such part."""
        hours: Floats = self.hours[:, self.parts.index(part)]
        return hours

    def columns(self) -> dict[str, NDArray[Any]]:
        """One column a name, the hours of a part as `PART_h`: a table of replications."""
        names = ("replication", "finished", "wall_h", "useful_h")
        return {
            **{name: getattr(self, name) for name in names},
            **{f"{part}_h": self.hours_of(part) for part in self.parts},
            "n_failures": self.n_failures,
            "n_saves": self.n_saves,
        }


@dataclass(frozen=True, slots=True)
class ShardLoss:
    """A row per shard that went back to its last save while the job went on.

    Staleness is work, in hours of progress, that the shard lost: since the last save (the paper's
    PLS, whose sum over a job may exceed 1: each failure counts from the last save), and since the
    later of the last save and the last reload of this shard (nothing is lost twice: at most 1).
    """

    replication: Ints
    progress_h: Floats  # of the job, at the failure
    slot: Ints
    since_save_h: Floats
    since_reload_h: Floats
    share: Floats  # of the embedding servers: 1 / n_emb_ps, or of the accesses


Rows = TypeVar("Rows", CostBreakdown, ShardLoss)


def stacked(records: Sequence[Rows]) -> Rows:
    """The rows of several records of one kind, and of the same parts, one below the other."""
    return _with_columns(
        records[0], lambda name: np.concatenate([getattr(record, name) for record in records])
    )


def in_order(record: Rows, order: Ints) -> Rows:
    """The rows of a record in this order."""
    return _with_columns(record, lambda name: getattr(record, name)[order])


def _with_columns(record: Rows, column: Callable[[str], NDArray[Any]]) -> Rows:
    names = (row.name for row in fields(record) if row.name != "parts")
    arrays: dict[str, Any] = {name: column(name) for name in names}
    return replace(record, **arrays)


# --------------------------------------------------------------------------- numbers with errors

NO_NUMBER = "–"  # stands in a table where there is none
CONFIDENCE = 0.95
LOW, HIGH = 0.025, 0.975  # quantiles at the ends of a 95 % interval
Z_95 = 1.959963984540054  # standard errors from the middle of a normal interval to its end
ROUNDED_Z_95 = 1.96  # the same to three digits, where results have always been computed with it


def pooled(*variances: tuple[float, float]) -> tuple[float, float]:
    """Standard error of a sum of independent estimates, and its degrees of freedom.

    Welch (1947), Satterthwaite (1946).
    """
    total = sum(variance for variance, _ in variances)
    spent = sum(variance**2 / degrees for variance, degrees in variances)
    return sqrt(total), total**2 / spent if spent > 0 else inf


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    mean: Number  # the number
    low: Number = nan  # low, high: ends of the interval; NaN where there is none
    high: Number = nan
    # values that it rests on; 0 where they are not counted
    n: int = field(default=0, metadata=OMITTED)

    @property
    def half_width(self) -> float:
        """Half the length of the interval; NaN without an interval."""
        return (self.high - self.low) / 2

    @property
    def has_interval(self) -> bool:
        """Whether the lower end is a finite number."""
        return isfinite(self.low)

    @property
    def triple(self) -> tuple[float, float, float]:
        """The number and both ends."""
        return self.mean, self.low, self.high

    @property
    def by_name(self) -> dict[str, float]:
        """The number and both ends as JSON names them."""
        return {"mean": self.mean, "low": self.low, "high": self.high}

    def columns(self, name: str) -> dict[str, float]:
        """The number and both ends as columns of a table: ``x``, ``x_low``, ``x_high``."""
        return {name: self.mean, f"{name}_low": self.low, f"{name}_high": self.high}

    def times(self, factor: float) -> Self:
        """The number and its interval in another unit."""
        mean, low, high = (factor * value for value in self.triple)
        return replace(self, mean=mean, low=low, high=high)

    @classmethod
    def of_mean(cls, values: ArrayLike) -> Self:
        """Mean of independent values, (n,), by Student's t.

        One value alone has a mean but no interval: its ends are NaN. Equal values have an interval
        of no width. Exact for normal values; by the central limit theorem for many.
        """
        numbers: Floats = np.asarray(values)
        mean = float(np.mean(numbers))
        return cls.of_squares(mean, float(np.square(numbers - mean).sum()), len(numbers))

    @classmethod
    def of_squares(cls, mean: float, squares: float, n: int) -> Self:
        """`of_mean`, from the sum of the squared deviations of n values."""
        if n == 1:
            return cls(mean, nan, nan, n)
        deviation = np.sqrt(squares / (n - 1))
        half = float(special.stdtrit(n - 1, HIGH) * deviation / np.sqrt(n))
        return cls(mean, mean - half, mean + half, n)

    @classmethod
    def of_variances(cls, mean: float, variances: Iterable[tuple[float, float]], n: int) -> Self:
        """A sum of independent estimates, each with its variance and degrees of freedom."""
        error, degrees = pooled(*variances)
        if error == 0:
            return cls(mean, mean, mean, n)
        t = special.stdtrit(min(degrees, 1e9), (0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2))
        return cls(mean, mean + float(t[0]) * error, mean + float(t[1]) * error, n)

    @classmethod
    def of_draws(cls, draws: Floats) -> Self:
        """Mean and quantiles of equally likely values, (n,)."""
        low, high = np.quantile(draws, (LOW, HIGH))
        return cls(float(draws.mean()), float(low), float(high), len(draws))

    @classmethod
    def of_share(cls, n_yes: int, n: int) -> Self:
        """A share (Clopper and Pearson 1934): never too narrow, inside [0, 1]."""
        tail = 1 - HIGH
        low = special.betaincinv(n_yes, n - n_yes + 1, tail) if n_yes > 0 else 0.0
        high = special.betaincinv(n_yes + 1, n - n_yes, HIGH) if n_yes < n else 1.0
        return cls(n_yes / n, float(low), float(high), n)
