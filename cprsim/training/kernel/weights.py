"""A model in training, and the state that training changes: rows by id, and the dense state.

Rows are named by fused ids: row i of table t is row ``layout.first_row[t] + i``. A row's parcel
holds its weights first and then its optimiser state; the dense parcel holds the layers and their
optimiser state. Only its owner knows the layout of a parcel: it is only ever written back to the
weights that it was read from, or to a copy of them.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cprsim.job.records import Ints
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.metrics import Quality

MEMINFO = Path("/proc/meminfo")
SHARE_OF_FREE_MEMORY = 0.25  # of the free memory, that one array of a copy may take

Parcel = tuple[Array, ...]


# vectors of rows (n, d), copied or live, by slices of fused ids that lie within one table
Sliced = Any


class Weights(Protocol):
    """The embedding rows and the dense state of a model, live, or a copy of them."""

    @property
    def table(self) -> Sliced:
        """The weights of some rows of one table, without the optimiser's."""

    @property
    def momentum(self) -> Sliced | None:
        """The first part of each row's optimiser state; None without one."""

    def read(self, rows: Ints) -> Parcel:
        """Copies of rows (m,), in that order."""

    def write(self, rows: Ints, parcel: Parcel) -> None:
        """Set rows (m,) to a parcel that was read from them."""

    def read_dense(self) -> Any:
        """A copy of the dense state."""

    def write_dense(self, parcel: Any) -> None:
        """Set the dense state to a parcel that was read from it."""

    def bytes_of(self, rows: slice | Ints) -> int:
        """Bytes of some rows, the optimiser's included."""

    @property
    def dense_bytes(self) -> int:
        """Bytes of the dense state."""

    def copy(self) -> Weights:
        """A copy that reads and writes the same parcels."""


class TrainableModel(Protocol):
    """A model in training on its samples: the built-in one, or the user's trainer."""

    changed: Array  # (n_rows,) marks the rows that moved; a save clears it
    observe: Callable[[Array], None] | None  # sees the rows of each batch after its update

    @property
    def weights(self) -> Weights:
        """The state that a save holds, live."""

    @property
    def seed(self) -> int:
        """Seed of the random draws in its saves."""

    @property
    def n_samples(self) -> int:
        """Samples in the whole run."""

    @property
    def position(self) -> int:
        """Samples trained so far."""

    def on_grid(self, samples: float) -> int:
        """The position between two batches that is nearest to a number of samples."""

    def run(self, until: int | None = None) -> float:
        """Train up to a position on the grid; the mean loss on the way [nats], NaN: not known.

        None: up to the end.
        """

    def evaluate(self) -> Quality:
        """Quality on samples that it is not trained on."""

    def state(self) -> Any:
        """A copy of everything that decides the rest of the run."""

    def restore(self, state: Any) -> None:
        """Restore the model to a copied state, which can be used several times."""


@dataclass(frozen=True, slots=True, eq=False)
class FusedWeights:
    """Those of the built-in model: one table, the optimiser's values per row, one vector."""

    table: Array  # (n_rows, d)
    row_state: Array  # (n_rows, ...), or (n_rows, 0) where the optimiser keeps nothing per row
    dense: Array  # (n_dense,)
    dense_state: Array  # of any length

    @property
    def momentum(self) -> Array | None:
        return momentum_of(self.row_state, self.table)

    def read(self, rows: Ints) -> Parcel:
        return self.table[rows], self.row_state[rows]

    def write(self, rows: Ints, parcel: Parcel) -> None:
        self.table[rows], self.row_state[rows] = parcel

    def read_dense(self) -> Parcel:
        return self.dense.copy(), self.dense_state.copy()

    def write_dense(self, parcel: Parcel) -> None:
        self.dense[:], self.dense_state[:] = parcel

    def bytes_of(self, rows: slice | Ints) -> int:
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        return int(n_rows * (self.table[:1].nbytes + self.row_state[:1].nbytes))

    @property
    def dense_bytes(self) -> int:
        return self.dense.nbytes + self.dense_state.nbytes

    def copy(self) -> FusedWeights:
        live = (self.table, self.row_state, self.dense, self.dense_state)
        copies = [room_for(array.shape, array.dtype) for array in live]
        for copied, array in zip(copies, live, strict=True):
            copied[:] = array
        return FusedWeights(*copies)


def momentum_of(row_state: Array, table: Array) -> Array | None:
    """The first values of the optimizer's state per row, live: as many as a row has, or one."""
    if not row_state.size:
        return None
    first: Array = row_state.reshape(len(table), -1)[:, : table.shape[1]]
    return first


def room_for(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array whose content is not set yet: in memory, or in a file that vanishes with it."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if n_bytes <= SHARE_OF_FREE_MEMORY * free_bytes():
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="cprsim-") as file:  # the map keeps it alive
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))


def free_bytes() -> int:
    """Memory of this machine that can still be taken; of systems other than Linux, all of it."""
    text = MEMINFO.read_text() if MEMINFO.exists() else ""
    if available := re.search(r"MemAvailable: +(\d+) kB", text):
        return 1024 * int(available[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
