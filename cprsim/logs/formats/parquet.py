"""Parquet with a row per outage."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

import pandas as pd

from cprsim.logs.files import opened, trace_error
from cprsim.logs.log import LogFormat
from cprsim.logs.reading import FIRST_ROW, ROWS_AT_ONCE
from cprsim.logs.tables import read_table


def parquet_pieces(log: PathLike[str]) -> Iterator[pd.DataFrame]:
    """The rows as tables of text, indexed as a CSV's rows; fields of a struct as meta.host."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        with opened(log, None) as file, pq.ParquetFile(file) as table:
            for batch in table.iter_batches(batch_size=ROWS_AT_ONCE):
                first, row = row + 1 - FIRST_ROW, row + batch.num_rows
                flattened = pa.Table.from_batches([batch]).flatten()
                columns = zip(flattened.schema.names, flattened.columns, strict=True)
                cells = {name: _texts(column).to_pandas() for name, column in columns}
                yield pd.DataFrame(cells, dtype=object).set_axis(
                    pd.RangeIndex(first, first + batch.num_rows)
                )
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        message = f"can't be read as Parquet after row {row:,}: {reason}"
        raise trace_error(log, None, message) from None
    if row == 0:
        raise trace_error(log, None, "holds no row")


def _texts(column: Any) -> Any:
    """Any column as text; lengths of time and lists as Python writes them."""
    import pyarrow as pa

    if pa.types.is_duration(column.type) or pa.types.is_nested(column.type):
        return pa.array([None if cell is None else str(cell) for cell in column.to_pylist()])
    return column.cast(pa.string())


FORMAT = LogFormat(
    looks_like=lambda head: (
        "the mark of Parquet at its beginning" if head.startswith("PAR1") else ""
    ),
    read=lambda log, spec: read_table(log, spec, parquet_pieces),
    order=5,
)
