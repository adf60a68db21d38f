"""Saves in the memory of a process: what it captured of itself, and what peers copied to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.kernel.array_file import arrays_in, pieces
from cprsim.kernel.loops import Array
from cprsim.rehearsal.messages import Channel, Message
from cprsim.rehearsal.store import Arrays, chunk_bytes


class HeldCopies:
    """Copies of states, by whose they are and by the number of the save.

    A commit drops what is older. A copy is bytes that end in their digest: half of one is none.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], bytes] = {}
        self._coming: WeakKeyDictionary[Channel, bytearray] = WeakKeyDictionary()

    def hold(self, who: str, number: int, arrays: Arrays) -> None:
        """A copy of a whole state."""
        self._held[who, number] = b"".join(pieces(arrays, {}))

    def add(self, who: str, number: int, copy: Array) -> None:
        """A whole copy, as its bytes."""
        self._held[who, number] = copy.tobytes()

    def receive(self, channel: Channel, message: Message) -> None:
        """Take in a piece that a peer sends; the last one is acknowledged."""
        fields = message.fields
        coming = self._coming.setdefault(channel, bytearray())
        coming += message.arrays[0].data
        if fields["last"]:
            self._held[str(fields["who"]), int(fields["save"])] = bytes(coming)
            del self._coming[channel]
            channel.send("kept", save=fields["save"])

    def bytes_of(self, who: str, number: int) -> bytes:
        """A copy as it is sent; empty where there is none."""
        return self._held.get((who, number), b"")

    def has(self, who: str, number: int) -> bool:
        """Whether there is a copy."""
        return (who, number) in self._held

    def arrays(self, who: str, number: int) -> Arrays:
        """A copied state. Raises CheckpointError where the copy is not whole."""
        return arrays_in(self.bytes_of(who, number), f"the copy of {who} in save {number}")

    def commit(self, number: int) -> None:
        """The save counts: what is older goes."""
        self._held = {key: held for key, held in self._held.items() if key[1] >= number}

    def drop(self, number: int) -> None:
        """The save does not count."""
        self._held = {key: held for key, held in self._held.items() if key[1] != number}


def sending(
    copy: bytes, who: str, number: int, channels: list[Channel], per_piece: int
) -> Iterator[int]:
    """Send a copy to one peer after the other, yielding the bytes of each piece."""
    if not copy:
        raise CheckpointError(f"there is no copy of {who} in save {number}")
    whole: Array = np.frombuffer(copy, np.uint8)
    for channel in channels:
        for first in range(0, len(whole), per_piece):
            piece = whole[first : first + per_piece]
            last = first + per_piece >= len(whole)
            channel.send("copy", (piece,), who=who, save=number, last=last)
            yield len(piece)


def after(n: int, done: Callable[[], None]) -> Callable[[], None]:
    """What does a thing when it is called for the nth time."""
    left = n

    def called() -> None:
        nonlocal left
        left -= 1
        if not left:
            done()

    return called


def copying(source: Arrays, into: Arrays) -> Iterator[int]:
    """Copy arrays in memory piece by piece, yielding the bytes of each."""
    size = chunk_bytes(sum(array.nbytes for array in source.values()))
    for name, array in source.items():
        into[name] = np.empty_like(array)
        there, here = (one.reshape(-1).view(np.uint8) for one in (into[name], array))
        for first in range(0, len(here), size):
            there[first : first + size] = here[first : first + size]
            yield len(here[first : first + size])
