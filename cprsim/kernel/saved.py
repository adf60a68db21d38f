"""What was last saved of each embedding row, and going back to it.

The store holds a copy of the table and of the optimiser's rows as the last committed save of each
row left them; the start of the run is a save. Saving and reverting touch only rows that changed:
all others already equal their copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cprsim.kernel.loops import Array
from cprsim.kernel.weights import Parcel, Weights
from cprsim.records import Ints


class Savable(Protocol):
    """What trains and can be saved: a trainer, or replicas with their central copy."""

    changed: Array  # (n_rows,) marks the rows that moved; whoever saves clears it
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
        """Fix the content of a save: the changed rows among `parts`, and the layers if `dense`.

        Takes memory and time in proportion to what changed, beside one byte per row to look at.
        """
        self._require_idle()
        live = self._trainer.weights
        rows = np.concatenate([np.zeros(0, np.int64), *(self._changed(part) for part in parts)])
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
            rows = self._changed(part)
            self._trainer.weights.write(rows, self.weights.read(rows))
            self._trainer.changed[rows] = 0

    def revert_dense(self) -> None:
        """The layers and their optimiser state go back: no trainer is left that knows better."""
        self._require_idle()
        self._trainer.weights.write_dense(self.weights.read_dense())

    def state(self) -> dict[str, Array]:
        """The arrays of the store, live. Raises RuntimeError while a save is under way."""
        self._require_idle()
        return {f"saved/{name}": array for name, array in self.weights.state().items()}

    def _changed(self, part: slice | Ints) -> Ints:
        """Ids of the rows of a part that changed since they were last saved."""
        if isinstance(part, slice):
            start, _, step = part.indices(len(self._trainer.changed))
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
