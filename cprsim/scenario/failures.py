"""The sections `failures`, `scopes` and `silent`: sources of failures, and the nodes they hit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StrictBool, create_model

from cprsim.failures.limits import FRAILTY_SHAPE, LEMON_FACTOR, MOST_SIZES
from cprsim.failures.sources import Start
from cprsim.files.units import SHARE, TIME, Quantity
from cprsim.job.records import MAX_NODES, Clock
from cprsim.logs.formats import names, not_taken
from cprsim.logs.spec import (
    COLUMNS_FOR_END,
    LOG_COLUMNS,
    NODE_COLUMNS,
    TIME_UNITS,
    LogSpec,
)
from cprsim.scenario.quantities import (
    Age,
    Duration,
    Lifetime,
    Model,
    Mtbf,
    Mtbf95,
    NodeCount,
    PartShare,
    PositiveCount,
    PositiveTime,
    Shape,
    Spread95,
    Text,
    Time,
    duration_of,
    one_of,
    quoted,
    within,
)

EMB_PS, TRAINER, SYNC_PS, ANY = "emb_ps", "trainer", "sync_ps", "any"
WORKER = "worker"
ROLE_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,59}$"
MAX_INJECTED = 10_000
MAX_INSTANTS = 1000
MAX_FAILURES = 100_000  # that a job may expect

ClockName = Annotated[
    Clock,
    Field(
        description="Clock on which failures age: progress (only first-time useful work), uptime "
        "(everything but recovery) or wall (everything; failures strike anywhere)."
    ),
]
StartName = Annotated[
    Start,
    Field(
        description="Age at the start of the job: fresh (just renewed) or stationary (up for long)."
    ),
]
RoleKey = Annotated[str, Field(strict=True, pattern=ROLE_NAME)]
RoleName = Annotated[
    RoleKey,
    Field(
        description="Role that is struck: emb_ps, worker, trainer, sync_ps, any (all nodes) or "
        "one of `others`."
    ),
]


def too_many(n_failures: float) -> str:
    """Error message for a job with this expected number of failures."""
    return f"makes {n_failures:.3g} failures per job; at most {MAX_FAILURES} make sense"


# ---------------------------------------------------------------------- clocks


class JobFailures(Lifetime):
    """The job as a whole fails: one clock for all of it."""

    kind: Literal["job"] = Field(description="One clock for the job as a whole.")
    role: RoleName = EMB_PS
    together: PositiveCount = Field(
        1, description="How many randomly chosen nodes of the role fail together."
    )
    nodes: PositiveCount | None = Field(
        None, description="Nodes of the job of this rate, by `cprsim fit`; absent: not known."
    )
    start: StartName = Start.FRESH
    clock: ClockName = Clock.WALL


class NodeFailures(Model):
    """Every node of the named roles fails on its own; a replacement starts new."""

    kind: Literal["node"] = Field(description="A clock for every node.")
    roles: dict[RoleKey, Lifetime] = Field(
        min_length=1, description="Lifetime of one node of each role that fails, by role."
    )
    start: StartName = Start.STATIONARY
    clock: ClockName = Clock.WALL


# ---------------------------------------------------------------------- nodes that differ

LemonShare = Annotated[float, Quantity(SHARE, "0.001 %", "99.999 %", "10 %")]
NodesStruck = Annotated[int, Field(ge=1, le=MAX_NODES)]
Weight = Annotated[float, Field(strict=True, gt=0)]


class FrailtySection(Model):
    """Every node has a factor on its hazard, drawn from a gamma distribution with mean 1."""

    shape: Annotated[float, within(*FRAILTY_SHAPE)] = Field(
        description="Shape of the factors, no unit; their variance is 1 / shape.", examples=[0.8]
    )


class LemonsSection(Model):
    """A share of the nodes fails more often."""

    share_fraction: LemonShare = Field(description="Share of such nodes [per cent].")
    factor: Annotated[float, within(*LEMON_FACTOR)] = Field(
        description="Their hazard over that of the others, no unit."
    )


class ShocksSection(Model):
    """Events that strike several nodes simultaneously."""

    every_h: Mtbf = Field(
        description="Mean time between them in the cluster that was watched [time]."
    )
    sizes: dict[NodesStruck, Weight] = Field(
        min_length=1,
        max_length=MOST_SIZES,
        description="Nodes struck together, and the frequency (a count of events, or any weight).",
        examples=[{2: 20, 3: 5}],
    )
    nodes: PositiveCount = Field(
        description="Nodes of the cluster that was watched; the job has some of them, at random."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
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
        description="Mean time between failures of a node with the factor 1 [time]."
    )
    shape: Shape = Field(
        description="Shape of the lifetimes, no unit; 1 is exponential, below 1 clusters."
    )
    mtbf_95_h: Mtbf95 = None
    spread_95: Spread95 = None
    frailty: FrailtySection | None = Field(
        None, description="Spread of the factors on the nodes' hazards; absent: all are 1."
    )
    lemons: LemonsSection | None = Field(
        None, description="A share of the nodes that fails more often; absent: none."
    )
    shocks: ShocksSection | None = Field(
        None, description="Simultaneous failures of several nodes; absent: none."
    )
    start: StartName = Start.STATIONARY
    watched_h: Age = Field(
        0.0,
        description="The job starts at a random instant within this time after `start` [time]: "
        "the length of the log that was fitted; default 0 h.",
    )
    clock: ClockName = Clock.WALL


# ---------------------------------------------------------------------- failures that are given


NUMBER_OF_INSTANTS = Field(min_length=1, max_length=MAX_INSTANTS)
NodeNumbers = Annotated[tuple[NodeCount, ...], Field(min_length=1)]
NumbersAtEach = Annotated[tuple[NodeNumbers, ...], NUMBER_OF_INSTANTS]
Servers = Annotated[NodeNumbers | NumbersAtEach, one_of("list", "lists")]


class InjectedFailures(Model):
    """A given number of failures, at random or given instants of a clock."""

    kind: Literal["injected"] = Field(
        description="A given number of failures, at random or given instants of a clock."
    )
    clock: Clock = Field(
        Clock.PROGRESS,
        description="Clock of the instants: progress (every strategy meets all of them), uptime "
        "(stops during recovery) or wall (a job meets those before its end).",
    )
    count: Annotated[int, within(1, MAX_INJECTED)] | None = Field(
        None,
        description="Failures per job, uniform over its progress, or, on the clocks uptime and "
        "wall, over a time equal to its useful hours; or give `at`.",
    )
    at_h: Annotated[tuple[Age, ...], NUMBER_OF_INSTANTS] | None = Field(
        None,
        description="Instants of the failures [time of the clock], of uptime and wall up to 100 "
        "times the useful hours; or give `count`.",
        examples=[["3 h", "10.5 h"]],
    )
    role: RoleName = EMB_PS
    servers: Servers | None = Field(
        None,
        description="Numbers from 0, within the role, of the nodes that fail each time, or a list "
        "of them for each instant of `at`; or give `together`.",
        examples=[[0, 3], [[0], [2, 3]]],
    )
    together: PositiveCount | None = Field(
        default_factory=lambda section: None if section.get("servers") else 1,
        description="How many randomly chosen nodes of the role fail together (default 1); or give "
        "`servers`.",
    )

    @property
    def servers_at(self) -> tuple[tuple[int, ...], ...]:
        """The nodes that fail at each instant; none where they are random, or the same ones."""
        return tuple(servers for servers in self.servers or () if isinstance(servers, tuple))

    @property
    def named_servers(self) -> dict[str, tuple[int, ...]]:
        """Each list of numbers, by key."""
        alike = tuple(number for number in self.servers or () if isinstance(number, int))
        if alike:
            return {"servers": alike}
        return {f"servers.{i}": servers for i, servers in enumerate(self.servers_at)}

    @property
    def n_together(self) -> int:
        """Nodes that fail each time; the most of them where that varies."""
        return max(map(len, self.named_servers.values()), default=self.together or 1)

    def problems(self) -> Iterator[tuple[str, str]]:
        servers_of, at_h = self.named_servers, self.at_h
        if (self.count is None) == (at_h is None):
            yield "count", "give either `count` (at random) or `at` (a list of times)"
        if at_h is not None and len(set(at_h)) < len(at_h):
            yield "at", "names an instant twice; for nodes that fail together use `together`"
        if servers_of and self.together is not None:
            yield "together", "give either `together` (random nodes) or `servers` (named ones)"
        if servers_of and self.role == ANY:
            yield "servers", "numbers nodes within one role, so `role` cannot be `any`"
        for key, servers in servers_of.items():
            if len(set(servers)) < len(servers):
                yield key, f"{list(servers)} names a server twice"
        if self.servers_at and at_h is None:
            yield "servers", "a list for each instant goes with `at`: with `count` give one list"
        elif self.servers_at and len(servers_of) != len(at_h or ()):
            numbers = f"has {len(servers_of)} lists for {len(at_h or ())} instants of `at`"
            yield "servers", f"{numbers}: give one for each, or one list for all"


# ---------------------------------------------------------------------- replay of a log


def _order(instant: float | str) -> Any:
    """Sort key of instants that are written alike. Raises ValueError for an invalid date."""
    if isinstance(instant, float):
        return instant
    return datetime.fromisoformat(instant).replace(tzinfo=None)


Instant = Annotated[float | Text, Field(examples=["2000-01-01", "2024-05-01T06:00Z", 48])]


class PeriodSection(Model):
    """The observed part of the log, including the time in it without failures."""

    first: Instant | None = Field(
        None,
        alias="from",
        description="When observation begins, an instant; absent: the log's first.",
    )
    last: Instant | None = Field(
        None,
        alias="to",
        description="When it ends, itself excluded; absent: the log's last instant.",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.given:
            yield "from", "is missing: say `from`, `to` or both"


class Trace(Model):
    """Outages that were observed, replayed on the wall clock from a random instant."""

    kind: Literal["trace"] = Field(description="Outages from a file.")
    file: Text = Field(
        description="Path of the trace, relative to the scenario; ${CPRSIM_NAME} is an "
        "environment variable; no others are replaced.",
        examples=["${CPRSIM_DATA}/failures/infinitehbd/fault_trace.json"],
    )
    begins: Literal["random", "first"] = Field(
        "random",
        description="Where each replication begins: at a random instant of the trace, where nodes "
        "that are down count as up (random), or at its first, where nodes that are down fail "
        "at the start (first).",
    )

    @property
    def clock(self) -> Clock:
        """A trace runs on wall time."""
        return Clock.WALL

    @property
    def spec(self) -> LogSpec:
        options = {option.name: getattr(self, option.name) for option in fields(LogSpec)}
        for name in TIME_OPTIONS:
            options[name] = None if options[name] is None else f"{options[name]!r} h"
        if period := options["period"]:
            ends = (period.first, period.last)
            options["period"] = "..".join("" if end is None else str(end) for end in ends)
        return LogSpec(**options)

    def problems(self) -> Iterator[tuple[str, str]]:
        spec, given = self.spec, self.given
        for option, message in not_taken(spec, spec.format) if spec.format else ():
            key = "columns" if option == "--column" else option[2:].replace("-", "_")
            yield key, message
        order = dict[str, Any]()
        ends = given["period"].given if "period" in given and spec.date_format is None else {}
        for key, instant in ends.items():  # those of another form are read with the log
            try:
                order[key] = _order(instant)
            except ValueError:
                right = "write a day such as 2000-01-01, or a number as the file has them"
                yield f"period.{key}", f"{quoted(instant)} is no instant: {right}"
        alike = len({type(value) for value in order.values()}) == 1
        if len(order) == 2 and alike and not order["from"] < order["to"]:
            yield "period.to", f"{ends['to']} does not lie after `from` ({ends['from']})"


TIME_OPTIONS = ("repair", "coalesce", "together")
SCENARIO_KEYS: dict[str, Any] = {  # what a scenario writes otherwise than the command line
    "format": Literal.__getitem__(tuple(names())),
    "nodes": Annotated[Text | PositiveCount, one_of("text", "number")],
    "period": PeriodSection,
    "columns": dict.__class_getitem__(
        (Literal.__getitem__((*LOG_COLUMNS, *NODE_COLUMNS, *COLUMNS_FOR_END)), Text)
    ),
    "ignore": tuple.__class_getitem__((Text, ...)),
    "time_unit": Literal.__getitem__(TIME_UNITS),
    "system": PositiveCount,
    **dict.fromkeys(TIME_OPTIONS, Time),
}

if TYPE_CHECKING:
    TraceFailures = Trace
else:
    TraceFailures = create_model(
        "TraceFailures", __base__=Trace, __module__=__name__, __doc__=Trace.__doc__,
        **{
            key.name: (
                SCENARIO_KEYS.get(key.name, Text) | None,
                Field(None, description=key.metadata["help"]),
            )
            for key in fields(LogSpec)
        },
    )  # fmt: skip


Failures = Annotated[
    JobFailures | NodeFailures | CorrelatedFailures | InjectedFailures | TraceFailures,
    one_of("job", "node", "correlated", "injected", "trace"),
]


# ---------------------------------------------------------------------- what they kill

SILENT = "silent"  # name of the scope and of its source
SCOPE_NAME = r"^[A-Za-z][A-Za-z0-9 _-]{0,39}$"


class ScopeSection(Model):
    """One kind of failure."""

    name: str = Field(strict=True, pattern=SCOPE_NAME, description="What it is called.")
    share: PartShare | None = Field(
        None,
        description="Share of the failures [per cent, or a number]; all add up to 1. Or give "
        "`failures`.",
    )
    failures: Failures | None = Field(
        None,
        description="Failures of this kind alone, besides those of the section `failures` and "
        "independent of them; `kind` says where from. They age on the same clock.",
    )
    reach: Literal["process", "gpu", "node", "rack", "all"] = Field(
        "node",
        description="Its reach: a process (host memory stays), a gpu, a node, the rack of the "
        "node that fails (`cluster.rack`), or all nodes.",
    )
    detect: Duration | None = Field(
        None, description="Until it is noticed: a time or a distribution; default `costs.detect`."
    )
    needs_node: StrictBool | None = Field(
        None,
        description="Whether a struck node is replaced, with its memory; default: from `node` on.",
    )

    notice_h: Time = Field(
        0.0,
        description="How long before it strikes a failure is announced [time], for systems that "
        "save on notice; default 0 s.",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.share is not None and self.failures is not None:
            yield (
                "share",
                "give either `share` (of the section `failures`) or the scope's own `failures`",
            )
        elif self.share is None and self.failures is None:
            yield "share", "is missing: the share of the failures, or give the scope's `failures`"
        if isinstance(self.failures, TraceFailures):
            yield "failures.kind", "a log is replayed in the section `failures` alone"
        elif (source := self.failures) is not None:
            lifetimes = source.roles.values() if isinstance(source, NodeFailures) else [source]
            if any({"mtbf_95", "spread_95"} & lifetime.given.keys() for lifetime in lifetimes):
                where = "are drawn from in the section `failures` alone: leave them out here"
                yield "failures", f"`mtbf_95` and `spread_95` {where}"


Scopes = Annotated[
    tuple[ScopeSection, ...],
    Field(
        max_length=16,
        description="Kinds of failures, with their shares; absent: every failure kills a node.",
    ),
]


class PlannedSection(Model):
    """Stops by plan, such as ends of allocations and maintenance: no failures."""

    every_h: Annotated[float, Quantity(TIME, "1 min", "10000 h", "100 h")] = Field(
        description="Wall time between their beginnings, and before the first of them [time]."
    )
    length: Duration = Field(
        description="How long the job stands before it starts again: a time or a distribution."
    )
    saves: StrictBool = Field(
        True, description="Whether the job saves first, and loses nothing; default true."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        length_h = duration_of(self.length).mean_h
        if not length_h < self.every_h:
            yield "every", f"is {self.every_h:g} h; it must be longer than `length`, {length_h:g} h"


class CheckSection(Model):
    """A check of the state, which finds every silent error."""

    takes_h: PositiveTime = Field(description="Stall of the job at each check [time].")
    every_h: PositiveTime | None = Field(
        None, description="Progress between two checks [time]; absent: one before each save."
    )


class SilentSection(Model):
    """Silent errors: they corrupt the state, and are noticed later."""

    mtbf_h: Mtbf = Field(
        description="Mean time between silent errors of the job [time], on the failures' clock."
    )
    latency: Duration | None = Field(
        None, description="Until it is noticed: a time or a distribution; absent: by checks alone."
    )
    check: CheckSection | None = Field(None, description="Checks of the state; absent: none.")

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.latency is None and self.check is None:
            yield "latency", "is missing: say how errors are noticed, by `latency` or by `check`"
