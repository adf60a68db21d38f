"""The sections `scopes` and `silent`: what failures kill, and how each kind is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StrictBool

from cprsim.scenario.distributions import Duration
from cprsim.scenario.failures import Failures, NodeFailures, TraceFailures
from cprsim.scenario.quantities import Model, Mtbf, PositiveShare, PositiveTime, Time

SILENT = "silent"  # name of the scope and of its source
SCOPE_NAME = r"^[A-Za-z][A-Za-z0-9 _-]{0,39}$"


class ScopeSection(Model):
    """One kind of failure."""

    name: str = Field(strict=True, pattern=SCOPE_NAME, description="What it is called.")
    share: PositiveShare | None = Field(
        None, description="Share of the failures, a number; all add up to 1. Or give `failures`."
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
        elif (own := self.failures) is not None:
            lifetimes = own.roles.values() if isinstance(own, NodeFailures) else [own]
            if any({"mtbf_95", "spread_95"} & one.given.keys() for one in lifetimes):
                where = "are drawn from in the section `failures` alone: leave them out here"
                yield "failures", f"`mtbf_95` and `spread_95` {where}"


Scopes = Annotated[
    tuple[ScopeSection, ...],
    Field(
        max_length=16,
        description="Kinds of failures, with their shares; absent: every failure kills a node.",
    ),
]


class CheckSection(Model):
    """A check of the state, which finds every silent error."""

    takes_h: PositiveTime = Field(description="What a check stalls the job [time].")
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
        """Something notices an error."""
        if self.latency is None and self.check is None:
            yield "latency", "is missing: say how errors are noticed, by `latency` or by `check`"
