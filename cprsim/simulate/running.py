"""A job that runs on the SimPy cluster, as its saves, its link and the nodes see it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import isnan
from typing import Any, Protocol

from simpy.events import EventPriority

from cprsim.records import Activity, EventKind
from cprsim.simulate.alarms import STAGES, Alarm
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import LOAD, WAIT


@dataclass(slots=True, eq=False)
class Recovery:
    """The recovery of some slots, on its way through its stages."""

    number: int
    of_all: bool  # its rule reverts all
    speed: float  # of the job, in stages that do not block it
    slots: set[int]
    ahead: deque[tuple[Any, float]]  # stages, with their hours
    loading: set[int] | None = None  # shards to load, where later failures may take them over
    sharing: Collection[int] = ()  # shards to load over a link that loads share
    stage: Any = None  # the one that it is in
    order: EventPriority = STAGES  # of its stages, where others end at the same instant
    alarm: Alarm | None = None  # of the end of its stage

    @property
    def is_held(self) -> bool:
        """Whether it waits for the job to take its slots in."""
        return self.stage.kind == WAIT and not isnan(self.stage.grows_h)

    @property
    def has_load(self) -> bool:
        """Whether a load is before it or under way; one that takes no time is none."""
        takes_time = bool(self.sharing)
        ahead = any(s.kind == LOAD and (hours > 0.0 or takes_time) for s, hours in self.ahead)
        return ahead or self.stage.kind == LOAD


class DrawnCosts(Protocol):
    """What varies in one replication, by name and number."""

    def hours(self, name: str, n: int) -> float: ...

    def uniform(self, tier: str, n: int) -> float: ...


class Running(Protocol):
    """The job: `cluster.RunningJob`, which is made of what takes this."""

    job: SimulatedJob
    draws: Any
    num: Any
    cluster: Any
    env: Any
    saves: Any
    link: Any
    shared_saves: Any
    logbook: Any
    copies: Any
    slots: Any
    vacant: set[int]  # slots without a node
    queued: set[int]  # those of them that wait for one
    alarms: dict[Alarm, None]
    progress_h: float
    frontier_h: float
    rate: float
    hours: list[float]
    failure: ScopedFailure | None
    failure_alarm: Alarm | None
    age_h: float

    @property
    def now_h(self) -> float: ...

    def at(
        self, hours: float, order: EventPriority, call: Callable[[], object] | None = None
    ) -> Alarm: ...

    def happens(self, call: Callable[[], object]) -> None: ...

    def decide(self) -> None: ...

    def book(self) -> None: ...

    def book_work(self, progress_h: float, hours: float) -> None: ...

    def cost_h(self, fixed_h: float, name: str, n: int) -> float: ...

    def run_clock(self, per_h: float) -> None: ...

    def name_activity(self, activity: Activity) -> None: ...

    def note(self, kind: EventKind) -> None: ...

    def notice(self) -> None: ...

    def on_node(self) -> None: ...

    def go_on(self, recovery: Recovery) -> None: ...
