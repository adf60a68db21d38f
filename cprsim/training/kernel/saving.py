"""Saves and failures acting on a model: rows that a save writes, bytes, and rows that are lost.

Without priority a save writes every server's whole shard and the layers. With it, an interval is
divided into 1 / r sub-saves: each writes up to r x N rows of each large table, the most urgent ones
by a tracker. The sub-save that ends the interval also writes the layers and the small tables (an
option writes the small tables with every sub-save, at more bytes).

A saver holds a copy of the rows as the last committed save of each left them; the start of the run
counts as a save. Saving and reverting touch only rows that changed: all others equal their copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cprsim.job.records import EventKind, Ints, SmallTables, SubSaves
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.schedule import RunEvent
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trackers import TRACKER_CLASSES, Tracked, Tracker
from cprsim.training.kernel.weights import Parcel, TrainableModel, Weights

# Every save is whole: no table is large, and all others are written each time.
WHOLE_SAVES = SubSaves("", 1.0, n_large_tables=0, small_tables=SmallTables.EACH_SUB_SAVE)
# Of a save in progress: the rows that changed (m,), as they were at its start, the layers and their
# optimiser state (None where the save does not hold them), and its bytes.
Content = tuple[Ints, Parcel, Any, int]


class Saver:
    """Saves a model, and reverts its shards to the last save. Created at the start of a run.

    One save is in progress at a time: `start` fixes its content, `commit` makes it valid, `abandon`
    discards it. A failure abandons the save in progress before servers are lost.

    Parameters
    ----------
    sub_saves : how an interval is divided into sub-saves; None: every save is whole
    follows : one of several savers of a run: its owner marks moved rows in `changed` and shows the
        looked-up rows to the tracker
    like : the saver to continue from, on the same run
    """

    def __init__(
        self,
        model: TrainableModel,
        shards: Shards,
        sub_saves: SubSaves | None = None,
        *,
        follows: bool = False,
        like: Saver | None = None,
    ) -> None:
        self.model, self.shards, self.sub_saves = model, shards, sub_saves or WHOLE_SAVES
        self.changed = np.zeros_like(model.changed) if follows else model.changed
        self.changed[:] = 0 if like is None else like.changed
        self.stored: Weights = (model.weights if like is None else like.stored).copy()
        self.tracker = self._tracker()
        self.bytes_written: int = 0 if like is None else like.bytes_written  # by committed saves
        self._pending: Content | None = None
        if not follows:
            model.observe = self.tracker.observe
        if like is not None:
            for name, array in like.tracker.state().items():
                np.copyto(self.tracker.state()[name], array)

    def _tracker(self) -> Tracker:
        how, shards = self.sub_saves, self.shards
        segments = shards.of_tables(shards.layout.largest(how.n_large_tables))
        live, stored = self.model.weights.table, self.stored.table
        tracker = Tracker if how is WHOLE_SAVES else TRACKER_CLASSES[how.tracker]
        return tracker(
            Tracked(
                shards.layout, segments, how.fraction, live, stored, self.model.seed,
                how.sample_period, momentum=self.model.weights.momentum,
            )
        )  # fmt: skip

    def fork(self) -> Saver:
        """A copy that continues alone with the run. Raises RuntimeError during a save."""
        self._require_idle()
        return Saver(self.model, self.shards, self.sub_saves, like=self)

    def do(self, event: RunEvent) -> None:
        """Apply an event to saves and rows; the run handles steps back in the data."""
        if event.kind is EventKind.REVERTED:
            self.lose(event.servers, self.takes_layers(event))
        if event.kind is EventKind.SAVE_STARTED:
            self.start(event.ends_interval)
        if event.kind is EventKind.SAVE_COMMITTED:
            self.commit()
        if event.kind is EventKind.SAVE_ABANDONED:
            self.abandon()

    def start(self, ends_interval: bool = True) -> None:
        """Fix the content of a save: a whole one or, with priority, one of an interval's parts."""
        self._require_idle()
        parts, live = self._parts(ends_interval), self.model.weights
        rows = np.concatenate([changed_rows(self.changed, part) for part in parts])
        n_bytes = sum(live.bytes_of(part) for part in parts) + ends_interval * live.dense_bytes
        dense = live.read_dense() if ends_interval else None
        self._pending = rows, live.read(rows), dense, n_bytes
        self.changed[rows] = 0

    def _parts(self, ends_interval: bool) -> list[slice | Ints]:
        """Rows that the save which starts now may write."""
        layout, how = self.shards.layout, self.sub_saves
        if not ends_interval and how.small_tables is SmallTables.EACH_INTERVAL:
            return [self.tracker.choose()]
        small = set(range(layout.n_tables)) - set(layout.largest(how.n_large_tables))
        return [self.tracker.choose(), *(layout.of(table) for table in sorted(small))]

    def commit(self) -> None:
        """Commit the save in progress: its content becomes the last saved state."""
        rows, parcel, dense, n_bytes = self._take_pending()
        self.stored.write(rows, parcel)
        if dense is not None:
            self.stored.write_dense(dense)
        self.tracker.committed()
        self.bytes_written += n_bytes

    def abandon(self) -> None:
        """Abandon the save in progress: its rows are unsaved again."""
        self.changed[self._take_pending()[0]] = 1
        self.tracker.abandoned()

    def save(self, ends_interval: bool = True) -> None:
        """Make a save without interruption."""
        self.start(ends_interval)
        self.commit()

    def takes_layers(self, event: RunEvent) -> bool:
        """Whether the layers revert too: no server is left, and no trainer that has them."""
        return len(set(event.servers)) == self.shards.n_servers and not event.keeps_layers

    def lose(self, servers: Sequence[int], takes_layers: bool = False) -> None:
        """Fail servers: their rows revert to the last save, all others stay."""
        self._require_idle()
        live = self.model.weights
        for segment in self.shards.of_servers(servers):
            rows = changed_rows(self.changed, segment.rows)
            live.write(rows, self.stored.read(rows))
            self.changed[rows] = 0
        for server in set(servers):
            self.tracker.forget(server)
        if takes_layers:
            live.write_dense(self.stored.read_dense())

    @property
    def tracker_fraction(self) -> float:
        """Memory of the tracker, on all servers together, over that of the rows it tracks."""
        return self.tracker.memory_bytes / max(self.tracker.tracked_bytes, 1)

    def _take_pending(self) -> Content:
        if self._pending is None:
            raise RuntimeError("no save is under way")
        content, self._pending = self._pending, None
        return content

    def _require_idle(self) -> None:
        if self._pending is not None:
            raise RuntimeError("a save is under way")


def changed_rows(changed: Array, part: slice | Ints) -> Ints:
    """Ids of the rows of a part that changed since they were last saved."""
    if isinstance(part, slice):
        start, _, step = part.indices(len(changed))
        positions: Ints = np.flatnonzero(changed[part])
        return start + step * positions
    rows: Ints = part[changed[part] != 0]
    return rows
