"""The section `failures`: where failures come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from cprsim.scenario.correlated_schema import CorrelatedFailures
from cprsim.scenario.lifetimes import Clock, Lifetime, Start
from cprsim.scenario.quantities import Model, NodeCount, PositiveCount, Quantity
from cprsim.scenario.traces import TraceFailures
from cprsim.units import TIME

EMB_PS, TRAINER, SYNC_PS, ANY = "emb_ps", "trainer", "sync_ps", "any"
WORKER = "worker"
ROLE_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,59}$"
KINDS = ("job", "node", "correlated", "injected", "trace")
MAX_INJECTED = 10_000
MAX_INSTANTS = 1000

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
InjectedTime = Annotated[float, Quantity(TIME, "0 h", "10000000 h", "10.5 h")]


class JobFailures(Lifetime):
    """The job as a whole fails: one clock for all of it."""

    kind: Literal["job"] = Field(description="One clock for the job as a whole.")
    role: RoleName = EMB_PS
    together: Together = 1
    start: Start = "fresh"
    clock: Clock = "wall"


class NodeFailures(Model):
    """Every node of the named roles fails on its own; a replacement starts new."""

    kind: Literal["node"] = Field(description="A clock for every node.")
    roles: dict[Annotated[str, Field(pattern=ROLE_NAME)], Lifetime] = Field(
        min_length=1,
        description="For each role that fails (emb_ps, trainer, sync_ps, names of `others`), the "
        "lifetime of one of its nodes.",
    )
    start: Start = "stationary"
    clock: Clock = "wall"


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
    clock: Literal["progress", "uptime", "wall"] = Field(
        "progress",
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
        each = [one for one in self.servers or () if isinstance(one, tuple)]
        return tuple(each) or None

    @property
    def servers_each_time(self) -> tuple[int, ...] | None:
        """The nodes that fail each time; None where they are random, or others each time."""
        return tuple(one for one in self.servers or () if isinstance(one, int)) or None

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


def _kind(section: Any) -> str | None:
    kind = section.get("kind") if isinstance(section, dict) else getattr(section, "kind", None)
    return f"as:{kind}" if kind in KINDS else None


Failures = Annotated[
    Annotated[JobFailures, Tag("as:job")]
    | Annotated[NodeFailures, Tag("as:node")]
    | Annotated[CorrelatedFailures, Tag("as:correlated")]
    | Annotated[InjectedFailures, Tag("as:injected")]
    | Annotated[TraceFailures, Tag("as:trace")],
    Discriminator(_kind, custom_error_type="kind", custom_error_message="no such kind"),
]
