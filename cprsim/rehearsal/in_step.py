"""Trainers in step: each learns from its part of a batch, and all need all parts.

A batch counts for a trainer once all its parts are at this and at every other trainer. So no death
loses a batch that counts: each survivor has all of it. A halt may find trainers that have counted a
batch and others that only have its parts: the supervisor lets all count it, or none (`counts`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cprsim.rehearsal.wire import Peer
from cprsim.training.kernel.training import Gradients, sum_of_parts


def counts(stand: Sequence[tuple[int, bool | None]]) -> bool:
    """Whether a batch in work at a halt counts, by each trainer's (position, has all parts).

    If one of them has counted it, dead or alive, then all living ones have all its parts.
    """
    before = min(position for position, _ in stand)
    return all(has_all or position > before for position, has_all in stand)


class PartsExchange:
    """The parts of a batch that trainers in step send each other."""

    def __init__(self, part: int) -> None:
        self._part = part
        self._news = asyncio.Event()
        self._peers: Sequence[Peer] = ()
        self._run = self._position = 0
        self._parts: dict[tuple[int, int], dict[int, Gradients]] = {}  # by run and position
        self._n_whole = 0  # others who have all parts of the batch in hand

    def connect(self, peers: Sequence[Peer]) -> None:
        """Set the other trainers; earlier connections are closed."""
        for peer in self._peers:
            peer.close()
        self._peers = peers

    def begin(self, run: int) -> None:
        """Start a run, and drop the parts sent in earlier runs."""
        self._run = run
        self._parts = {key: parts for key, parts in self._parts.items() if key[0] >= run}

    async def exchange(self, position: int, own: Gradients) -> None:
        """Send the own part to the others; returns when all parts are here and at all others."""
        self._position, self._n_whole = position, 0
        for peer in self._peers:
            peer.send("part", own, self._run, position, self._part)
        self.add(own, self._run, position, self._part)
        while not (self.is_whole and self._n_whole == len(self._peers)):
            self._news.clear()
            await self._news.wait()

    def add(self, gradients: Gradients, run: int, position: int, part: int) -> None:
        """Store a part; tell the others when all parts are here."""
        parts = self._parts.setdefault((run, position), {})
        parts[part] = gradients
        self._news.set()
        if len(parts) == len(self._peers) + 1:
            for peer in self._peers:
                peer.send("whole", run, position)

    def hear(self, run: int, position: int) -> None:
        """Record that another trainer has all parts of a batch."""
        self._n_whole += (run, position) == (self._run, self._position)
        self._news.set()

    @property
    def is_whole(self) -> bool:
        """Whether all parts of the batch in hand are here."""
        return len(self._parts[self._run, self._position]) == len(self._peers) + 1

    def together(self) -> Gradients:
        """The gradients of the batch in hand, whose parts are all here."""
        parts = self._parts.pop((self._run, self._position))
        return sum_of_parts([parts[number] for number in sorted(parts)])
