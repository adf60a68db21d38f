"""One job as every engine takes it: its setting, when its saves are due, when it is given up."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from math import floor, inf

from cprsim.records import Activity, Clock, Cluster, Costs

_AGES_IN = {
    Clock.PROGRESS: {Activity.USEFUL},
    Clock.UPTIME: {Activity.USEFUL, Activity.LOST, Activity.SAVE},
    Clock.WALL: set(Activity) - {Activity.OVER},
}
AGES_IN: dict[Clock, tuple[bool, ...]] = {
    clock: tuple(activity in ages_in for activity in Activity)
    for clock, ages_in in _AGES_IN.items()
}
"""For each clock, indexed by Activity: whether failures age in it."""


STOPPED_BEYOND = 100.0  # times the useful time: a replication that takes longer is given up
HOPELESS_AFTER = 1000  # failures in a row without any first-time work between them

ROUNDING = 1e-9  # intervals: how far from whole a job may be and still count as whole


@dataclass(frozen=True, slots=True)
class JobSetting:
    """What the simulation of one job needs besides its failures and its recovery policy."""

    useful_h: float
    cluster: Cluster
    costs: Costs
    clock: Clock
    shards: frozenset[int] = field(init=False)  # slots of the embedding servers
    replicas: frozenset[int] = field(init=False)  # slots of the trainers
    ages_in: tuple[bool, ...] = field(init=False)  # by Activity: whether failures age in it

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", frozenset(self.cluster.shard_slots))
        object.__setattr__(self, "replicas", frozenset(self.cluster.replica_slots))
        object.__setattr__(self, "ages_in", AGES_IN[self.clock])


@dataclass(frozen=True, slots=True)
class SaveGrid:
    """The instants of progress at which saves are due: the whole multiples of the interval.

    An interval as long as the job or longer means no save; a save at the very end counts.
    """

    interval_h: float
    useful_h: float

    instants_h: list[float] = field(init=False)  # the last is infinite: no save is due any more

    def __post_init__(self) -> None:
        never = self.interval_h >= self.useful_h * (1.0 - ROUNDING)
        n_saves = 0 if never else floor(self.useful_h / self.interval_h + ROUNDING)
        due_h = (min(n * self.interval_h, self.useful_h) for n in range(1, n_saves + 1))
        object.__setattr__(self, "instants_h", [*due_h, inf])

    def due_after(self, progress_h: float) -> float:
        """The first due instant beyond `progress_h`, infinite where none is left [h]."""
        return self.instants_h[bisect_right(self.instants_h, progress_h * (1.0 + ROUNDING))]


save_grid = lru_cache(maxsize=64)(SaveGrid)  # one for all replications
