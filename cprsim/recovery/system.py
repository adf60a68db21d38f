"""What a recovery system is to a user: a name, options, and the policy that it makes of a job.

A file of `recovery/systems/` builds one; nothing else has to know of it. A system sets only what
its mechanism determines: detection, rescheduling, links, step time and state come from the job,
unless an option says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Cluster, Duration
from cprsim.recovery.policy import Policy, Scope, StageKind

Kind = Literal["time", "size", "bandwidth", "count", "share", "number", "table", "times", "word"]


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is known of a job before it runs; hours, bytes, bytes per hour."""

    useful_h: float
    cluster: Cluster
    role: str  # whose state is saved
    scopes: tuple[Scope, ...]
    mtbf_h: float  # job hours over expected failures; infinite where nothing fails
    save_stall: Duration
    load: Duration
    reschedule: Duration
    save_background: Duration | None = None
    step_h: float | None = None
    state_bytes: float | None = None  # of one node of the role
    node_bytes_per_h: float | None = None  # of one node's link to the others
    remote_bytes_per_h: float | None = None  # of the remote storage, shared by all

    @property
    def n_nodes(self) -> int:
        """Nodes of the role whose state is saved."""
        return len(self.cluster.slots(self.role))

    def needed(self, name: str, wanted_by: str) -> float:
        """A fact that a system can't do without.

        Raises
        ------
        ParameterError
            the job does not say it
        """
        value: float | None = getattr(self, name)
        if value is None:
            raise ParameterError(f"{wanted_by} needs {WORDS[name]}")
        return value

    def to_peer(self, wanted_by: str, copies: int = 1) -> Duration:
        """A node's state over its own link, so many times."""
        state_bytes = self.needed("state_bytes", wanted_by)
        return Constant(copies * state_bytes / self.needed("node_bytes_per_h", wanted_by))

    def to_remote(self, wanted_by: str) -> Duration:
        """The state of all nodes of the role over the remote storage's bandwidth."""
        state_bytes = self.n_nodes * self.needed("state_bytes", wanted_by)
        return Constant(state_bytes / self.needed("remote_bytes_per_h", wanted_by))


WORDS = {
    "step_h": "the time of a training step: give `job.step`",
    "state_bytes": "the state of a node: give `cluster.state`",
    "node_bytes_per_h": "the bandwidth between nodes: give `cluster.link`",
    "remote_bytes_per_h": "the bandwidth of the remote storage: give `storage.bandwidth`",
}


def noticed_after(policy: Policy, detect: Duration) -> Policy:
    """The policy with a detection that takes this where it would take what the scope says."""
    rules = []
    for rule in policy.rules:
        stages = tuple(
            replace(stage, cost=detect)
            if stage.kind is StageKind.DETECT and stage.cost is None
            else stage
            for stage in rule.stages
        )
        rules.append(replace(rule, stages=stages))
    return replace(policy, rules=tuple(rules))


def option(default: Any, kind: Kind, words: str) -> Any:
    """A field of a system's options: its default (None: follows from the job) and what it means."""
    return field(default=default, metadata={"kind": kind, "words": words})


@dataclass(frozen=True, slots=True)
class System:
    """A recovery system.

    Parameters
    ----------
    options : a frozen dataclass whose fields are made by `option`
    plan : what is known of the job, the options and the entry's name to a policy; raises
        ParameterError where the system can't serve this job
    source : where the mechanism is described, for tables and documents
    interval : the option that is the progress between saves, where there is one to choose
    not_counted : what it loses that no number here shows, as a sentence goes on; nothing: all is
    """

    name: str
    summary: str
    source: str
    options: type[Any]
    plan: Callable[[JobFacts, Any, str], Policy]
    interval: str | None = None
    not_counted: str = ""
