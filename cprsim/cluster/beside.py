"""Nodes that are replaced while the others go on: trainers that stay in step, and sync servers."""

from __future__ import annotations

from collections.abc import Iterable

import simpy

from cprsim.cluster.recovering import Recovery
from cprsim.records import Activity
from cprsim.setting import JobSetting

WORKING = (Activity.USEFUL, Activity.LOST)


class Beside:
    """Replacements that nobody waits for, and the work that is missing meanwhile.

    Without d of n trainers the job goes on at the speed of the others. That is booked as if it went
    on at full speed and owed d/n of the time, to be made up for at the next stop: the hours are the
    same, and every one of them belongs to one activity.
    """

    def __init__(self, env: simpy.Environment, setting: JobSetting) -> None:
        self.owed_h = 0.0
        self._env = env
        self._setting = setting
        self._recoveries: list[Recovery] = []
        self._since_h = 0.0  # as of which it is settled what is owed

    def covers(self, slots: Iterable[int]) -> bool:
        """Whether the others go on without these nodes as well; some trainer has to be left."""
        return self._setting.beside.issuperset(slots) and not self.no_replica_without(slots)

    def no_replica_without(self, slots: Iterable[int]) -> bool:
        """Whether no trainer is left once these nodes are gone too."""
        replicas = self._setting.replicas
        return bool(replicas) and replicas <= self.out.union(slots)

    @property
    def out(self) -> set[int]:
        """Slots that are being replaced."""
        return {slot for recovery in self._recoveries for slot in recovery.slots}

    def add(self, recovery: Recovery) -> None:
        """Nodes are being replaced; called when what is owed has been settled."""
        self._recoveries.append(recovery)

    def remove(self, recovery: Recovery) -> None:
        """They are back; called when what is owed has been settled."""
        self._recoveries.remove(recovery)

    def hand_over(self, slots: set[int]) -> None:
        """Leave these slots to a later recovery."""
        for recovery in self._recoveries:
            recovery.hand_over(slots, frozenset())
        self._recoveries = [recovery for recovery in self._recoveries if recovery.slots]

    def settle(self, activity: Activity) -> None:
        """Book what is owed up to now, in which the job was in this activity."""
        if self._recoveries and activity in WORKING:
            n_out = len(self.out & self._setting.replicas)
            elapsed_h = self._env.now - self._since_h
            self.owed_h += elapsed_h * n_out / len(self._setting.replicas)
        self._since_h = self._env.now
