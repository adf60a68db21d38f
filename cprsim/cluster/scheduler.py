"""The scheduler: finds a spare for each failed slot and takes repaired nodes back."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial
from math import inf

import simpy


class Scheduler:
    """Staffs the slots of the job from a pool of spares.

    A slot: staffed --lose--> vacant --request--> waiting --(a spare is free)--> staffed

    Where spares are unlimited a slot is staffed as soon as it asks.
    """

    def __init__(self, env: simpy.Environment, n_spares: int | None) -> None:
        self._env = env
        self._pool = simpy.Container(env, inf, n_spares) if n_spares is not None else None
        self._vacant: set[int] = set()
        self._waiting: dict[int, simpy.Event] = {}

    def waits(self, slot: int) -> bool:
        """Whether the slot stands empty, waiting for a spare."""
        return slot in self._waiting

    def lose(self, slot: int, repair_h: float) -> None:
        """The node in this slot is broken: it goes to repair, and then to the pool.

        A slot that is vacant already has no further node to lose.
        """
        if self._pool is None or slot in self._vacant:
            return
        self._vacant.add(slot)
        self._env.process(self._repair(repair_h))

    def request(self, slots: Iterable[int]) -> list[simpy.Event]:
        """Ask for a node for each vacant slot; the events still to wait for."""
        if self._pool is None:
            return []
        for slot in slots:
            if slot in self._vacant and slot not in self._waiting:
                grant = self._pool.get(1)
                if grant.triggered:
                    self._vacant.discard(slot)
                else:
                    self._waiting[slot] = grant
                    grant.callbacks.append(partial(self._staff, slot))
        return [self._waiting[slot] for slot in slots if slot in self._waiting]

    def _staff(self, slot: int, _: simpy.Event) -> None:
        self._vacant.discard(slot)
        del self._waiting[slot]

    def _repair(self, repair_h: float) -> Generator[simpy.Event, None, None]:
        assert self._pool is not None
        yield self._env.timeout(repair_h)
        yield self._pool.put(1)
