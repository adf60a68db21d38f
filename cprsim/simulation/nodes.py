"""Free nodes, and who waits for them."""

from __future__ import annotations

from bisect import insort
from itertools import count
from operator import attrgetter

import simpy
from simpy.events import EventPriority
from simpy.resources.container import ContainerGet


class Ask(ContainerGet):
    """A request for `n` nodes; slots are served before jobs, and each in the order of requests."""

    def __init__(self, free: FreeNodes, n: int, rank: EventPriority) -> None:
        self.key = rank, next(free.asked)
        super().__init__(free, n)


class InOrder(list[Ask]):
    """Who waits; SimPy's `SortedQueue` would sort them all for each."""

    def append(self, ask: Ask) -> None:
        insort(self, ask, key=attrgetter("key"))


class FreeNodes(simpy.Container):
    """Free nodes; the first who asks and does not find enough of them holds up all after him."""

    GetQueue = InOrder

    def __init__(self, env: simpy.Environment, n: int) -> None:
        self.asked = count()
        super().__init__(env, init=n)
