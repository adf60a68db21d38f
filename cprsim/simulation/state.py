"""State of a replication in the step: the job, its slots, its recoveries.

Compiled, they are numpy records and arrays; under SimPy, objects and lists of them.
"""

from __future__ import annotations

from collections.abc import MutableMapping, MutableSequence
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np

from cprsim.job.legal import MOST_TIERS
from cprsim.job.policy import MOST_GENERATIONS, MOST_IN_FLIGHT
from cprsim.job.records import EventKind, Floats, Ints
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.records import Places, as_record, dtype_of, record, zeros
from cprsim.simulation.spec import COLUMNS, MOST_CAPTURES, NONE, OUTSIDE, Spec, link_of, spec_of

N_LEVELS = OUTSIDE
N_OF_LOSS = 5
"""Of a shard that went back while the job went on: replication, slot, progress, and hours of work
since the content and since the later of that and its own last reload."""


@record
class CaptureState:
    """The saves of a capture."""

    due_h: float  # progress at which the next is due; infinite without one
    completes_h: float  # progress at which a save that is due completes a content
    n_begun: int
    n_in_flight: int


@record
class Content:
    """What a save has committed to a tier."""

    progress_h: float
    order: int  # of its writing
    corrupt: bool


@record
class Flight:
    """A save, or a flush, in the background; also the save that stalls the job."""

    content_h: float  # progress of what it saves
    due_h: float  # progress from which it is due again if it is abandoned ...
    completes_h: float  # ... and completes a content; infinite: it is a part of one
    at_h: float  # instant at which it commits
    number: int  # of those of its capture that began before
    order: int  # of its begin in the background, among those of all copies


@record
class Recovery:
    """A recovery of some slots, in one of its stages."""

    rule: int  # NONE: this place is free
    stage: int  # of its rule
    kind: int  # of that stage
    ends_at_h: float  # the stage; infinite: others decide when
    load_h: float
    replay_h: float
    detect_h: float
    speed: float  # of the job in stages that do not block it
    began_bytes: float  # odometer of the link as its load began
    number: int  # of its failure
    n_slots: int
    begun: int  # the nth of all replications to begin
    serial: int  # of its failure; both counts go through all replications
    n_again: int  # attempts to restart that will fail yet
    n_loads: int  # shards to load ...
    source: int  # ... from this tier
    blocks: bool  # the stage blocks the job
    loads: bool  # it has a load that takes time
    shares: bool  # the link with other loads
    hands_over: bool  # its shards to later failures that take them back again
    of_all: bool  # its rule reverts all


@record
class Slot:
    """A slot of the job; its lists are kept in the first rows, whatever the slot.

    Further rows, one for each spare, hold nodes in repair alone.
    """

    wiped: Annotated[list[int], N_LEVELS]  # order of the last wipe of each level, or WITHOUT
    recovery: int  # that it is in, or NONE
    is_recent: bool  # it is in the list `recent`
    struck: int  # the nth slot that the latest failure strikes
    recent: int  # the nth slot of which something may be missing
    left: bool  # the live tiers: other slots hold all copies
    vacant: bool  # its node is lost, and it has no other
    requested: bool  # and a new one is requested
    queued: int  # the nth slot that waits for a node, the first to ask first
    returns_at_h: float  # the nth node in repair
    reloaded_at_h: float  # progress at which its shard alone went back last ...
    course: int  # ... in this course
    loaded_by: int  # the latest recovery that loads its shard, by serial
    shard_bytes: float  # where shards differ
    counted: int  # the latest count of lost units that met the nth unit


@record
class JobState:
    """A job: its clock, work, saves, failures, copies and nodes."""

    now_h: float  # wall time since its start
    status: int  # RUNNING, or what has become of it
    # work
    progress_h: float
    frontier_h: float  # the most progress so far: below it, work is done again
    speed: float  # if nothing blocks or stalls it
    replay_speed: float
    hours: Annotated[list[float], len(COLUMNS)]
    # saves
    stall_ends_at_h: float
    stalled_by: int  # capture, whose first free flight is the save
    waits_for: int  # capture, whose saves in flight are too many, or STOPPING
    n_saves: int  # contents that were committed
    saves: Annotated[list[CaptureState], MOST_CAPTURES]
    flights: Annotated[list[list[Flight]], MOST_CAPTURES, MOST_IN_FLIGHT]  # in order of start
    # failures
    n_met: int  # those that struck no slot included
    n_failures: int
    n_failures_without_progress: int  # in a row, without first-time work between them
    frontier_at_failure_h: float
    course: int  # number of stretches without a rollback, of all replications
    stale_h: float  # summed over shards: since the content that they went back to
    stale_since_reload_h: float  # since the later of that and their own last reload
    n_losses: int  # rows of `Sim.losses` that are written, of all replications
    # recoveries
    n_recoveries: int  # places in use, the free ones between them included
    n_begun: int  # recoveries of all replications
    serial: int  # of the latest failure of all that has one
    blocked_by: int  # the kind of stage, the least advanced one that blocks the job
    blocked_h: float  # so far
    stage_ends_at_h: float  # instant at which the next stage of a recovery ends
    # nodes
    n_free: int  # spares
    n_repairs: int
    next_return_h: float  # instant at which the first of them ends
    n_queued: int  # slots that wait for a node
    # the link that loads share: bytes that a shard would have moved since the start of the job
    link_bytes: float  # as of ...
    link_read_at_h: float  # ... this instant
    n_moving: int  # shards
    link_ends_bytes: float  # when the next of them have moved ...
    link_ends_at_h: float  # ... and that instant
    # copies: commits, wipes and returns are numbered in one order; a copy is there if it was
    # written after its slot was last wiped
    kept: Annotated[list[list[Content]], MOST_TIERS, MOST_GENERATIONS]  # newest commit first
    n_kept: Annotated[list[int], MOST_TIERS]
    tries: Annotated[list[int], MOST_TIERS]  # corrupt contents that the latest choice found
    latest: int  # of all orders
    n_struck: int  # slots that the latest failure strikes
    n_counts: int  # of lost units so far
    n_recent: int  # how many slots are listed of which something may be missing
    n_errors: int  # silent ones that have struck
    error_h: float  # progress at the first of those in the state; infinite without one
    noticed_at_h: float  # instant at which they are noticed
    n_stops: int  # by plan
    stops_at_h: float  # instant of the next, or of the end of the save before it


class Drawn(NamedTuple):
    """Draws of varying costs [h]: (n_tables, n_drawn, n_replications)."""

    of_saves: Floats
    of_failures: Floats
    keys: Ints  # (n_captures, n_replications) of `copies.uniform`


class Notes(Protocol):
    """Log of a replication, to which the step writes."""

    def note(self, at_h: float, kind: EventKind, progress_h: float, slot: int) -> None: ...


class Sim(NamedTuple):
    """A replication, as the step takes it."""

    spec: Spec
    job: JobState
    slots: MutableMapping[int, Slot]
    recoveries: MutableSequence[Recovery]
    drawn: Drawn
    row: int  # of the replication in what is drawn
    losses: Floats  # (n_room, N_OF_LOSS), which is filled; without rows none are kept
    log: Notes | None  # that notes are made in; None: they are not kept


# --------------------------------------------------------------------------- compiled


def records_of(job: SimulatedJob, n_recoveries: int, drawn: Drawn, losses: Floats) -> Sim:
    """A replication of a job, as numpy records and arrays of them."""
    spec, _ = spec_of(job)
    slots: Any = np.zeros(spec.n_slots + max(spec.n_spares, 0), dtype_of(Slot))
    slots["recovery"] = NONE
    shards = job.cluster.shard_slots
    if sizes := link_of(job.policy).bytes_of_shards:
        slots["shard_bytes"][shards.start : shards.stop] = sizes
    recoveries: Any = np.zeros(n_recoveries, dtype_of(Recovery))
    records: Any = as_record(spec)[0], np.zeros(1, dtype_of(JobState))[0]
    return Sim(records[0], records[1], slots, recoveries, drawn, 0, losses, None)


# --------------------------------------------------------------------------- objects


class Slots(dict[int, Slot]):
    """Slots of a job for Python, made as they are asked for."""

    def __init__(self, shard_bytes: tuple[float, ...] = (), first: int = 0) -> None:
        self._shard_bytes, self._first = shard_bytes, first

    def __missing__(self, slot: int) -> Slot:
        made = self[slot] = zeros(Slot, {})
        made.recovery = NONE
        if 0 <= slot - self._first < len(self._shard_bytes):
            made.shard_bytes = self._shard_bytes[slot - self._first]
        return made


def job_of(spec: Spec) -> JobState:
    """Return a job state for Python, with room for its policy's captures and tiers."""
    most = max((tier.generations for tier in spec.tiers), default=1)
    flights = 1 + max((capture.in_flight for capture in spec.captures), default=0)
    lengths: dict[str, tuple[int, ...]] = {
        "saves": (spec.n_captures,),
        "flights": (spec.n_captures, flights), "kept": (spec.n_tiers, most),
        "n_kept": (spec.n_tiers,), "tries": (spec.n_tiers,),
    }  # fmt: skip
    return zeros(JobState, lengths)


NO_LOSSES = np.zeros((0, 0, 0))
NO_DRAWS = Drawn(NO_LOSSES, NO_LOSSES, np.zeros((0, 0), dtype=np.int64))


def sim_of(
    job: SimulatedJob, drawn: Drawn = NO_DRAWS, row: int = 0, losses: Floats = NO_LOSSES,
    log: Notes | None = None,
) -> Sim:  # fmt: skip
    """A replication of a job, for Python."""
    spec, _ = spec_of(job)
    sizes = link_of(job.policy).bytes_of_shards
    slots = Slots(sizes, job.cluster.shard_slots.start if sizes else 0)
    return Sim(spec, job_of(spec), slots, Places[Recovery](), drawn, row, losses, log)


def no_recovery() -> Recovery:
    """A place for a recovery, for Python."""
    place = zeros(Recovery, {})
    place.rule = NONE
    return place
