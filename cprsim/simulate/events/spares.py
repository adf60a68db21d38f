"""Nodes that are free, in repair or asked for, by SimPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

import simpy

from cprsim.simulate.events.alarms import NODES, Alarm
from cprsim.simulate.numbers import NONE


@dataclass(slots=True, eq=False)
class Spares:
    """Nodes for slots that lost theirs, first come, first served. `n_free` NONE: without limit.

    A slot: has a node --lose--> vacant --ask--> queued --(a node is free)--> has a node
    """

    env: simpy.Environment
    n_free: int
    on_return: Callable[[], None]
    vacant: set[int] = field(default_factory=set)
    queued: dict[int, None] = field(default_factory=dict)  # in the order in which they asked
    repairs: set[Alarm] = field(default_factory=set)

    def lose(self, slot: int, repair_h: float) -> None:
        """The node of a slot goes to repair; a slot without one loses none."""
        if self.n_free == NONE or slot in self.vacant:
            return
        self.vacant.add(slot)
        repair = Alarm(self.env, repair_h, NODES, lambda: self._return(repair))
        self.repairs.add(repair)

    def ask(self, slots: Iterable[int]) -> None:
        """Queue those of the slots that are vacant and have not asked before."""
        for slot in sorted(self.vacant.intersection(slots)):
            self.queued.setdefault(slot)
        self._give()

    def lacks(self, slots: set[int]) -> bool:
        """Whether one of the slots has no node."""
        return not self.vacant.isdisjoint(slots)

    @property
    def next_at_h(self) -> float:
        """When the next slot in the queue gets its node; infinite where none waits."""
        return min((repair.at_h for repair in self.repairs), default=inf) if self.queued else inf

    def _return(self, repair: Alarm) -> None:
        self.repairs.remove(repair)
        self.n_free += 1
        if self.queued:
            self._give()
            self.on_return()

    def _give(self) -> None:
        while self.n_free and self.queued:
            slot = next(iter(self.queued))
            del self.queued[slot]
            self.vacant.remove(slot)
            self.n_free -= 1
