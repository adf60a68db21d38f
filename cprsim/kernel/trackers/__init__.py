"""Trackers: which rows of the large tables a sub-save writes first. One file each."""

from __future__ import annotations

from collections.abc import Callable

from cprsim.kernel.trackers.mfu import MostFrequentlyUsed
from cprsim.kernel.trackers.round_robin import RoundRobin
from cprsim.kernel.trackers.scar import LargestChange
from cprsim.kernel.trackers.ssu import SubSampledUsed
from cprsim.kernel.trackers.tracker import ABSENT, Tracked, Tracker

TRACKERS: dict[str, Callable[[Tracked], Tracker]] = {
    "scar": LargestChange,
    "mfu": MostFrequentlyUsed,
    "ssu": SubSampledUsed,
    "round-robin": RoundRobin,
}

__all__ = ["ABSENT", "TRACKERS", "Tracked", "Tracker"]
