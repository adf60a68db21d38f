"""All that training changes of a model, as saves and failures see it: rows by id, and the rest.

Rows are named by fused ids: row i of table t is row ``layout.first_row[t] + i``. A row's parcel
holds its weights first and then what the optimiser keeps of it; the dense parcel holds the layers
and what the optimiser keeps of those. What a parcel is made of is its owner's affair: a parcel is
only ever written back to the weights that it was read from, or to a copy of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from cprsim.kernel.loops import Array
from cprsim.records import Ints

Parcel = tuple[Array, ...]


class Sliced(Protocol):
    """Vectors of rows, by slices of fused ids that lie within one table."""

    def __getitem__(self, some: slice, /) -> Array:
        """(n, d), copied or live."""


class Weights(Protocol):
    """The embedding rows and the dense state of a model, live, or a copy of them."""

    @property
    def table(self) -> Sliced:
        """The weights of some rows of one table, without the optimiser's."""

    def read(self, rows: Ints) -> Parcel:
        """Copies of rows (m,), in that order."""

    def write(self, rows: Ints, parcel: Parcel) -> None:
        """Rows (m,) become what a parcel of theirs holds."""

    def read_dense(self) -> Any:
        """A copy of the dense state."""

    def write_dense(self, parcel: Any) -> None:
        """The dense state becomes what was read."""

    def bytes_of(self, rows: slice | Ints) -> int:
        """Bytes of so many rows, the optimiser's included."""

    @property
    def dense_bytes(self) -> int:
        """Bytes of the dense state."""

    def copy(self) -> Weights:
        """A copy in memory that reads and writes the same parcels."""


@dataclass(frozen=True, slots=True, eq=False)
class FusedWeights:
    """Those of the built-in model: one table, the optimiser's values per row, one vector."""

    table: Array  # (n_rows, d)
    row_state: Array  # (n_rows, ...), or (0,) where the optimiser keeps nothing per row
    dense: Array  # (n_dense,)
    dense_state: Array  # of any length

    def read(self, rows: Ints) -> Parcel:
        if not len(self.row_state):
            return (self.table[rows],)
        return self.table[rows], self.row_state[rows]

    def write(self, rows: Ints, parcel: Parcel) -> None:
        self.table[rows] = parcel[0]
        if len(self.row_state):
            self.row_state[rows] = parcel[1]

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
        arrays = (self.table, self.row_state, self.dense, self.dense_state)
        return FusedWeights(*(array.copy() for array in arrays))
