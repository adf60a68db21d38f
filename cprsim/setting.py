"""One job as every engine takes it: its setting, when its saves are due, when it is given up."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from math import floor, inf

from cprsim.records import Activity, Clock, Cluster, Costs, Holds, RecoveryPolicy, SubSaves

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


HOPELESS_AFTER = 1000  # failures in a row without any first-time work between them
NO_WORK_H = 1e-9  # first-time work up to this is rounding, which differs between engines
HARDLY_AFTER = 5000  # failures, after which a job that is this slow is given up ...
HARDLY_TIMES = 10.0  # ... over so many times the work that it has done so far

ROUNDING = 1e-9  # intervals: how far from whole a job may be and still count as whole


@dataclass(frozen=True, slots=True, eq=False)
class JobSetting:
    """What the simulation of one job needs besides its failures and its recovery policy.

    Two of them are never equal, so that what follows from one can be kept by it.
    """

    useful_h: float
    cluster: Cluster
    costs: Costs
    clock: Clock
    shards: frozenset[int] = field(init=False)  # slots of the embedding servers
    replicas: frozenset[int] = field(init=False)  # slots of the trainers
    central: frozenset[int] = field(init=False)  # slots of the sync servers
    beside: frozenset[int] = field(init=False)  # slots without which the others go on
    ages_in: tuple[bool, ...] = field(init=False)  # by Activity: whether failures age in it

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", frozenset(self.cluster.shard_slots))
        object.__setattr__(self, "replicas", frozenset(self.cluster.replica_slots))
        object.__setattr__(self, "central", frozenset(self.cluster.slots_that_hold(Holds.CENTRAL)))
        object.__setattr__(self, "beside", frozenset(self.cluster.slots_beside))
        object.__setattr__(self, "ages_in", AGES_IN[self.clock])


def n_saves_due(interval_h: float, useful_h: float) -> int:
    """How many saves a job of `useful_h` hours has, one every `interval_h` hours of progress."""
    never = interval_h >= useful_h * (1.0 - ROUNDING)
    return 0 if never else floor(useful_h / interval_h + ROUNDING)


@dataclass(frozen=True, slots=True)
class SavePlan:
    """The saves of a job: due at the whole multiples of an interval of progress.

    An interval as long as the job or longer means no save; a save at the very end counts. Those of
    a priority strategy are its sub-saves, of which the last of an interval ends it: it is whole.
    """

    due_h: list[float]  # of progress; the last is infinite: no more
    whole: list[bool]  # whether the save that is due then ends an interval
    fraction: float = 1.0  # of a whole save, that each of these costs
    extra_h: float = 0.0  # that each stalls the job on top

    @classmethod
    def of(cls, policy: RecoveryPolicy, useful_h: float) -> SavePlan:
        """The saves of a policy in a job of `useful_h` hours."""
        parts = policy.sub_saves or SubSaves("none", fraction=1.0)
        interval_h = parts.fraction * policy.save_interval_h
        n_saves = n_saves_due(interval_h, useful_h)
        due_h = [min(n * interval_h, useful_h) for n in range(1, n_saves + 1)]
        whole = [n % parts.n_per_interval == 0 for n in range(1, n_saves + 1)]
        return cls([*due_h, inf], [*whole, True], parts.fraction, parts.extra_h)

    def due_after(self, progress_h: float) -> tuple[float, bool]:
        """At which progress [h] the next save beyond `progress_h` is due, and if it is whole."""
        number = bisect_right(self.due_h, progress_h * (1.0 + ROUNDING))
        return self.due_h[number], self.whole[number]
