"""Sizes of a model: the rows of its tables, the width of its layers; the two of the CPR paper.

The small stand-ins that accuracy is measured on are the same shapes with `TableLayout.capped`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.records import Ints

FLOAT_BYTES = 4
MOST_ROW_IDS = 2**31 - 1  # row ids are int32: half the bytes of the clicks


@dataclass(frozen=True)
class TableLayout:
    """How many rows each embedding table has, and where it lies in the one fused table.

    Row i of table t is row ``first_row[t] + i`` of the fused table; ids are fused ones from the
    moment that clicks are encoded.
    """

    rows: tuple[int, ...]  # (n_tables,)

    def __post_init__(self) -> None:
        if not self.rows or min(self.rows) < 1:
            raise ParameterError(f"every table needs at least one row, got {self.rows}")
        if sum(self.rows) > MOST_ROW_IDS:
            raise ParameterError(f"{sum(self.rows)} rows; row ids allow {MOST_ROW_IDS}")

    @property
    def n_tables(self) -> int:
        return len(self.rows)

    @property
    def n_rows(self) -> int:
        return sum(self.rows)

    @cached_property
    def first_row(self) -> Ints:
        """(n_tables + 1,) fused id of each table's first row, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.rows)])

    def of(self, table: int) -> slice:
        """The fused rows of one table."""
        return slice(int(self.first_row[table]), int(self.first_row[table + 1]))

    def largest(self, n: int) -> tuple[int, ...]:
        """The n tables with the most rows, the larger first; of equals the lower number."""
        return tuple(sorted(range(self.n_tables), key=lambda t: (-self.rows[t], t))[:n])

    def capped(self, most_rows: int) -> TableLayout:
        """The same tables with none larger than `most_rows`."""
        return TableLayout(tuple(min(rows, most_rows) for rows in self.rows))


@dataclass(frozen=True)
class ModelShape:
    """A DLRM: dot interaction between 26 embeddings and a bottom MLP's output for 13 integers.

    `bottom` and `top` are hidden widths: the bottom MLP ends in `dimension`, the top one in 1.
    """

    tables: TableLayout
    dimension: int = 16
    bottom: tuple[int, ...] = (64, 32)
    top: tuple[int, ...] = (64, 32)
    n_integers: int = 13

    @property
    def n_fields(self) -> int:
        """What interacts: the bottom MLP's output (field 0) and a row of each table."""
        return 1 + self.tables.n_tables

    @property
    def n_pairs(self) -> int:
        return self.n_fields * (self.n_fields - 1) // 2

    @property
    def bottom_widths(self) -> tuple[int, ...]:
        return (self.n_integers, *self.bottom, self.dimension)

    @property
    def top_widths(self) -> tuple[int, ...]:
        return (self.dimension + self.n_pairs, *self.top, 1)

    @property
    def table_bytes(self) -> int:
        """Bytes of the embedding tables in float32, optimiser rows not counted."""
        return self.tables.n_rows * self.dimension * FLOAT_BYTES


# Published in facebookresearch/dlrm's reference scripts: table sizes, widths, dimension.
# fmt: off
CRITEO_KAGGLE = ModelShape(
    TableLayout((
        1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27,
        14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
    )),
    dimension=16, bottom=(512, 256, 64), top=(512, 256),
)
CRITEO_TERABYTE = ModelShape(  # rows capped at 10 M, 0.875 of the negatives left out
    TableLayout((
        9980333, 36084, 17217, 7378, 20134, 3, 7112, 1442, 61, 9758201, 1333352, 313829, 10, 2208,
        11156, 122, 4, 970, 14, 9994222, 7267859, 9946608, 415421, 12420, 101, 36,
    )),
    dimension=64, bottom=(512, 256), top=(512, 512, 256),
)
# fmt: on
MODEL_PRESETS = {"criteo-kaggle": CRITEO_KAGGLE, "criteo-terabyte": CRITEO_TERABYTE}
