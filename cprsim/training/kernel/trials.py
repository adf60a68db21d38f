"""Trials: definitions of controlled runs, before they are trained.

A trial is one run of the plan in which given servers fail at given shares of the run, under one way
of saving. It is measured as the difference to the run without failures of the same clicks, order
and initial weights: its twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, takewhile
from math import ceil

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.intervals import ROUNDING
from cprsim.job.losses import MORE_BYTES, RESPONSE_KEYS, WHOLE
from cprsim.job.records import EventKind, ShardLoss, SmallTables, SubSaves
from cprsim.training.kernel.schedule import RunEvent, Schedule


def sub_saves_of(strategy: str) -> SubSaves | None:
    """How a strategy cuts an interval; None: every save is whole."""
    if strategy not in RESPONSE_KEYS:
        raise ParameterError(f"unknown strategy `{strategy}`; one of {', '.join(RESPONSE_KEYS)}")
    if strategy == WHOLE:
        return None
    often = strategy.endswith(MORE_BYTES)
    small = SmallTables.EACH_SUB_SAVE if often else SmallTables.EACH_INTERVAL
    return SubSaves(strategy.removesuffix(MORE_BYTES), small_tables=small)


@dataclass(frozen=True, slots=True)
class Saving:
    """One way of saving a run: a strategy at an interval."""

    strategy: str  # of RESPONSE_KEYS
    interval_fraction: float  # T_save as a share of the run

    def __post_init__(self) -> None:
        sub_saves_of(self.strategy)
        if not self.interval_fraction > 0:
            raise ParameterError(f"an interval must be positive, got {self.interval_fraction:g}")

    @property
    def sub_saves(self) -> SubSaves | None:
        return sub_saves_of(self.strategy)

    def due(self, after: float, until: float) -> Iterator[RunEvent]:
        """Saves due in (after, until] of the run."""
        n = 1 if self.sub_saves is None else self.sub_saves.n_per_interval
        step = self.interval_fraction / n
        first = int((after + ROUNDING) // step) + 1
        last = min(until, 1.0) + ROUNDING
        for number in takewhile(lambda number: number * step <= last, count(first)):
            for kind in (EventKind.SAVE_STARTED, EventKind.SAVE_COMMITTED):
                yield RunEvent(min(number * step, 1.0), kind, ends_interval=number % n == 0)

    def last_before(self, at: float) -> float:
        """Share of the run at which the interval began in which `at` lies, for PLS."""
        return max(0, ceil((at + ROUNDING) / self.interval_fraction) - 1) * self.interval_fraction


@dataclass(frozen=True, slots=True)
class ShardFailure:
    """Servers that fail together."""

    at_fraction: float  # of the run
    servers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One controlled run: how it is saved, and what fails when, in order."""

    saving: Saving
    failures: tuple[ShardFailure, ...]

    def __post_init__(self) -> None:
        at = [failure.at_fraction for failure in self.failures]
        if not at or at != sorted(at) or not 0 <= at[0] <= at[-1] <= 1:
            raise ParameterError(f"failures must be in order and within the run, got {at}")

    def schedule(self, after: float = 0.0) -> Schedule:
        """Saves up to the last failure, failures, and the end of the run.

        A save that is due with a failure comes first.
        """
        events: list[RunEvent] = []
        for failure in self.failures:
            events += self.saving.due(after, failure.at_fraction)
            after = failure.at_fraction
            events.append(RunEvent(after, EventKind.REVERTED, servers=failure.servers))
        return (*events, RunEvent(1.0, EventKind.FINISHED))


def stale_shards(trials: Iterable[Trial], n_servers: int) -> ShardLoss:
    """The shards that trials revert, on the grid of whole intervals; hours are shares of the run.

    Losses of the trial of number i are those of replication i.
    """
    stale = []
    for number, trial in enumerate(trials):
        reloaded: dict[int, float] = {}
        for failure in trial.failures:
            at = failure.at_fraction
            saved = trial.saving.last_before(at)
            for server in failure.servers:
                net_from = max(saved, reloaded.get(server, 0.0))
                stale.append((number, at, server, at - saved, at - net_from, 1.0 / n_servers))
                reloaded[server] = at
    of_trial, progress, slot, *rest = np.array(stale, float).reshape(-1, 6).T
    return ShardLoss(of_trial.astype(np.int64), progress, slot.astype(np.int64), *rest)
