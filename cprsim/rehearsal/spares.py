"""Nodes of a run as a scheduler counts them: free spares, nodes in repair, slots that wait.

a slot: has a node --lose--> vacant --ask--> queued --(one is free)--> has a node
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf, isinf
from time import monotonic


class SpareNodes:
    """The spares of one run, first come, first served."""

    def __init__(
        self,
        n_free: float,
        on_repaired: Callable[[], None],
        on_given: Callable[[int, float], None],
    ) -> None:
        self._n_free, self._on_repaired, self._on_given = n_free, on_repaired, on_given
        self._vacant: dict[int, asyncio.Event] = {}  # slots; set when each gets its node
        self._queued: list[int] = []
        self._given_at: dict[int, float] = {}

    def lose(self, slot: int, repaired_at: float) -> None:
        """Mark a slot's node as failed; it is a spare again at a time of the monotonic clock."""
        if isinf(self._n_free) or slot in self._vacant:
            return
        self._vacant[slot] = asyncio.Event()
        delay_s = max(0.0, repaired_at - monotonic())
        asyncio.get_running_loop().call_later(delay_s, self._repaired)

    def ask(self, slot: int, at: float) -> None:
        """Queue a slot for a node from this instant on, at which its loss is known."""
        if slot in self._vacant and slot not in self._queued:
            self._queued.append(slot)
        self._give(at)

    async def given(self, slot: int) -> float:
        """Wait until a slot has a node; returns since when, -inf if it never had to ask."""
        if slot in self._vacant:
            await self._vacant[slot].wait()
        return self._given_at.get(slot, -inf)

    def _repaired(self) -> None:
        self._n_free += 1
        self._on_repaired()
        self._give(monotonic())

    def _give(self, at: float) -> None:
        while self._n_free and self._queued:
            slot = self._queued.pop(0)
            self._n_free -= 1
            self._given_at[slot] = at
            self._vacant.pop(slot).set()
            self._on_given(slot, at)
