"""A training loop of one's own, seen from beside it: which rows moved, which were looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cprsim.kernel.shape import TableLayout
from cprsim.measuring.array_pool import ArrayPool
from cprsim.measuring.plugged import FollowedTables
from cprsim.torch.tables import Accesses, make_states, tables_of
from cprsim.torch.trainer import dense_bytes, dense_tensors, write_dense


class Followed(FollowedTables):
    """The tables and the dense state of a module, as saves and failures see them.

    Parameters
    ----------
    module : has at least one Embedding or EmbeddingBag
    optimizers : one, or several
    seed : of what is drawn at random in saving

    Raises
    ------
    ParameterError : no table
    """

    def __init__(self, module: Any, optimizers: Any, seed: int = 0) -> None:
        self.module = module
        self.optimizers = list(optimizers) if isinstance(optimizers, Sequence) else [optimizers]
        make_states(module, self.optimizers)
        self.tables = tables_of(module, self.optimizers)
        layout = TableLayout(tuple(table.n_rows for table in self.tables.values()))
        super().__init__(self, layout, seed, ArrayPool())
        self._all_move = not all(table.moves_only_accessed for table in self.tables.values())
        self.accesses = Accesses(module, self.tables)
        self.accesses.listens = True

    def step(self, n: int) -> None:
        """A step on n samples has been made."""
        accessed = self.accesses.take(n)
        if accessed:
            self.note(accessed)
        if self._all_move:
            self.changed[:] = 1

    def get_dense(self) -> bytes:
        """All that is no row: parameters, buffers, optimiser state."""
        return dense_bytes(dense_tensors(self.module, self.optimizers, self.tables))

    def set_dense(self, blob: bytes) -> None:
        """The same back."""
        write_dense(dense_tensors(self.module, self.optimizers, self.tables), blob)

    def close(self) -> None:
        """Listen no longer."""
        self.accesses.remove()
