"""The rows of one embedding server: read, updated, chosen for a save, taken back to one.

The arithmetic is the kernel's own, row by row in the order of the batch, so that all shards
together are bit by bit the kernel's table. What a tracker knows of a shard lives here and is lost
with it, except where round robin stands, which the job knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.loops import Array
from cprsim.kernel.model import Dlrm
from cprsim.kernel.optimizers import optimizer_for
from cprsim.kernel.shape import ModelShape, TableLayout
from cprsim.kernel.trackers.mfu import count_accesses
from cprsim.kernel.trackers.scar import squared_changes
from cprsim.kernel.trackers.tracker import most_urgent
from cprsim.records import Ints, SmallTables, SubSaves
from cprsim.rehearsal.material import Material, rows_of, segments_of
from cprsim.rehearsal.store import Arrays

TRACKERS = ("mfu", "scar", "round-robin")


@dataclass(slots=True, eq=False)
class Pushed:
    """What an optimiser takes of a batch: the gradient (k, 1 + 1, d) of each occurrence."""

    d_fields: Array


@dataclass(frozen=True, slots=True)
class Span:
    """A segment of a table as it lies in a shard."""

    table: int
    first: int
    n_rows: int

    @property
    def rows(self) -> slice:
        return slice(self.first, self.first + self.n_rows)


class Shard:
    """The rows of one server.

    Parameters
    ----------
    table : (n, d) the rows at the start of the run, copied
    sub_saves : how priority saving cuts an interval; None: every save is whole
    """

    def __init__(
        self, material: Material, server: int, table: Array, sub_saves: SubSaves | None
    ) -> None:
        self.spans = tuple(_spans(material, server))
        self.sub_saves = sub_saves
        n_rows = max(len(table), 1)  # a server may hold none
        shape = ModelShape(TableLayout((n_rows,)), material.shape.dimension, (1,), (1,))
        rows = np.zeros((n_rows, material.shape.dimension), np.float32)
        rows[: len(table)] = table
        self._model = Dlrm(shape, table=rows)
        self._optimizer = optimizer_for(material.plan.optimizer, self._model)
        self.changed = np.zeros(n_rows, np.uint8)
        self._gradients = np.zeros((0, 2, material.shape.dimension), np.float32)
        self._large = _large(material, sub_saves)
        self._pending: _Pending | None = None
        self._reset_tracker()

    @property
    def table(self) -> Array:
        return self._model.table

    @property
    def row_state(self) -> Array:
        """What the optimiser keeps per row; (0,) where nothing."""
        return self._optimizer.row_state

    def pull(self, rows: Array) -> Array:
        """Rows (k, d) at these places (k,)."""
        found: Array = self.table[rows]
        return found

    def push(self, rows: Array, gradients: Array, rate: float) -> None:
        """One batch's gradients (k, d) of the rows at these places (k,), in the batch's order."""
        k, rows = len(rows), np.array(rows)  # what came in a message is read-only
        if k > len(self._gradients):
            self._gradients = np.zeros((k, 2, gradients.shape[1]), np.float32)
        work = Pushed(self._gradients[:k])
        work.d_fields[:, 1] = gradients
        self._optimizer.update_rows(rows.reshape(k, 1), work, self.changed, rate)
        if self._counts is not None:
            count_accesses(self._counts, rows, 0)

    # ----------------------------------------------------------------- saves

    def start_save(self, ends_interval: bool, number: int) -> Arrays:
        """Fix the content of a save and return it; it has no `rows` where it is whole.

        Parameters
        ----------
        number : how many sub-saves were committed before, for round robin
        """
        if self.sub_saves is None:
            self._pending = _Pending(np.flatnonzero(self.changed))
            self.changed[:] = 0
            return {"table": self.table.copy(), "row_state": self.row_state.copy()}
        chosen, counts = self._choose(number)
        parts = [chosen, *self._small(ends_interval)]
        rows = np.concatenate(parts) if parts else chosen
        moved = rows[self.changed[rows] != 0]
        self._pending = _Pending(moved, chosen, counts, self.table[moved])
        self.changed[moved] = 0
        row_state = self.row_state[rows] if len(self.row_state) else self.row_state.copy()
        return {"rows": rows, "table": self.table[rows], "row_state": row_state}

    def commit(self) -> None:
        """The save counts."""
        pending = self._take_pending()
        if pending is None:
            return
        if self._counts is not None and pending.chosen is not None and pending.counts is not None:
            self._counts[pending.chosen] -= pending.counts
        if self._saved is not None and pending.table is not None:
            self._saved[pending.moved] = pending.table

    def abandon(self) -> None:
        """It does not: its rows are unsaved again."""
        pending = self._take_pending()
        if pending is not None:
            self.changed[pending.moved] = 1

    def _take_pending(self) -> _Pending | None:
        pending, self._pending = self._pending, None
        return pending

    def restore(self, image: Arrays) -> None:
        """Go back to what was last saved; what the tracker knew is lost."""
        self._pending = None
        self.table[:] = image["table"]
        self.row_state[:] = image["row_state"]
        self.changed[:] = 0
        self._reset_tracker()

    # ----------------------------------------------------------------- which rows

    def _reset_tracker(self) -> None:
        tracker = None if self.sub_saves is None else self.sub_saves.tracker
        n = len(self.table)
        self._counts = np.zeros(n, np.uint32) if tracker == "mfu" else None
        self._saved = self.table.copy() if tracker == "scar" else None

    def _choose(self, number: int) -> tuple[Ints, Array | None]:
        """Places of the rows of the large tables that go out, and their counts where counted."""
        assert self.sub_saves is not None
        found = [self._of_span(span, number) for span in self.spans if span.table in self._large]
        chosen = np.concatenate(found) if found else np.zeros(0, np.int64)
        return chosen, None if self._counts is None else self._counts[chosen]

    def _of_span(self, span: Span, number: int) -> Ints:
        assert self.sub_saves is not None
        budget = ceil(self.sub_saves.fraction * span.n_rows)
        if self._counts is not None:
            return span.first + most_urgent(self._counts[span.rows], budget)
        if self._saved is not None:
            changes = squared_changes(self.table[span.rows], self._saved[span.rows])
            return span.first + most_urgent(changes, budget)
        n_parts = self.sub_saves.n_per_interval
        part = number % n_parts
        first, stop = (span.n_rows * p // n_parts for p in (part, part + 1))
        return span.first + np.arange(first, stop)

    def _small(self, ends_interval: bool) -> list[Ints]:
        """Places of all rows of the tables that are not prioritised, where this save has them."""
        assert self.sub_saves is not None
        if not ends_interval and self.sub_saves.small_tables is SmallTables.EACH_INTERVAL:
            return []
        small = [span for span in self.spans if span.table not in self._large]
        return [np.arange(span.first, span.first + span.n_rows) for span in small]


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """A save under way: which of its rows had changed, and what the tracker has to know."""

    moved: Ints
    chosen: Ints | None = None
    counts: Array | None = None
    table: Array | None = None


def _spans(material: Material, server: int) -> list[Span]:
    spans, at = [], 0
    for segment in segments_of(material.shards, server):
        spans.append(Span(segment.table, at, segment.n_rows))
        at += segment.n_rows
    return spans


def _large(material: Material, sub_saves: SubSaves | None) -> frozenset[int]:
    if sub_saves is None:
        return frozenset()
    if sub_saves.tracker not in TRACKERS:
        raise ParameterError(
            f"cpr-{sub_saves.tracker} can't be rehearsed; of the priority strategies there are "
            + ", ".join(f"cpr-{name}" for name in TRACKERS)
        )
    return frozenset(material.shape.tables.largest(sub_saves.n_large_tables))


def initial_rows(material: Material, table: Array, server: int) -> Array:
    """(n, d) a server's rows of the whole table (n_rows, d)."""
    rows: Array = table[rows_of(material.shards, server)]
    return rows
