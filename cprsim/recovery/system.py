"""A recovery system: a name, options, and a function from a job's profile to a policy.

A file of `recovery/systems/` defines one; no other file names it. A system sets only the values
that its mechanism determines: detection, rescheduling, links, step time and state come from the
job, unless an option overrides them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Any

from cprsim.errors import MissingKeyError, ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.options import Option, OptionValues
from cprsim.job.policy import Policy, Scope, StageKind
from cprsim.job.records import Clock, Cluster, Costs, Duration, Storage

__all__ = ["Family", "JobProfile", "Option", "Provenance", "System", "noticed_after"]


@dataclass(frozen=True, slots=True)
class JobProfile:
    """Profile of a job before it runs, in hours, bytes and bytes per hour."""

    useful_h: float
    cluster: Cluster
    role: str  # whose state is saved
    scopes: tuple[Scope, ...]
    mtbf_h: float  # job hours over expected failures; infinite where nothing fails
    costs: Costs
    step_h: float | None = None
    state_bytes: float | None = None  # of the node of the role that holds most
    whole_bytes: float | None = None  # of all nodes of the role; None: as many of each
    links: Mapping[str, float] = field(default_factory=dict)  # of a node, by name
    node_bytes_per_h: float | None = None  # of one node's link to the others
    shares: tuple[float, ...] = ()  # of failures, one for each scope; none: as many of each
    replicas: int = 1  # of the state, each sharded over as many nodes of the role
    is_emb_ps: bool = False  # the role holds embedding shards, which exist once
    # of the paper's strategies alone, from here on
    mtbf_shard_h: float = inf  # of failures that strike a shard; infinite where none does
    n_shards_together: float = 0.0  # that such a failure strikes, on average
    overlapped_fraction: float = 0.0  # of detection and rescheduling, that the others work on
    waiting_fraction: float = 0.0  # waits in which nodes fail, of the hours without waits
    clock: Clock = Clock.PROGRESS  # on which failures age

    @property
    def n_nodes(self) -> int:
        """Nodes of the role whose state is saved."""
        return len(self.cluster.slots(self.role))

    @property
    def save_stall(self) -> Duration:
        return self._at_full_bandwidth(self.costs.save_stall)

    @property
    def save_background(self) -> Duration | None:
        background = self.costs.save_background
        return None if background is None else self._at_full_bandwidth(background)

    @property
    def load(self) -> Duration:
        return self._at_full_bandwidth(self.costs.load)

    @property
    def reschedule(self) -> Duration:
        return self.costs.reschedule

    @property
    def remote_bytes_per_h(self) -> float | None:
        """Of the remote storage, shared by all."""
        storage = self.costs.storage
        return None if storage is None else storage.bandwidth_bytes_per_h

    def _at_full_bandwidth(self, cost: Duration | Storage) -> Duration:
        """Return a cost as a duration; for a transfer, without other traffic over the storage."""
        if isinstance(cost, Storage):
            return Constant(self.costs.mean_h(cost, self.n_nodes))
        return cost

    @property
    def stall_h(self) -> float:
        """How long a save stalls the job, on average."""
        return self.save_stall.mean_h

    @property
    def background_h(self) -> float:
        """How long a save is written behind the job; 0 for one that is all stall."""
        return 0.0 if self.save_background is None else self.save_background.mean_h

    @property
    def detected_h(self) -> float:
        """The longest detection of all scopes."""
        return max(scope.detect.mean_h for scope in self.scopes)

    @property
    def replaced_h(self) -> float:
        """From a failure until its node is replaced."""
        return self.detected_h + self.reschedule.mean_h + self.costs.further_h

    def failures_per_h(self, scope: Scope) -> float:
        """How often failures of one scope strike [1/h]; 0 where nothing fails."""
        shares = self.shares or (1.0,) * len(self.scopes)
        return shares[self.scopes.index(scope)] / sum(shares) / self.mtbf_h

    def striking(self, scopes: Collection[Scope]) -> JobProfile:
        """Return the job with the failures of these scopes only."""
        per_h = sum(self.failures_per_h(scope) for scope in self.scopes if scope in scopes)
        return replace(self, mtbf_h=1.0 / per_h if per_h else inf)

    def needed(self, name: str, by: str = "it") -> float:
        """A fact that a system can't do without."""
        value: float | None = getattr(self, name)
        if value is None:
            words, key = NEEDED_FACTS[name]
            sent = name == "state_bytes" and self.node_bytes_per_h is None
            more = " (and to send it `cluster.link`)" * sent
            raise MissingKeyError(f"{by} needs {words}: give `{key}`{more}", key)
        return value

    def to_peers_h(self, copies: int) -> float:
        """Return the hours to send a node's state over its own link `copies` times."""
        return copies * self.needed("state_bytes") / self.needed("node_bytes_per_h")

    @property
    def to_peer_h(self) -> float:
        """A node's state over its own link."""
        return self.to_peers_h(1)

    @property
    def snapshot_h(self) -> float:
        """How long a copy of a node's state to its host memory takes.

        Of a save that is all stall it is what writing the state leaves of it, and not less than to
        send the state over the link; a save shorter than the writing is all copy.
        """
        write_h = self.write_h
        if self.save_background is not None or (write_h is not None and self.stall_h < write_h):
            return self.stall_h
        if write_h is None or self.node_bytes_per_h is None:
            key = "storage" if self.costs.storage is None else "cluster.state"
            raise MissingKeyError(
                "nothing says how long a copy to host memory takes, of a save that is one time: "
                "give `storage`, `cluster.state` and `cluster.link`; or `snapshot`; or "
                "`costs.save` with `stall` and `background`",
                key if write_h is None else "cluster.link",
            )
        return max(self.stall_h - write_h, self.to_peer_h)

    @property
    def write_h(self) -> float | None:
        """How long the storage takes to write the state; None where nothing says it."""
        storage = self.costs.storage
        if storage is None or not storage.shard_bytes:
            return None
        return storage.transfer_h(self.n_nodes) / self.replicas

    @property
    def persist_h(self) -> float:
        """How long a whole save takes to be written to where it is kept, copies before it apart."""
        if self.save_background is None:
            return self.write_h or self.stall_h
        return self.save_background.mean_h

    @property
    def all_bytes(self) -> float:
        """The state of all nodes of the role, each part once."""
        whole_bytes = self.whole_bytes
        if whole_bytes is None:
            whole_bytes = self.n_nodes * self.needed("state_bytes")
        return whole_bytes / self.replicas


NEEDED_FACTS = {  # by fact: what it is, and the key that gives it
    "step_h": ("the time of a training step", "job.step"),
    "state_bytes": ("the state of a node", "cluster.state"),
    "node_bytes_per_h": ("the bandwidth between nodes", "cluster.link"),
    "remote_bytes_per_h": ("the bandwidth of the remote storage", "storage.bandwidth"),
}


def noticed_after(policy: Policy, detect: Duration) -> Policy:
    """Return the policy with `detect` as the cost of each detection that has none."""
    return policy.with_stages(
        lambda stage: (
            replace(stage, cost=stage.cost or detect) if stage.kind is StageKind.DETECT else stage
        )
    )


class Family(StrEnum):
    """What recovery systems have in common, in the order in which they are listed."""

    ONE_SAVE = "periodic saves"
    PARITY = "parity"
    DELTAS = "deltas"
    BEHIND = "asynchronous saves"
    MEMORY = "memory and disks of nodes"
    LEVELS = "multilevel checkpoints"
    AFTERWARDS = "saved or moved around a failure"
    EACH_STEP = "copied in each step"
    EXPERTS = "experts in turn"
    REPLAY = "undo or replay"
    REPLICAS = "replica groups"
    ELASTIC = "elastic training"
    OWN = "of your own"


class Provenance(StrEnum):
    """How a mechanism is known."""

    PUBLISHED = "published"  # read in the authors' text or code
    SECONDARY = "secondary"  # told by others
    RECALLED = "recalled"  # from memory, to be checked


@dataclass(frozen=True, slots=True)
class System:
    """A recovery system.

    Parameters
    ----------
    options : by their names
    mechanism : function of the job's profile, and of an object with the options and the entry's
        `name`, to a policy; raises ParameterError if the system can't serve this job
    source : where the mechanism is described, for tables and documents
    interval : the option that is the progress between saves, if the user can choose it
    not_counted : losses that no number here includes, as the end of a sentence; empty: none
    family : of systems of one mechanism
    cited : the paper or code, in few words
    mark : how its mechanism is known
    assumed, not_modelled : in sentences
    runs_as : a maintained implementation that a job can run today; empty: a paper only
    only_on : the platform outside of which that does not run; empty: it runs anywhere
    """

    name: str
    summary: str
    source: str
    options: Mapping[str, Option]
    mechanism: Callable[[JobProfile, Any], Policy]
    interval: str | None = None
    not_counted: str = ""
    family: Family = Family.OWN
    cited: str = ""
    mark: Provenance | None = None
    assumed: str = ""
    not_modelled: str = ""
    runs_as: str = ""
    only_on: str = ""

    @property
    def said_to_run_as(self) -> str:
        """Its maintained implementation, and the platform, in words."""
        return self.runs_as + f" ({self.only_on} only)" * bool(self.only_on)

    def plan(self, job: JobProfile, settings: Mapping[str, Any], name: str) -> Policy:
        """The policy of an entry of this name that gives some options; raises ParameterError."""
        try:
            return self.mechanism(job, OptionValues(self.options, settings, job, name))
        except ParameterError as error:
            raise ParameterError(f"{name}: {error}") from error

    @property
    def needs(self) -> dict[str, Any]:
        """Options without a default, as a scenario may write them."""
        examples = {key: option.needed for key, option in self.options.items()}
        return {key: example for key, example in examples.items() if example is not None}

    def default(self, option: str) -> Any:
        """The default of an option; None where there is no such option."""
        return self.options[option].default if option in self.options else None

    def unknown(self, settings: Collection[str]) -> tuple[str, ...]:
        """Options that no source has a figure for, without those that are given."""
        defaults = self.options.keys() - settings
        return tuple(key for key in self.options if key in defaults and self.options[key].unknown)
