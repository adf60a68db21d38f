"""Saves and failures acting on a trainer: which rows a save writes, how many bytes, what is lost.

Without a tracker a save writes every server's whole shard and the layers. With one, each interval
T_save is cut into 1 / r sub-saves: each writes up to r x N rows of each large table, the ones that
the tracker finds most urgent, and the last one of the interval also the layers and the small
tables (which may instead go out with every sub-save, at more bytes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.loops import Array
from cprsim.kernel.saved import SavedState
from cprsim.kernel.shards import Shards
from cprsim.kernel.trackers import TRACKERS, Tracked, Tracker
from cprsim.kernel.training import Trainer
from cprsim.records import Ints

WHOLE = "none"  # the name of saving without a tracker


class SmallTables(StrEnum):
    """When the tables that are not prioritised are saved."""

    EACH_INTERVAL = "interval"  # with the last sub-save of T_save, as in the paper: equal bytes
    EACH_SUB_SAVE = "sub-save"  # with every one: more bytes, fresher rows


@dataclass(frozen=True, slots=True)
class SavingRules:
    """The settings of priority saving; the paper's (recalled) by default."""

    tracker: str = WHOLE  # or one of TRACKERS
    fraction: float = 0.125  # r
    n_large_tables: int = 7
    small_tables: SmallTables = SmallTables.EACH_INTERVAL
    sample_period: int = 2  # of SSU

    def __post_init__(self) -> None:
        if self.tracker != WHOLE and self.tracker not in TRACKERS:
            known = ", ".join([WHOLE, *TRACKERS])
            raise ParameterError(f"unknown tracker `{self.tracker}`; one of {known}")
        if not 0 < self.fraction <= 1 or abs(1 / self.fraction - round(1 / self.fraction)) > 1e-9:
            raise ParameterError(f"r must be one over a whole number, got {self.fraction}")
        if self.n_large_tables < 1 or self.sample_period < 1:
            raise ParameterError("the large tables and the sample period must be at least 1")

    @property
    def n_sub_saves(self) -> int:
        """Saves per interval T_save."""
        return 1 if self.tracker == WHOLE else round(1 / self.fraction)


class Saver:
    """Saves a trainer's state, and takes shards back to it. Made where a run starts."""

    def __init__(self, trainer: Trainer, shards: Shards, rules: SavingRules) -> None:
        self.shards, self.rules = shards, rules
        self.saved = SavedState(trainer)
        self.tracker = self._make_tracker(trainer)
        self._row_bytes = _bytes_of_first(trainer.model.table, trainer.optimizer.row_state)
        self._dense_bytes = trainer.model.dense.nbytes + trainer.optimizer.dense_state.nbytes
        self._bytes = np.zeros(2, np.int64)  # committed, abandoned
        self._pending_bytes = 0
        if self.tracker is not None:
            trainer.observe = self.tracker.observe

    def _make_tracker(self, trainer: Trainer) -> Tracker | None:
        layout, rules = self.shards.layout, self.rules
        large = layout.largest(rules.n_large_tables)
        self._small = [layout.of(t) for t in range(layout.n_tables) if t not in large]
        if rules.tracker == WHOLE:
            return None
        return TRACKERS[rules.tracker](
            Tracked(
                self.shards.of_tables(large),
                rules.fraction,
                trainer.model.table,
                self.saved.table,
                trainer.plan.seed,
                rules.sample_period,
            )
        )

    @property
    def bytes_written(self) -> int:
        """Bytes of all saves that committed: rows, their optimiser rows, the layers."""
        return int(self._bytes[0])

    @property
    def bytes_abandoned(self) -> int:
        """Bytes of saves that did not count, as if each had been written to its end."""
        return int(self._bytes[1])

    def start(self, number: int) -> None:
        """Fix the content of save `number` of the run, from 1; the n_sub_saves-th ends T_save."""
        ends_interval = number % self.rules.n_sub_saves == 0
        parts = self._parts(ends_interval)
        self.saved.start(parts, dense=ends_interval)
        n_rows = sum(_n_rows(part) for part in parts)
        self._pending_bytes = n_rows * self._row_bytes + ends_interval * self._dense_bytes

    def _parts(self, ends_interval: bool) -> list[slice | Ints]:
        if self.tracker is None:
            return [slice(0, self.shards.layout.n_rows)]
        small_too = ends_interval or self.rules.small_tables is SmallTables.EACH_SUB_SAVE
        return [self.tracker.choose(), *(self._small if small_too else [])]

    def commit(self) -> None:
        """The save under way counts."""
        self.saved.commit()
        if self.tracker is not None:
            self.tracker.committed()
        self._bytes[0] += self._pending_bytes

    def abandon(self) -> None:
        """The save under way does not count."""
        self.saved.abandon()
        if self.tracker is not None:
            self.tracker.abandoned()
        self._bytes[1] += self._pending_bytes

    def save(self, number: int) -> None:
        """A save that nothing interrupts."""
        self.start(number)
        self.commit()

    def lose(self, servers: Sequence[int]) -> None:
        """Servers fail: their rows go back to what was last saved, all others go on.

        If no server is left, the layers go back too: the store is then all that there is.
        """
        self.saved.revert(segment.rows for segment in self.shards.of_servers(servers))
        for server in set(servers):
            if self.tracker is not None:
                self.tracker.forget(server)
        if len(set(servers)) == self.shards.n_servers:
            self.saved.revert_dense()

    @property
    def tracker_memory_bytes(self) -> int:
        """What the tracker takes on all servers together."""
        return 0 if self.tracker is None else self.tracker.memory_bytes

    def identity(self) -> dict[str, Any]:
        """What tells how this run is saved, for its checkpoints; of JSON's types."""
        servers = {"n": self.shards.n_servers, "by": str(self.shards.by)}
        return {"servers": servers, "saving": asdict(self.rules)}

    def state(self) -> dict[str, Array]:
        """Every array that decides what later saves and failures do, live."""
        tracker = {} if self.tracker is None else self.tracker.state()
        return {**self.saved.state(), **tracker, "saved/bytes": self._bytes}


def _n_rows(part: slice | Ints) -> int:
    return part.stop - part.start if isinstance(part, slice) else len(part)


def _bytes_of_first(table: Array, row_state: Array) -> int:
    """Bytes of one row and of what the optimiser keeps beside it."""
    return table[:1].nbytes + row_state[:1].nbytes
