"""The section `scopes`: what failures kill, and how long each kind goes unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from cprsim import records
from cprsim.recovery import policy
from cprsim.scenario.distributions import Duration, duration_of
from cprsim.scenario.failures import Failures, NodeFailures
from cprsim.scenario.quantities import Model
from cprsim.scenario.traces import TraceFailures
from cprsim.units import TIME, Quantity

Notice = Annotated[float, Quantity(TIME, "0 s", "100 h", "2 min")]
SCOPE_NAME = r"^[A-Za-z][A-Za-z0-9 _-]{0,39}$"


class ScopeSection(Model):
    """One kind of failure."""

    name: str = Field(strict=True, pattern=SCOPE_NAME, description="What it is called.")
    share: float | None = Field(
        None,
        strict=True,
        gt=0,
        le=1,
        description="Share of the failures, a number; all add up to 1. Or give `failures`.",
    )
    failures: Failures | None = Field(
        None,
        description="Failures of this kind alone, besides those of the section `failures` and "
        "independent of them; `kind` says where from. They age on the same clock.",
    )
    reach: Literal["process", "gpu", "node", "rack", "all"] = Field(
        "node",
        description="What it kills: a process (host memory stays), a gpu, a node, the rack of the "
        "node that fails (`cluster.rack`), or all nodes.",
    )
    detect: Duration | None = Field(
        None, description="Until it is noticed: a time or a distribution; default `costs.detect`."
    )
    needs_node: bool | None = Field(
        None,
        strict=True,
        description="Whether a struck node is replaced; default: from `node` on. A node that is "
        "replaced takes all its memory with it.",
    )

    notice_h: Notice = Field(
        0.0,
        alias="notice",
        description="How long before it strikes a failure is announced [time], for systems that "
        "save on notice; default 0 s.",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        """It is said once how often such failures strike."""
        if self.share is not None and self.failures is not None:
            yield (
                "share",
                "give either `share` (of the section `failures`) or `failures` of its own",
            )
        elif self.share is None and self.failures is None:
            yield "share", "is missing: the share of the failures, or give `failures` of its own"
        if isinstance(self.failures, TraceFailures):
            yield "failures.kind", "a log is replayed in the section `failures` alone"
        elif self.failures is not None and _has_intervals(self.failures):
            yield (
                "failures",
                "`mtbf_95` and `spread_95` are drawn from in the section `failures` alone: leave "
                "them out here",
            )

    @property
    def kills(self) -> policy.Reach:
        """What it kills, as an engine compares it."""
        return policy.Reach[self.reach.upper()]

    @property
    def replaces(self) -> bool:
        """Whether a struck node is replaced."""
        if self.needs_node is not None:
            return self.needs_node
        return self.kills >= policy.Reach.NODE

    def record(self, detect: records.Duration) -> policy.Scope:
        """The same as the engines take it; `detect` is what `costs` say."""
        return policy.Scope(
            self.name,
            self.kills,
            detect if self.detect is None else duration_of(self.detect),
            self.replaces,
            self.notice_h,
        )


Scopes = Annotated[
    tuple[ScopeSection, ...],
    Field(
        max_length=16,
        description="Kinds of failures, with their shares; absent: every failure kills a node.",
    ),
]


def _has_intervals(failures: Failures) -> bool:
    """Whether an interval of what was fitted is given, of any of the lifetimes."""
    lifetimes = failures.roles.values() if isinstance(failures, NodeFailures) else [failures]
    return any(
        getattr(lifetime, name, None) is not None
        for lifetime in lifetimes
        for name in ("mtbf_95_h", "spread_95")
    )
