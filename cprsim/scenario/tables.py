"""Embedding tables: how many bytes each embedding server holds.

The presets are the tables of DLRM's two public reference models; `published` with the reference
scripts (facebookresearch/dlrm), in float32. Terabyte: capped at 10 M rows, 0.875 sub-sampling.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from cprsim.kernel.shape import PRESETS as SHAPES
from cprsim.scenario.quantities import Model


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
    name: tuple(Table(rows=rows, dimension=shape.dimension) for rows in shape.tables.rows)
    for name, shape in SHAPES.items()
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
