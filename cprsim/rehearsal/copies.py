"""Saves in the memory of a process: what it captured of itself, and what peers copied to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.kernel.array_file import arrays_in, pieces
from cprsim.kernel.loops import Array
from cprsim.rehearsal.store import Arrays, chunk_bytes
from cprsim.rehearsal.wire import Peer, connect, throttled


class HeldCopies:
    """Copies of states, by whose they are and by the number of the save.

    A commit drops what is older. A copy is bytes that end in their digest: half of one is none.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], bytearray] = {}

    def hold(self, who: str, save: int, arrays: Arrays) -> None:
        """A copy of a whole state."""
        self._held[who, save] = bytearray(b"".join(pieces(arrays, {})))

    def put(self, piece: Array, who: str, save: int, first: int, of: int) -> None:
        """A piece of a copy of so many bytes."""
        copy = self._held.setdefault((who, save), bytearray(of))
        copy[first : first + len(piece)] = piece.data

    def bytes_of(self, who: str, save: int) -> Array:
        """A copy as it is sent. Raises CheckpointError where there is none."""
        if (who, save) not in self._held:
            raise CheckpointError(f"there is no copy of {who} in save {save}")
        return np.frombuffer(self._held[who, save], np.uint8)

    def has(self, who: str, save: int) -> bool:
        """Whether there is a copy."""
        return (who, save) in self._held

    def arrays(self, who: str, save: int) -> Arrays:
        """A copied state. Raises CheckpointError where the copy is not whole."""
        copy = self.bytes_of(who, save).tobytes()
        return arrays_in(copy, f"the copy of {who} in save {save}")

    def commit(self, save: int) -> None:
        """The save counts: what is older goes."""
        self._held = {key: held for key, held in self._held.items() if key[1] >= save}

    def drop(self, save: int) -> None:
        """The save does not count."""
        self._held = {key: held for key, held in self._held.items() if key[1] != save}

    async def send(self, who: str, save: int, to: Sequence[str], rate: Callable[[], float]) -> None:
        """Send a copy to one peer after the other, until all have it."""
        copy = self.bytes_of(who, save)
        peers = [await connect(address) for address in to]
        try:
            await throttled(_sent(copy, peers, who, save), rate)
            for peer in peers:
                await peer.ask("where")
        finally:
            for peer in peers:
                peer.close()


def _sent(copy: Array, peers: Sequence[Peer], who: str, save: int) -> Iterator[int]:
    size = chunk_bytes(len(copy))
    for peer in peers:
        for first in range(0, len(copy), size):
            piece = copy[first : first + size]
            peer.send("copy", piece, who=who, save=save, first=first, of=len(copy))
            yield len(piece)


def copying(source: Arrays, into: Arrays) -> Iterator[int]:
    """Copy arrays in memory piece by piece, yielding the bytes of each."""
    size = chunk_bytes(sum(array.nbytes for array in source.values()))
    for name, array in source.items():
        into[name] = np.empty_like(array)
        there, here = (one.reshape(-1).view(np.uint8) for one in (into[name], array))
        for first in range(0, len(here), size):
            there[first : first + size] = here[first : first + size]
            yield len(here[first : first + size])
