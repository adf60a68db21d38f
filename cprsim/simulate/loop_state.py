"""What the compiled loop knows of a replication: records of numbers, and objects for Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprsim.records import Floats, Ints
from cprsim.recovery.legal import MOST_IN_FLIGHT
from cprsim.recovery.policy import PARTS_IN_ORDER
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.numbers import MOST_CAPTURES, NONE, as_objects, link_of
from cprsim.simulate.transitions import COPIES, SLOT, SlotsAsObjects

SAVES = np.dtype(
    [("due_h", "f8"), ("completes_h", "f8"), ("n_begun", "i8"), ("n_in_flight", "i8")], align=True
)
FLIGHT = np.dtype(
    [
        ("content_h", "f8"),
        ("due_h", "f8"),  # progress from which what it stands for is due ...
        ("completes_h", "f8"),  # ... and what of that completes a content; infinite: nothing
        ("begun_h", "f8"),  # instant at which it left the stall
        ("at_h", "f8"),  # instant at which it commits
        ("number", "i8"),
        ("order", "i8"),
    ],
    align=True,
)
RECOVERY = np.dtype(
    [
        ("rule", "i8"),  # NONE: this place is free
        ("stage", "i8"),  # of its rule
        ("kind", "i8"),
        ("part", "i8"),
        ("ends_at_h", "f8"),  # infinite: others decide when
        ("load_h", "f8"),
        ("replay_h", "f8"),
        ("detect_h", "f8"),
        ("speed", "f8"),
        ("began_bytes", "f8"),  # odometer of the link as its load began
        ("number", "i8"),  # of its failure
        ("n_slots", "i8"),
        ("begun", "i8"),  # the nth of all replications to begin
        ("serial", "i8"),  # of its failure; both counts go through all replications
        ("n_loads", "i8"),  # shards to load ...
        ("source", "i8"),  # ... from this tier
        ("blocks", "?"),
        ("loads", "?"),
        ("shares", "?"),  # the link with other loads
        ("hands_over", "?"),  # its shards to later failures that take them back again
        ("of_all", "?"),  # its rule reverts all
    ],
    align=True,
)
SLOTS = np.dtype(
    [
        *SLOT,
        ("vacant", "?"),  # its node is lost, and it has no other
        ("asked", "?"),  # and it waits for one
        ("queued", "i8"),  # the nth slot that waits for a node, the first to ask first
        ("returns_at_h", "f8"),  # the nth node in repair
        ("reloaded_at_h", "f8"),  # progress at which its shard alone went back last ...
        ("course", "i8"),  # ... in this course
        ("loaded_by", "i8"),  # the latest recovery that loads its shard, by serial
        ("shard_bytes", "f8"),  # where shards differ
    ],
    align=True,
)
"""One table for all that there is one of per slot, or at most: compiled functions hand on one
array. Further rows, one for each spare, hold nothing but nodes in repair."""

JOB = np.dtype(
    [
        ("now_h", "f8"),
        ("progress_h", "f8"),
        ("frontier_h", "f8"),
        ("speed", "f8"),
        ("replay_speed", "f8"),
        ("blocked_h", "f8"),  # so far
        ("stale_h", "f8"),  # summed over shards: since the content that they went back to
        ("stale_net_h", "f8"),  # since the later of that and their own last reload
        ("course", "i8"),  # number of stretches without a rollback, of all replications
        ("n_losses", "i8"),  # that are kept, of all replications
        ("stall_ends_at_h", "f8"),
        ("stalled_by", "i8"),  # capture, whose first free flight is the save
        ("waits_for", "i8"),  # capture
        ("n_failures", "i8"),
        ("n_begun", "i8"),  # recoveries of all replications
        ("serial", "i8"),  # of the latest failure of all that has one
        ("n_met", "i8"),  # failures, the missed ones included
        ("n_saves", "i8"),
        ("n_recoveries", "i8"),  # places in use, the free ones between them included
        ("blocked_by", "i8"),  # the kind of stage, the least advanced one that blocks the job ...
        ("blocked_part", "i8"),  # ... and the part that its hours go into
        ("frontier_at_failure_h", "f8"),
        ("n_fruitless", "i8"),
        ("n_free", "i8"),  # spares
        ("n_repairs", "i8"),
        ("next_return_h", "f8"),  # instant at which the first of them ends
        ("n_queued", "i8"),
        ("status", "i8"),
        ("stage_ends_at_h", "f8"),  # instant at which the next stage of a recovery ends
        # the link that loads share: bytes that a shard would have moved since the start of the job
        ("link_bytes", "f8"),  # as of ...
        ("link_read_at_h", "f8"),  # ... this instant
        ("n_moving", "i8"),  # shards
        ("link_ends_bytes", "f8"),  # when the next of them have moved ...
        ("link_ends_at_h", "f8"),  # ... and that instant
        ("hours", "f8", (len(PARTS_IN_ORDER),)),  # of each part
        ("saves", SAVES, (MOST_CAPTURES,)),
        ("flights", FLIGHT, (MOST_CAPTURES, MOST_IN_FLIGHT)),  # in order of their start
        *COPIES,
    ],
    align=True,
)


class Drawn(NamedTuple):
    """What varies, as far as it is drawn [h]: (n_tables, n_drawn, n_replications)."""

    of_saves: Floats
    of_failures: Floats
    keys: Ints  # (n_captures, n_replications) of `uniform`


def slots_of(job: SimulatedJob) -> NDArray[Any]:
    """The slots of a job, none of them in a recovery, and a row for each spare: of SLOTS."""
    cluster, link = job.cluster, link_of(job.policy)
    slots = np.zeros(cluster.n_nodes + (cluster.n_spares or 0), SLOTS)
    slots["recovery"] = NONE
    if link.bytes_of_shards:
        shards = cluster.shard_slots
        slots["shard_bytes"][shards.start : shards.stop] = link.bytes_of_shards
    return slots


def interpreted(loop: Callable[..., int], *arguments: Any) -> int:
    """As Python runs the loop: the same rows to the last bit, and no compiler to wait for.

    Arrays are handed in as what Python reads quickly one by one: memory views, and objects for
    records. `replications.run` names what is given; its `scratch` stays as it is.
    """
    numbers, drawn, strikes, rows, scratch, slots, recoveries, hours, counts, losses, keeps = (
        arguments
    )
    with np.errstate(all="ignore"):
        return loop(
            [as_objects(numbers[0])], type(drawn)(*(memoryview(array) for array in drawn)),
            type(strikes)(strikes.until_h, *(memoryview(array) for array in strikes[1:])),
            memoryview(rows), [as_objects(scratch[0])], SlotsAsObjects(slots),
            as_objects(recoveries),
            memoryview(hours), memoryview(counts), memoryview(losses), keeps,
        )  # fmt: skip
