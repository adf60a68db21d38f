"""The log of the trainers: who began and finished an iteration, who synchronised, in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from cprsim.records import Floats, Ints

ALL = -1  # trainers: a synchronisation of all of them at once


class SyncEvent(IntEnum):
    """What a row of the log says; rows of one instant stand in the order in which they happened."""

    BEGAN = 0  # a thread takes a batch, and the weights as they are
    FINISHED = 1  # it adds what it learned to the weights as they are by now
    SENT = 2  # a synchronisation begins: what a trainer sends is fixed (thread -1: its shadow)
    SYNCED = 3  # it ends, and acts on the trainer and the central copy
    LOST = 4  # a trainer fails: its replica and the batches in work are gone
    REPLACED = 5  # its replacement begins with the central copy
    SERVER_LOST = 6  # a sync server fails (its number stands as the trainer)
    SERVER_REPLACED = 7  # its part of the central copy is taken from the next trainer to exchange


@dataclass(frozen=True, slots=True)
class SyncLog:
    """Events of one run of all trainers, in order."""

    at_h: Floats  # (n_events,)
    kind: Ints  # (n_events,) a SyncEvent
    trainer: Ints  # (n_events,) its number, or ALL
    thread: Ints  # (n_events,) its number within the trainer, -1: the shadow or all

    def __len__(self) -> int:
        return len(self.at_h)
