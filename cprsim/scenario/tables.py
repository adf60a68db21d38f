"""Embedding tables: how many bytes each embedding server holds.

The presets are the tables of DLRM's two public reference models; `published` with the reference
scripts (facebookresearch/dlrm), in float32. Terabyte: capped at 10 M rows, 0.875 sub-sampling.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from cprsim.scenario.quantities import Model

# fmt: off
KAGGLE_ROWS = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
    5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
)
TERABYTE_ROWS = (
    9980333, 36084, 17217, 7378, 20134, 3, 7112, 1442, 61, 9758201, 1333352, 313829, 10, 2208,
    11156, 122, 4, 970, 14, 9994222, 7267859, 9946608, 415421, 12420, 101, 36,
)
# fmt: on


class Table(Model):
    """One embedding table."""

    rows: int = Field(strict=True, ge=1, le=10**13, description="Rows of the table, a count.")
    dimension: int = Field(strict=True, ge=1, le=10**6, description="Numbers per row, a count.")
    bytes_per_value: int = Field(
        4, strict=True, ge=1, le=16, description="Bytes per number: 4 for float32, 2 for float16."
    )

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole table."""
        return self.rows * self.dimension * self.bytes_per_value


PRESETS: dict[str, tuple[Table, ...]] = {
    "criteo-kaggle": tuple(Table(rows=rows, dimension=16) for rows in KAGGLE_ROWS),
    "criteo-terabyte": tuple(Table(rows=rows, dimension=64) for rows in TERABYTE_ROWS),
}
Preset = Literal["criteo-kaggle", "criteo-terabyte"]


def _written_as(tables: Any) -> str:
    return "as:preset" if isinstance(tables, str) else "as:list"


Tables = Annotated[
    Annotated[Preset, Tag("as:preset")]
    | Annotated[tuple[Table, ...], Field(min_length=1, max_length=1_000), Tag("as:list")],
    Discriminator(_written_as),
]


def tables_bytes(tables: str | tuple[Table, ...]) -> int:
    """Bytes of all tables together; a name stands for the preset's."""
    return sum(
        table.size_bytes for table in (PRESETS[tables] if isinstance(tables, str) else tables)
    )
