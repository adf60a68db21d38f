"""The section `silent`: errors that corrupt the state, and how they are noticed."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Constant, Exponential
from cprsim.records import Clock, Cluster
from cprsim.recovery.policy import CHECK, NO_CONTENT, Capture, Reach, Scope
from cprsim.scenario.distributions import Duration, duration_of
from cprsim.scenario.quantities import Model, Mtbf, PositiveTime

SILENT = "silent"  # name of the scope and of its source


class CheckSection(Model):
    """A check of the state, which finds every silent error."""

    takes_h: PositiveTime = Field(alias="takes", description="What a check stalls the job [time].")
    every_h: PositiveTime | None = Field(
        None,
        alias="every",
        description="Progress between two checks [time]; absent: one before each save.",
    )


class SilentSection(Model):
    """Silent errors: they corrupt the state, and are noticed later."""

    mtbf_h: Mtbf = Field(
        alias="mtbf",
        description="Mean time between silent errors of the job [time], on the failures' clock.",
    )
    latency: Duration | None = Field(
        None,
        description="Wall time from an error until it is noticed: a time or a distribution; "
        "absent: checks alone notice it.",
    )
    check: CheckSection | None = Field(None, description="Checks of the state; absent: none.")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Something notices an error."""
        if self.latency is None and self.check is None:
            yield "latency", "is missing: say how errors are noticed, by `latency` or by `check`"

    @property
    def scope(self) -> Scope:
        """An error as it is noticed: all processes start again on their nodes."""
        latency = None if self.latency is None else duration_of(self.latency)
        return Scope(SILENT, Reach.PROCESS, Constant(0.0), False, silent=True, latency=latency)

    @property
    def capture(self) -> Capture | None:
        """The checks as an engine makes them, if there are any."""
        check = self.check
        if check is None:
            return None
        return Capture(CHECK, check.every_h, stall=Constant(check.takes_h), parts=NO_CONTENT)

    def source(self, cluster: Cluster, clock: Clock) -> JobClock:
        """When errors strike."""
        return JobClock(Exponential(self.mtbf_h), range(cluster.n_nodes), clock=clock)
