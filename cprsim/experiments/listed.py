"""Recovery systems that a scenario lists, as policies: as they stand there, or at other intervals.

Most systems have one option that says how often the job is saved: `System.interval` names it. With
everything else as the entry says, a job has one policy per interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isclose

from cprsim.failures.distributions import Constant
from cprsim.records import Cluster, Costs, Duration, OnFailure, RecoveryPolicy, Transfer
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Capture, Scope
from cprsim.recovery.system import JobFacts, System, noticed_after
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario import Scenario, dump_entry
from cprsim.scenario.failures import EMB_PS
from cprsim.scenario.recovery import RecoverySection
from cprsim.scenario.system_options import options_of

SELECTED = "selected"  # how the interval came about
SHORT = 1e-6  # of a job: an interval that no system takes as it is, if it takes only longer ones


@dataclass(frozen=True, slots=True)
class JobNow:
    """What a system's policy follows from, besides what stays as the scenario says it."""

    cluster: Cluster
    costs: Costs  # of the system, its own included
    scopes: tuple[Scope, ...]
    shares: tuple[float, ...]  # of the failures, one for each scope
    mtbf_h: float


@dataclass(frozen=True, slots=True)
class ListedSystem:
    """An entry of `recovery` that is a recovery system."""

    scenario: Scenario
    entry: RecoverySection

    @property
    def name(self) -> str:
        """What the tables call it."""
        return self.entry.name

    @property
    def system(self) -> System:
        return SYSTEMS[self.entry.strategy]

    @property
    def option(self) -> str | None:
        """The option that is its interval; None where it has none to choose."""
        return self.system.interval

    def policy(self, job: JobNow, interval_h: float | None = None) -> RecoveryPolicy:
        """What the system does in a job.

        Raises ParameterError it can't serve this job, or has no interval.
        """
        options = options_of(self.entry.strategy, self.entry.options)
        if interval_h is not None:
            assert self.option is not None, "it has an interval to choose"
            options = replace(options, **{self.option: self._said_h(interval_h)})
        scopes = job.scopes
        if not self.scenario.scopes:  # then the entry may have a detection of its own
            scopes = (replace(scopes[0], detect=job.costs.detect), *scopes[1:])
        policy = self.system.plan(self._facts(job, scopes), options, self.name)
        policy = policy.with_storage(job.costs.reliability)
        require_legal(policy, job.cluster, scopes)
        own = self.entry.costs
        if own is not None and own.detect is not None:
            policy = noticed_after(policy, job.costs.detect)
        rule = self.entry.strategy if interval_h is None else SELECTED
        if interval_h is None:
            every_h = [one.every_h for one in policy.captures if one.every_h is not None]
            interval_h = min(every_h, default=inf)
        return RecoveryPolicy(
            self.name, OnFailure.BY_RULES, interval_h, rule, system=policy,
            loses_as=self.entry.strategy if self.system.not_counted else None,
        )  # fmt: skip

    def saves(self, job: JobNow) -> tuple[float, Duration | None]:
        """The shortest interval that it takes [h], and what one of its saves stalls the job.

        0 and None where that can't be told: where no capture has the interval as it is given.
        """
        longest_h = self.scenario.job.useful_h
        place = _capture_of(self.policy(job, longest_h), longest_h)
        if place is None:
            return 0.0, None
        shortest = self._captures(job, SHORT * longest_h)
        if place >= len(shortest):
            return 0.0, None
        return shortest[place].every_h or 0.0, shortest[place].stall

    def own_interval_h(self, job: JobNow) -> float | None:
        """The interval that the entry says, or that follows from it [h]; None: it can't be told."""
        longest_h = self.scenario.job.useful_h
        place = _capture_of(self.policy(job, longest_h), longest_h)
        captures: tuple[Capture, ...] = self.policy(job).system.captures
        return None if place is None or place >= len(captures) else captures[place].every_h

    def _captures(self, job: JobNow, interval_h: float) -> tuple[Capture, ...]:
        captures: tuple[Capture, ...] = self.policy(job, interval_h).system.captures
        return captures

    def text(self, interval: str | None = None) -> str:
        """A complete entry of `recovery` in a scenario."""
        options = dict(self.entry.options or {})
        if interval is not None and self.option is not None:
            options[self.option] = interval
        return dump_entry(self.entry, options)

    def _said_h(self, interval_h: float) -> float:
        """Never, as an option says it: an interval as long as the job is no save."""
        return min(interval_h, self.scenario.job.useful_h)

    def _facts(self, job: JobNow, scopes: tuple[Scope, ...]) -> JobFacts:
        section, costs = self.scenario.cluster, job.costs
        n_nodes = section.n_nodes_of[section.state_role]
        return JobFacts(
            useful_h=self.scenario.job.useful_h,
            cluster=job.cluster,
            role=section.state_role,
            scopes=scopes,
            mtbf_h=job.mtbf_h,
            save_stall=_alone(costs, costs.save_stall, n_nodes),
            load=_alone(costs, costs.load, n_nodes),
            reschedule=costs.reschedule,
            save_background=None
            if costs.save_background is None
            else _alone(costs, costs.save_background, n_nodes),
            step_h=self.scenario.job.step_h,
            state_bytes=section.largest_bytes,
            whole_bytes=None if section.shard_bytes is None else n_nodes * section.shard_bytes,
            links=section.links,
            node_bytes_per_h=section.link_bytes_per_h,
            remote_bytes_per_h=None
            if costs.storage is None
            else costs.storage.bandwidth_bytes_per_h,
            shares=job.shares,
            replicas=section.replicas,
            is_emb_ps=section.state_role == EMB_PS,
        )


def _capture_of(policy: RecoveryPolicy, interval_h: float) -> int | None:
    """The number of the capture that has this interval."""
    for number, capture in enumerate(policy.system.captures):
        if capture.every_h is not None and isclose(capture.every_h, interval_h):
            return number
    return None


def _alone(costs: Costs, cost: Duration | Transfer, n_nodes: int) -> Duration:
    """A cost as a duration; a transfer as if nobody else were about."""
    return Constant(costs.mean_h(cost, n_nodes)) if isinstance(cost, Transfer) else cost
