"""Snapshots in memory, and forks: many endings of one beginning.

Whatever decides how a run goes on names its arrays in `state()`; a snapshot is a copy of them all,
and a run that is restored from it goes on bit by bit as the first one did. A fork is a second
trainer (and saver) of the same plan, restored from a snapshot of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.loops import Array


class Stateful(Protocol):
    """A part of a run, such as a trainer or a saver."""

    def state(self) -> dict[str, Array]:
        """The arrays that decide how it goes on, by name, live."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Copies of the state of some parts of a run."""

    arrays: dict[str, Array]

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())


def joint_state(*parts: Stateful) -> dict[str, Array]:
    """The live arrays of all parts together; no two may share a name."""
    joint: dict[str, Array] = {}
    for part in parts:
        state = part.state()
        if shared := joint.keys() & state.keys():
            raise ParameterError(f"two parts of a run both have {', '.join(sorted(shared))}")
        joint |= state
    return joint


def take(*parts: Stateful) -> Snapshot:
    """Copy the state of parts of a run."""
    return Snapshot({name: array.copy() for name, array in joint_state(*parts).items()})


def restore(snapshot: Snapshot, *parts: Stateful) -> None:
    """Make parts of a run what they, or their like, were at the snapshot.

    Raises ParameterError, and changes nothing, where names or shapes differ.
    """
    live = joint_state(*parts)
    check_alike({name: a.shape for name, a in snapshot.arrays.items()}, live)
    for name, array in snapshot.arrays.items():
        np.copyto(live[name], array, casting="no")


def check_alike(shapes: dict[str, tuple[int, ...]], live: dict[str, Array]) -> None:
    """Raise ParameterError unless the arrays of a run have these names and shapes."""
    for name in sorted(shapes.keys() | live.keys()):
        here = live[name].shape if name in live else None
        if shapes.get(name) != here:
            raise ParameterError(f"`{name}` is {shapes.get(name)} there and {here} in this run")
