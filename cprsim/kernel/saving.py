"""Saves and failures acting on a trainer: which rows a save writes, how many bytes, what is lost.

Without priority a save writes every server's whole shard and the layers. With it, an interval is
cut into 1 / r sub-saves: each writes up to r x N rows of each large table, the ones that a tracker
finds most urgent. The sub-save that ends the interval also writes the layers and the small tables
(an option writes the small tables with every sub-save, at more bytes).

`SavedState` holds a copy of the rows as the last committed save of each left them; the start of
the run counts as a save. Saving and reverting touch only rows that changed: all others equal their
copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.loops import Array
from cprsim.kernel.shards import Shards
from cprsim.kernel.trackers import TRACKERS, Tracked, Tracker
from cprsim.kernel.weights import Parcel, Sliced, Weights
from cprsim.records import Ints, SmallTables, SubSaves


class Stateful(Protocol):
    """A part of a run, such as a trainer or a tracker."""

    def state(self) -> dict[str, Array]:
        """The arrays that decide how it goes on, by name, live."""


def copy_state(source: Stateful, target: Stateful) -> None:
    """Make `target` what `source` is: it then goes on bit by bit as that does."""
    arrays, live = source.state(), target.state()
    for name in sorted(arrays.keys() | live.keys()):
        shapes = [state[name].shape if name in state else None for state in (arrays, live)]
        if shapes[0] != shapes[1]:
            raise ParameterError(f"`{name}` is {shapes[0]} there and {shapes[1]} in this run")
    for name, array in arrays.items():
        np.copyto(live[name], array, casting="no")


class Savable(Protocol):
    """What trains and can be saved: a trainer, or replicas with their central copy."""

    changed: Array  # (n_rows,) marks the rows that moved; a save clears it
    observe: Callable[[Array], None] | None  # sees the rows of each batch after its update

    @property
    def weights(self) -> Weights:
        """What a save holds of it, live."""

    @property
    def seed(self) -> int:
        """Of what is drawn at random in saving it."""


@dataclass(frozen=True, slots=True)
class _Content:
    """What a save that has started will leave in the store: the changed rows as they were then."""

    rows: Ints  # (m,)
    parcel: Parcel
    dense: Any  # the layers and their optimiser state; None where the save does not hold them


class SavedState:
    """The store that a trainer's shards revert to.

    One save is under way at a time: `start` fixes its content, `commit` makes it valid, `abandon`
    forgets it. Reverting needs that no save is under way, as a failure abandons it.
    """

    def __init__(self, trainer: Savable, like: SavedState | None = None) -> None:
        # the trainer as it is counts as saved, unless the store goes on from another's
        self._trainer = trainer
        self._pending: _Content | None = None
        self.weights: Weights = (trainer if like is None else like).weights.copy()
        if like is None:
            trainer.changed[:] = 0

    def fork(self, trainer: Savable) -> SavedState:
        """The same store, for a run that branched off. Raises RuntimeError during a save."""
        self._require_idle()
        return SavedState(trainer, like=self)

    def start(self, parts: Iterable[slice | Ints], dense: bool) -> None:
        """Fix the content of a save: the changed rows among `parts`, and the layers if `dense`."""
        self._require_idle()
        live = self._trainer.weights
        rows = np.concatenate(
            [np.zeros(0, np.int64), *(changed_rows(self._trainer.changed, part) for part in parts)]
        )
        self._pending = _Content(rows, live.read(rows), live.read_dense() if dense else None)
        self._trainer.changed[rows] = 0

    def commit(self) -> None:
        """The save is valid: what it holds is now what was last saved."""
        content = self._take_pending()
        self.weights.write(content.rows, content.parcel)
        if content.dense is not None:
            self.weights.write_dense(content.dense)

    def abandon(self) -> None:
        """The save does not count: its rows are unsaved again."""
        self._trainer.changed[self._take_pending().rows] = 1

    def revert(self, parts: Iterable[slice]) -> None:
        """The rows of `parts`, and their optimiser rows, go back to what was last saved."""
        self._require_idle()
        for part in parts:
            rows = changed_rows(self._trainer.changed, part)
            self._trainer.weights.write(rows, self.weights.read(rows))
            self._trainer.changed[rows] = 0

    def revert_dense(self) -> None:
        """The layers and their optimiser state go back: no trainer is left."""
        self._require_idle()
        self._trainer.weights.write_dense(self.weights.read_dense())

    def _take_pending(self) -> _Content:
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


class Priorities:
    """Which parts of the rows each save writes.

    Parameters
    ----------
    sub_saves : how an interval is cut into sub-saves; None: every save is whole
    table, saved_table : vectors of the rows, live, and as last saved
    seed : of what a tracker draws at random
    """

    def __init__(
        self, shards: Shards, sub_saves: SubSaves | None, table: Sliced, saved_table: Sliced,
        seed: int,
    ) -> None:  # fmt: skip
        self._layout, self._sub_saves = shards.layout, sub_saves
        self.tracker: Tracker | None = None
        if sub_saves is None:
            return
        if sub_saves.tracker not in TRACKERS:
            known = ", ".join(TRACKERS)
            raise ParameterError(f"unknown tracker `{sub_saves.tracker}`; one of {known}")
        segments = shards.of_tables(shards.layout.largest(sub_saves.n_large_tables))
        self.tracker = TRACKERS[sub_saves.tracker](
            Tracked(
                shards.layout, segments, sub_saves.fraction, table, saved_table, seed,
                sub_saves.sample_period,
            )
        )  # fmt: skip

    @property
    def observe(self) -> Callable[[Array], None] | None:
        """To be called with the rows of each batch; None where every save is whole."""
        return None if self.tracker is None else self.tracker.observe

    def parts(self, ends_interval: bool) -> list[slice | Ints]:
        """What the save that starts now may write."""
        layout, how = self._layout, self._sub_saves
        if how is None or self.tracker is None:
            return [slice(0, layout.n_rows)]
        if not ends_interval and how.small_tables is SmallTables.EACH_INTERVAL:
            return [self.tracker.choose()]
        small = set(range(layout.n_tables)) - set(layout.largest(how.n_large_tables))
        return [self.tracker.choose(), *(layout.of(table) for table in sorted(small))]

    def committed(self) -> None:
        """The save that `parts` was asked for counts."""
        if self.tracker is not None:
            self.tracker.committed()

    def abandoned(self) -> None:
        """It does not count."""
        if self.tracker is not None:
            self.tracker.abandoned()

    def forget(self, servers: Iterable[int]) -> None:
        """Servers are lost, and with them what was known of their rows."""
        for server in servers:
            if self.tracker is not None:
                self.tracker.forget(server)

    def memory_fraction(self, stored: Sliced) -> float:
        """Memory of the tracker, on all servers together, over that of the rows it tracks."""
        if self.tracker is None or self._sub_saves is None:
            return 0.0
        n_bytes = 0
        for table in self._layout.largest(self._sub_saves.n_large_tables):
            first = self._layout.of(table).start
            n_bytes += self._layout.rows[table] * stored[first : first + 1].nbytes
        return self.tracker.memory_bytes / n_bytes


class Saver:
    """Saves a trainer's state, and takes shards back to it. Made where a run starts.

    `sub_saves` says how an interval is cut into sub-saves; None: every save is whole. An unknown
    tracker raises ParameterError.
    """

    def __init__(
        self,
        trainer: Savable,
        shards: Shards,
        sub_saves: SubSaves | None = None,
        saved: SavedState | None = None,
    ) -> None:
        self.shards, self.sub_saves = shards, sub_saves
        self.saved = SavedState(trainer) if saved is None else saved
        self._priorities = Priorities(
            shards, sub_saves, trainer.weights.table, self.saved.weights.table, trainer.seed
        )
        self._bytes = np.zeros(1, np.int64)  # of committed saves
        self._pending_bytes = 0
        if self.tracker is not None:
            trainer.observe = self.tracker.observe

    @property
    def tracker(self) -> Tracker | None:
        """What chooses rows; None where every save is whole."""
        return self._priorities.tracker

    def fork(self, trainer: Savable) -> Saver:
        """The same saver for a run that branched off; marks of changed rows stay as they are."""
        other = Saver(trainer, self.shards, self.sub_saves, self.saved.fork(trainer))
        other._bytes[:] = self._bytes
        if self.tracker is not None and other.tracker is not None:
            copy_state(self.tracker, other.tracker)
        return other

    @property
    def bytes_written(self) -> int:
        """Bytes of all saves that committed: rows, their optimiser rows, the layers."""
        return int(self._bytes[0])

    def start(self, ends_interval: bool = True) -> None:
        """Fix the content of a save: a whole one or, with priority, one of an interval's parts."""
        parts = self._priorities.parts(ends_interval)
        self.saved.start(parts, dense=ends_interval)
        store = self.saved.weights
        n_bytes = sum(store.bytes_of(part) for part in parts)
        self._pending_bytes = n_bytes + ends_interval * store.dense_bytes

    def commit(self) -> None:
        """The save under way counts."""
        self.saved.commit()
        self._priorities.committed()
        self._bytes[0] += self._pending_bytes

    def abandon(self) -> None:
        """The save under way does not count."""
        self.saved.abandon()
        self._priorities.abandoned()

    def save(self, ends_interval: bool = True) -> None:
        """A save that nothing interrupts."""
        self.start(ends_interval)
        self.commit()

    def lose(self, servers: Sequence[int], keeps_layers: bool = False) -> None:
        """Servers fail: their rows go back to what was last saved, all others go on.

        If no server is left, the layers go back too, unless trainers are left that have them.
        """
        self.saved.revert(segment.rows for segment in self.shards.of_servers(servers))
        self._priorities.forget(set(servers))
        if len(set(servers)) == self.shards.n_servers and not keeps_layers:
            self.saved.revert_dense()

    @property
    def tracker_fraction(self) -> float:
        """Memory of the tracker, on all servers together, over that of the rows it tracks."""
        return self._priorities.memory_fraction(self.saved.weights.table)
