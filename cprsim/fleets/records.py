"""What the rooms of a fleet hand on: its jobs, what they share, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cprsim.fleets.nodes import Capacity
from cprsim.records import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Shared:
    """What all jobs of a fleet share."""

    capacity: Capacity = field(default_factory=Capacity)
    storage_bytes_per_h: float | None = None  # None: each job has its storage to itself
    n_savers: int | None = None  # jobs that may save at once; None: all

    @property
    def jobs_meet(self) -> bool:
        """Whether what befalls one job while it runs depends on the others."""
        limits = (self.capacity.n_spares, self.storage_bytes_per_h, self.n_savers)
        return any(limit is not None for limit in limits)

    @property
    def only_by_spares(self) -> bool:
        """Whether jobs meet at nothing but spares, and each failed node is repaired at once."""
        by_storage = self.storage_bytes_per_h is not None or self.n_savers is not None
        capacity = self.capacity
        return capacity.n_spares is not None and capacity.n_crews is None and not by_storage


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job of a fleet: when it comes, of which kind, and whose failures it meets."""

    at_h: float
    kind: int
    replication: int  # of its kind's scenario, among those of this history of the fleet


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one job, in hours of the fleet's clock."""

    start_h: float
    wall_h: float  # from its start to its end
    finished: bool
    useful_h: float
    hours: tuple[float, ...]  # by part
    n_failures: int
    n_saves: int
    stale_h: float = 0.0  # work that shards lost while the job went on, summed over the shards


@dataclass(frozen=True, slots=True)
class JobRows:
    """What became of all jobs of one history of a fleet under one strategy; a row per job."""

    parts: tuple[str, ...]
    kind: Ints  # (n_jobs,)
    n_nodes: Ints
    arrive_h: Floats
    start_h: Floats
    wall_h: Floats
    finished: Bools
    useful_h: Floats
    hours: Floats  # (n_jobs, n_parts)
    n_failures: Ints
    n_saves: Ints
    pls: Floats  # of lost samples, as a share of the job's (docs/model.md, section 7)
    written_bytes: Floats  # to the remote storage
    by_events: bool  # whether SimPy ran it

    @property
    def end_h(self) -> Floats:
        return self.start_h + self.wall_h

    @property
    def queued_h(self) -> Floats:
        """Hours from arrival to start."""
        return self.start_h - self.arrive_h

    @property
    def overhead(self) -> Floats:
        """Share of the useful time, without the hours in the queue."""
        return (self.wall_h - self.useful_h) / self.useful_h

    @property
    def node_h(self) -> Floats:
        """Node-hours from start to end."""
        return self.n_nodes * self.wall_h

    @property
    def lost_node_h(self) -> Floats:
        """Node-hours of overhead."""
        return self.n_nodes * (self.wall_h - self.useful_h)

    def hours_of(self, part: str) -> Floats:
        """Hours of one part, (n_jobs,); zeros where the strategy has no such part."""
        if part not in self.parts:
            return np.zeros(len(self.kind))
        hours: Floats = self.hours[:, self.parts.index(part)]
        return hours
