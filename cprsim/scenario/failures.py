"""The section `failures`: where failures come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from cprsim.errors import ParameterError
from cprsim.failures import correlated, frailty, limits
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import ALIKE, Frailty, GammaFrailty
from cprsim.failures.injected import Injected
from cprsim.failures.sources import Start
from cprsim.records import MAX_NODES, Clock, Cluster
from cprsim.scenario.distributions import Lifetime, Mtbf95, Spread95, intervals_agree
from cprsim.scenario.quantities import NO_KIND, Model, Mtbf, NodeCount, PositiveCount
from cprsim.scenario.traces import TraceFailures
from cprsim.units import SHARE, TIME, Quantity

EMB_PS, TRAINER, SYNC_PS, ANY = "emb_ps", "trainer", "sync_ps", "any"
WORKER = "worker"
ROLE_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,59}$"
KINDS = ("job", "node", "correlated", "injected", "trace")
MAX_INJECTED = 10_000
MAX_INSTANTS = 1000
MAX_FAILURES = 100_000  # that a job may expect

ClockName = Annotated[
    Clock,
    Field(
        description="Clock on which failures age: progress (only first-time useful work), uptime "
        "(everything but recovery) or wall (everything; failures strike anywhere).",
    ),
]
StartName = Annotated[
    Start,
    Field(
        description="Age at the start of the job: fresh (just renewed) or stationary (up for long)."
    ),
]
RoleName = Annotated[
    str,
    Field(
        strict=True,
        pattern=ROLE_NAME,
        description="Role that is struck: emb_ps, worker, trainer, sync_ps, any (all nodes) or "
        "one of `others`.",
        examples=[EMB_PS, TRAINER, ANY],
    ),
]
Together = Annotated[
    PositiveCount, Field(description="How many randomly chosen nodes of the role fail together.")
]
NodesOfRate = Annotated[
    PositiveCount | None,
    Field(
        description="Nodes of the job that fails at this rate, as `cprsim fit` writes it: the job "
        "has so many. Absent: not said.",
        examples=[16],
    ),
]
InjectedTime = Annotated[float, Quantity(TIME, "0 h", "10000000 h", "10.5 h")]
Share = Annotated[float, Quantity(SHARE, "0.001 %", "99.999 %", "10 %")]
Watched = Annotated[float, Quantity(TIME, "0 h", "1000000 h", "349 d")]


class LemonsSection(Model):
    """A share of the nodes fails more often."""

    share_fraction: Share = Field(alias="share", description="Share of such nodes [per cent].")
    factor: float = Field(
        strict=True,
        ge=limits.LEMON_FACTOR[0],
        le=limits.LEMON_FACTOR[1],
        description="Their hazard over that of the others, no unit.",
        examples=[5.6],
    )


class ShocksSection(Model):
    """Events that strike several nodes at once."""

    every_h: Mtbf = Field(
        alias="every", description="Mean time between them in the cluster that was watched [time]."
    )
    sizes: dict[
        Annotated[int, Field(ge=1, le=MAX_NODES)], Annotated[float, Field(strict=True, gt=0)]
    ] = Field(
        min_length=1,
        max_length=limits.MOST_SIZES,
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

    def record(self) -> correlated.Shocks:
        """Their rate, and the share of each size."""
        total = sum(self.sizes.values())
        shares = tuple(weight / total for weight in self.sizes.values())
        return correlated.Shocks(1 / self.every_h, tuple(self.sizes), shares, self.nodes)


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
        ge=limits.SHAPE[0],
        le=limits.SHAPE[1],
        description="Shape of the lifetimes, no unit; 1 is exponential, below 1 clusters.",
        examples=[0.39],
    )
    mtbf_95_h: Mtbf95 = None
    spread_95: Spread95 = None
    frailty: GammaFrailty | None = Field(
        None, description="Spread of the factors on the nodes' hazards; absent: all are 1."
    )
    lemons: LemonsSection | None = Field(
        None, description="A share of the nodes that fails more often; absent: none."
    )
    shocks: ShocksSection | None = Field(
        None, description="Failures of several nodes at once; absent: none."
    )
    start: StartName = Start.STATIONARY
    watched_h: Watched = Field(
        0.0,
        alias="watched",
        description="The job starts at a random instant of so long a time after `start` [time]: "
        "the length of the log that was fitted; default 0 h.",
    )
    clock: ClockName = Clock.WALL

    def problems(self) -> Iterator[tuple[str, str]]:
        """Intervals are intervals."""
        yield from intervals_agree(self.mtbf_95_h, self.spread_95, self.shape)

    def source(self, cluster: Cluster, useful_h: float) -> correlated.CorrelatedNodes:
        """These failures in a job.

        Raises ParameterError where it would have too many: how often nodes that differ fail does
        not follow from `mtbf` alone.
        """
        nodes = correlated.CorrelatedNodes(
            lifetime=Weibull.from_mean(self.mtbf_h, self.shape),
            frailty=self._frailty(),
            shocks=None if self.shocks is None else self.shocks.record(),
            clock=self.clock,
            start=self.start,
            watched_h=self.watched_h,
            repair=cluster.repair,
        )
        n_failures = useful_h / nodes.expected(cluster, useful_h).mtbf_h
        if n_failures > MAX_FAILURES:
            raise ParameterError(too_many(n_failures))
        return nodes

    def _frailty(self) -> Frailty:
        others = self.frailty or ALIKE
        if self.lemons is None:
            return others
        return frailty.Lemons(self.lemons.share_fraction, self.lemons.factor, others)


def too_many(n_failures: float) -> str:
    """What is wrong with a job that expects so many failures."""
    return f"makes {n_failures:.3g} failures per job; at most {MAX_FAILURES} make sense"


def slots_of(cluster: Cluster, role: str) -> range:
    """Slots of a role of the job, or of all of them."""
    return range(cluster.n_nodes) if role == ANY else cluster.slots(role)


class JobFailures(Lifetime):
    """The job as a whole fails: one clock for all of it."""

    kind: Literal["job"] = Field(description="One clock for the job as a whole.")
    role: RoleName = EMB_PS
    together: Together = 1
    nodes: NodesOfRate = None
    start: StartName = Start.FRESH
    clock: ClockName = Clock.WALL

    def source(self, cluster: Cluster, useful_h: float) -> JobClock:
        """These failures in a job."""
        return JobClock(
            lifetime=self.distribution,
            slots=slots_of(cluster, self.role),
            together=self.together,
            clock=self.clock,
            start=self.start,
            repair=cluster.repair,
        )


class NodeFailures(Model):
    """Every node of the named roles fails on its own; a replacement starts new."""

    kind: Literal["node"] = Field(description="A clock for every node.")
    roles: dict[Annotated[str, Field(pattern=ROLE_NAME)], Lifetime] = Field(
        min_length=1,
        description="For each role that fails (emb_ps, trainer, sync_ps, names of `others`), the "
        "lifetime of one of its nodes.",
    )
    start: StartName = Start.STATIONARY
    clock: ClockName = Clock.WALL

    def source(self, cluster: Cluster, useful_h: float) -> NodeClocks:
        """These failures in a job."""
        return NodeClocks(
            lifetimes={role: lifetime.distribution for role, lifetime in self.roles.items()},
            clock=self.clock,
            start=self.start,
            repair=cluster.repair,
        )


def _servers_written_as(value: Any) -> str:
    one_each = isinstance(value, list | tuple) and any(isinstance(v, list | tuple) for v in value)
    return "as:each" if one_each else "as:all"


NodeNumbers = Annotated[tuple[NodeCount, ...], Field(min_length=1)]
Servers = Annotated[
    Annotated[NodeNumbers, Tag("as:all")]
    | Annotated[
        tuple[NodeNumbers, ...], Field(min_length=1, max_length=MAX_INSTANTS), Tag("as:each")
    ],
    Discriminator(_servers_written_as),
]


class InjectedFailures(Model):
    """A given number of failures, at random or given instants of a clock."""

    kind: Literal["injected"] = Field(
        description="So many failures, at random or given instants of a clock."
    )
    clock: Clock = Field(
        Clock.PROGRESS,
        description="Clock of the instants: progress (every strategy meets all of them), uptime "
        "(stands still in recovery) or wall (a job meets those before its end).",
    )
    count: int | None = Field(
        None,
        strict=True,
        ge=1,
        le=MAX_INJECTED,
        description="Failures per job, uniform over its progress, of uptime and wall over the first"
        " so many hours as it has useful ones; or give `at`.",
    )
    at_h: tuple[InjectedTime, ...] | None = Field(
        None,
        alias="at",
        min_length=1,
        max_length=MAX_INSTANTS,
        description="Instants of the failures [time of the clock], of uptime and wall up to 100 "
        "times the useful hours; or give `count`.",
        examples=[["3 h", "10.5 h"]],
    )
    role: RoleName = EMB_PS
    together: Together | None = Field(
        None,
        description="How many randomly chosen nodes of the role fail together (default 1); or give "
        "`servers`.",
    )
    servers: Servers | None = Field(
        None,
        description="Numbers from 0, within the role, of the nodes that fail each time, or a list "
        "of them for each instant of `at`; or give `together`.",
        examples=[[0, 3], [[0], [2, 3]]],
    )

    @property
    def servers_at(self) -> tuple[tuple[int, ...], ...] | None:
        """The nodes that fail at each instant; None where those are the same each time."""
        each = [servers for servers in self.servers or () if isinstance(servers, tuple)]
        return tuple(each) or None

    @property
    def servers_each_time(self) -> tuple[int, ...] | None:
        """The nodes that fail each time; None where they are random, or others each time."""
        return tuple(number for number in self.servers or () if isinstance(number, int)) or None

    @property
    def named_servers(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Each list of numbers with its key."""
        if self.servers_each_time is not None:
            yield "servers", self.servers_each_time
        for i, servers in enumerate(self.servers_at or ()):
            yield f"servers.{i}", servers

    @property
    def n_together(self) -> int:
        """Nodes that fail each time; the most of them where that varies."""
        if self.servers_at is not None:
            return max(map(len, self.servers_at))
        return len(self.servers) if self.servers is not None else (self.together or 1)

    @model_validator(mode="before")
    @classmethod
    def _one_by_default(cls, section: Any) -> Any:
        if isinstance(section, dict) and section.get("together") is None:
            return section if section.get("servers") is not None else {**section, "together": 1}
        return section

    def problems(self) -> Iterator[tuple[str, str]]:
        """One way to say when, one to say who."""
        if (self.count is None) == (self.at_h is None):
            yield "count", "give either `count` (at random) or `at` (a list of times)"
        if self.servers is not None and self.together is not None:
            yield "together", "give either `together` (random nodes) or `servers` (named ones)"
        for key, servers in self.named_servers:
            if len(set(servers)) < len(servers):
                yield key, f"{list(servers)} names a server twice"
        yield from self._one_list_an_instant()
        if self.servers is not None and self.role == ANY:
            yield "servers", "numbers nodes within one role, so `role` cannot be `any`"
        if self.at_h is not None and len(set(self.at_h)) < len(self.at_h):
            yield "at", "names an instant twice; for nodes that fail together use `together`"

    def _one_list_an_instant(self) -> Iterator[tuple[str, str]]:
        if self.servers_at is None:
            return
        if self.at_h is None:
            yield "servers", "a list for each instant goes with `at`: with `count` give one list"
        elif len(self.servers_at) != len(self.at_h):
            yield (
                "servers",
                f"has {len(self.servers_at)} lists for {len(self.at_h)} instants of `at`: give one "
                "for each, or one list for all",
            )

    def source(self, cluster: Cluster, useful_h: float) -> Injected:
        """These failures in a job."""
        slots = slots_of(cluster, self.role)
        each_time, at = self.servers_each_time, self.servers_at
        return Injected(
            useful_h=useful_h,
            slots=slots if each_time is None else _numbered(slots, each_time),
            together=self.n_together,
            at_h=self.at_h,
            count=self.count or 0,
            repair=cluster.repair,
            clock=self.clock,
            slots_at=None if at is None else tuple(_numbered(slots, servers) for servers in at),
        )


def _numbered(slots: range, servers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(slots[number] for number in servers)


def _kind(section: Any) -> str | None:
    kind = section.get("kind") if isinstance(section, dict) else getattr(section, "kind", None)
    return f"as:{kind}" if kind in KINDS else None


Failures = Annotated[
    Annotated[JobFailures, Tag("as:job")]
    | Annotated[NodeFailures, Tag("as:node")]
    | Annotated[CorrelatedFailures, Tag("as:correlated")]
    | Annotated[InjectedFailures, Tag("as:injected")]
    | Annotated[TraceFailures, Tag("as:trace")],
    Discriminator(
        _kind,
        custom_error_type=NO_KIND,
        custom_error_message=f"is no kind of failures. Known: {', '.join(KINDS)}",
    ),
]
