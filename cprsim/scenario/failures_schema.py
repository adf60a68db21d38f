"""The section `failures`: where failures come from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from cprsim.scenario.correlated_schema import CorrelatedFailures
from cprsim.scenario.lifetime_schema import Clock, Lifetime, Start
from cprsim.scenario.quantities import Model, NodeCount, PositiveCount, Quantity
from cprsim.units import TIME

EMB_PS, TRAINER, SYNC_PS, ANY = "emb_ps", "trainer", "sync_ps", "any"
ROLE_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,59}$"
KINDS = ("job", "node", "correlated", "injected", "trace")
MAX_INJECTED = 10_000
MAX_INSTANTS = 1000

RoleName = Annotated[
    str,
    Field(
        strict=True,
        pattern=ROLE_NAME,
        description="Role that is struck: emb_ps, trainer, sync_ps, any (all nodes), or one of "
        "`others`.",
        examples=[EMB_PS, TRAINER, ANY],
    ),
]
Together = Annotated[
    PositiveCount, Field(description="How many randomly chosen nodes of the role fail together.")
]


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


class InjectedFailures(Model):
    """A given number of failures, at random or given instants of the job's progress."""

    kind: Literal["injected"] = Field(description="So many failures, on the progress clock.")
    count: int | None = Field(
        None,
        strict=True,
        ge=1,
        le=MAX_INJECTED,
        description="Failures per job, uniform over its progress; or give `at`.",
    )
    at_h: tuple[Annotated[float, Quantity(TIME, "0 h", "100000 h", "10.5 h")], ...] | None = Field(
        None,
        alias="at",
        min_length=1,
        max_length=MAX_INSTANTS,
        description="Instants of the failures [time of progress]; or give `count`.",
        examples=[["3 h", "10.5 h"]],
    )
    role: RoleName = EMB_PS
    together: Together | None = Field(
        None,
        description="How many randomly chosen nodes of the role fail together (default 1); or give "
        "`servers`.",
    )
    servers: tuple[NodeCount, ...] | None = Field(
        None,
        min_length=1,
        description="Numbers from 0, within the role, of the nodes that fail each time; or give "
        "`together`.",
        examples=[[0, 3]],
    )

    @property
    def clock(self) -> Literal["progress"]:
        """Injected failures always lie on the progress clock: every strategy meets all of them."""
        return "progress"

    @property
    def n_together(self) -> int:
        """Nodes that fail each time."""
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
        if self.servers is not None and len(set(self.servers)) < len(self.servers):
            yield "servers", f"{list(self.servers)} names a server twice"
        if self.servers is not None and self.role == ANY:
            yield "servers", "numbers nodes within one role, so `role` cannot be `any`"
        if self.at_h is not None and len(set(self.at_h)) < len(self.at_h):
            yield "at", "names an instant twice; for nodes that fail together use `together`"


class Period(Model):
    """Days of a trace that are used."""

    first: date = Field(alias="from", description="First day, for example 2000-01-01.")
    last: date = Field(alias="to", description="The day after the last one, such as 2006-01-01.")

    def problems(self) -> Iterator[tuple[str, str]]:
        """It has a length."""
        if self.last <= self.first:
            yield "to", f"{self.last} does not lie after `from` ({self.first})"


class Columns(Model):
    """Names of the columns of a tidy CSV."""

    node: str = Field("node", description="Column with the node's name.", max_length=200)
    start: str = Field("start", description="Column with the outage's start.", max_length=200)
    end: str = Field("end", description="Column with the outage's end.", max_length=200)


class TraceFailures(Model):
    """Outages that were observed, replayed on the wall clock from a random instant."""

    kind: Literal["trace"] = Field(description="Outages from a file.")
    file: str = Field(
        strict=True,
        min_length=1,
        max_length=1000,
        description="Path of the trace, relative to the scenario; ${CPRSIM_NAME} is an "
        "environment variable; no others are replaced.",
        examples=["${CPRSIM_DATA}/failures/infinitehbd/fault_trace.json"],
    )
    format: Literal["tidy", "infinitehbd", "lanl"] = Field(
        description="tidy (CSV: node, start, end), infinitehbd (JSON of start and end events) or "
        "lanl (LA-UR-05-7318, CSV, may be .xz)."
    )
    nodes: PositiveCount | None = Field(
        None,
        description="Nodes that were observed, with those that never failed. Absent: those in the "
        "file.",
    )
    system: PositiveCount | None = Field(None, description="Of lanl: which system.", examples=[2])
    period: Period | None = Field(None, description="Of lanl: which days; absent: all.")
    columns: Columns | None = Field(None, description="Of tidy: what its columns are called.")
    time_unit: Literal["ms", "s", "min", "h", "d"] | None = Field(
        None, description="Of tidy: unit of its times; absent: they are ISO 8601 time stamps."
    )

    @property
    def clock(self) -> Literal["wall"]:
        """A trace runs on wall time."""
        return "wall"

    def problems(self) -> Iterator[tuple[str, str]]:
        """Each format has its own keys."""
        own = {"lanl": ("system", "period"), "tidy": ("columns", "time_unit")}
        for form, keys in own.items():
            for key in keys:
                if getattr(self, key) is not None and self.format != form:
                    yield key, f"belongs to format `{form}`, not `{self.format}`"
        if self.format == "lanl" and self.system is None:
            yield "system", "is missing: a lanl file holds many systems, say which (1 to 24)"


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
