"""Free nodes, and the queue of requests for them."""

from __future__ import annotations

from bisect import insort
from itertools import count
from operator import attrgetter

import simpy
from simpy.events import EventPriority
from simpy.resources.container import ContainerGet


class NodeRequest(ContainerGet):
    """A request for `n` nodes; slots are served before jobs, and each in the order of requests."""

    def __init__(self, free: FreeNodes, n: int, rank: EventPriority) -> None:
        self.key = rank, next(free.request_numbers)
        super().__init__(free, n)


class RequestQueue(list[NodeRequest]):
    """Waiting requests by rank; SimPy's `SortedQueue` would sort all of them at each request."""

    def append(self, request: NodeRequest) -> None:
        insort(self, request, key=attrgetter("key"))


class FreeNodes(simpy.Container):
    """Free nodes; while the first request waits, all later ones wait too."""

    GetQueue = RequestQueue

    def __init__(self, env: simpy.Environment, n: int) -> None:
        self.request_numbers = count()
        super().__init__(env, init=n)
