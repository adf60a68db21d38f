"""Parquet with a row per outage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.budget import memory_bytes
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.bounded import BYTES_PER_ROW, opened
from cprsim.failures.traces.reading import FIRST_ROW, row_budget_error, trace_error
from cprsim.failures.traces.tidy import TABLE_OPTIONS, read_table

ROWS_AT_ONCE = 100_000
MAGIC = b"PAR1"


def parquet_pieces(path: Path) -> Iterator[pd.DataFrame]:
    """The rows as tables of text; a row's index is its number (from 1) less `FIRST_ROW`.

    Raises
    ------
    TraceError
        for a file that is no Parquet, is damaged, or has no row.
    BudgetError
        for more rows than the memory budget allows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with opened(path) as file, path.open("rb") as raw:
        if file.read(len(MAGIC)) == MAGIC != raw.read(len(MAGIC)):
            raise trace_error(path, None, "is Parquet that was packed once more: unpack it first")
    row = 0
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows * BYTES_PER_ROW > memory_bytes():
                raise row_budget_error(path, file.metadata.num_rows)
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                yield _as_text(batch, row)
                row += batch.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        message = f"can't be read as Parquet after row {row:,}: {reason}"
        raise trace_error(path, None, message) from None
    if row == 0:
        raise trace_error(path, None, "holds no row")


def _as_text(batch: Any, rows_before: int) -> pd.DataFrame:
    import pyarrow as pa

    whole = pa.Table.from_batches([batch]).flatten()  # of a struct each field: meta.host
    columns = {}
    for name, column in zip(whole.schema.names, whole.columns, strict=True):
        cells = _texts(column).to_pandas().astype(object)
        columns[name] = cells.where(lambda cell: cell.notna(), None)
    first = rows_before + 1 - FIRST_ROW
    table = pd.DataFrame(columns)
    return table.set_axis(pd.RangeIndex(first, first + len(table)), axis="index")


def _texts(column: Any) -> Any:
    """Any column as text: instants to the microsecond, lengths in seconds, lists as Python's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type):
        zone = "Z" if column.type.tz else ""
        instants = column.cast(pa.timestamp("us", tz="UTC" if zone else None), safe=False)
        return pc.strftime(instants, format=f"%Y-%m-%dT%H:%M:%S{zone}")
    if pa.types.is_duration(column.type):
        seconds = column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64())
        return pc.binary_join_element_wise(pc.divide(seconds, 1e6).cast(pa.string()), "s", " ")
    if pa.types.is_nested(column.type):
        return pa.array([None if one is None else str(one) for one in column.to_pylist()])
    return column.cast(pa.string())


def _looks_like(head: Head) -> str:
    return "the mark of Parquet at its beginning" if head.begins.startswith(MAGIC) else ""


def _read(path: Path, asked: LogOptions) -> Outages:
    return read_table(path, asked, parquet_pieces)


FORMAT = LogFormat(
    name="parquet",
    what="Parquet with node, start, end, cause",
    commands=(),
    provenance="any table",
    options=TABLE_OPTIONS,
    looks_like=_looks_like,
    read=_read,
    order=5,
)
