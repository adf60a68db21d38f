"""What was last saved of each embedding row, and going back to it.

The store holds a copy of the table and of the optimiser's rows as the last committed save of each
row left them; the start of the run is a save. Saving and reverting touch only rows that changed:
all others already equal their copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cprsim.kernel.loops import Array
from cprsim.kernel.model import Dlrm
from cprsim.kernel.optimizers import Optimizer
from cprsim.kernel.training import TrainingPlan
from cprsim.records import Ints


class Savable(Protocol):
    """What trains and can be saved: one trainer, or replicas with their central copy."""

    model: Dlrm
    optimizer: Optimizer
    changed: Array  # (n_rows,) marks the rows that moved; whoever saves clears it
    plan: TrainingPlan
    observe: Callable[[Array], None] | None  # sees the rows of each batch after its update


@dataclass(frozen=True, slots=True)
class _Content:
    """What a save that has started will leave in the store: the changed rows as they were then."""

    rows: Ints  # (m,)
    table: Array  # (m, d)
    row_state: Array  # (m,), or (0,) where the optimiser keeps nothing per row
    dense: tuple[Array, Array] | None  # the layers and their optimiser state


class SavedState:
    """The store that a trainer's shards revert to.

    One save is under way at a time: `start` fixes its content, `commit` makes it valid, `abandon`
    forgets it. Reverting needs that no save is under way, as a failure abandons it.
    """

    def __init__(self, trainer: Savable) -> None:
        self._trainer = trainer
        self.table = trainer.model.table.copy()
        self.row_state = trainer.optimizer.row_state.copy()
        self.dense = trainer.model.dense.copy()
        self.dense_state = trainer.optimizer.dense_state.copy()
        self._pending: _Content | None = None
        trainer.changed[:] = 0

    def start(self, parts: Iterable[slice | Ints], dense: bool) -> None:
        """Fix the content of a save: the changed rows among `parts`, and the layers if `dense`.

        Takes memory and time in proportion to what changed, beside one byte per row to look at.
        """
        self._require_idle()
        trainer = self._trainer
        rows = np.concatenate([np.zeros(0, np.int64), *(self._changed(part) for part in parts)])
        has_row_state = len(trainer.optimizer.row_state) > 0
        self._pending = _Content(
            rows,
            trainer.model.table[rows],
            trainer.optimizer.row_state[rows] if has_row_state else self.row_state,
            (trainer.model.dense.copy(), trainer.optimizer.dense_state.copy()) if dense else None,
        )
        trainer.changed[rows] = 0

    def commit(self) -> None:
        """The save is valid: what it holds is now what was last saved."""
        content = self._take_pending()
        self.table[content.rows] = content.table
        if len(self.row_state):
            self.row_state[content.rows] = content.row_state
        if content.dense is not None:
            self.dense[:], self.dense_state[:] = content.dense

    def abandon(self) -> None:
        """The save does not count: its rows are unsaved again."""
        self._trainer.changed[self._take_pending().rows] = 1

    def revert(self, parts: Iterable[slice]) -> None:
        """The rows of `parts`, and their optimiser rows, go back to what was last saved."""
        self._require_idle()
        trainer = self._trainer
        for part in parts:
            rows = self._changed(part)
            trainer.model.table[rows] = self.table[rows]
            if len(self.row_state):
                trainer.optimizer.row_state[rows] = self.row_state[rows]
            trainer.changed[rows] = 0

    def revert_dense(self) -> None:
        """The layers and their optimiser state go back: no trainer is left that knows better."""
        self._require_idle()
        self._trainer.model.dense[:] = self.dense
        self._trainer.optimizer.dense_state[:] = self.dense_state

    def state(self) -> dict[str, Array]:
        """The arrays of the store, live. Raises RuntimeError while a save is under way."""
        self._require_idle()
        return {
            "saved/table": self.table,
            "saved/row_state": self.row_state,
            "saved/dense": self.dense,
            "saved/dense_state": self.dense_state,
        }

    def _changed(self, part: slice | Ints) -> Ints:
        """Ids of the rows of a part that changed since they were last saved."""
        if isinstance(part, slice):
            start, _, step = part.indices(len(self.table))
            positions: Ints = np.flatnonzero(self._trainer.changed[part])
            return start + step * positions
        rows: Ints = part[self._trainer.changed[part] != 0]
        return rows

    def _take_pending(self) -> _Content:
        if self._pending is None:
            raise RuntimeError("no save is under way")
        content, self._pending = self._pending, None
        return content

    def _require_idle(self) -> None:
        if self._pending is not None:
            raise RuntimeError("a save is under way")
