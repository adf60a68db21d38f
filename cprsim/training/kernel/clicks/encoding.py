"""Encode raw clicks as inputs of the model: rows for categories, logarithms for integers.

An encoding is fitted to the training part of a log alone.
"""

from __future__ import annotations

import numpy as np

from cprsim.job.model_shape import TableLayout
from cprsim.job.records import Ints
from cprsim.training.kernel.clicks.records import Clicks, Float32, Int32, RawClicks

RARE = 0  # row of each table for values that were rare or never seen in training


# A row of a table for each value that training showed often enough, and RARE for all others. Rows
# are ordered by falling count, so that row 1 is the most frequent value; of equals the lower value
# comes first. A missing category is a value like any other.
Vocabulary = list[tuple[Ints, Int32]]  # per table: the values, sorted, and their rows


def vocabulary_of(
    categories: Ints, least_count: int = 3, most_rows: int | None = None
) -> Vocabulary:
    """Learn from category values (n, n_tables); a table has at most `most_rows` rows."""
    return [_frequent(column, least_count, most_rows) for column in categories.T]


def tables_of(vocabulary: Vocabulary) -> TableLayout:
    """The tables that a vocabulary needs."""
    return TableLayout(tuple(len(values) + 1 for values, _ in vocabulary))


def rows_of(vocabulary: Vocabulary, categories: Ints) -> Int32:
    """Fused row ids (n, n_tables) of category values."""
    first_row = tables_of(vocabulary).first_row
    rows = np.empty(categories.shape, np.int32)
    for t, (values, row_of) in enumerate(vocabulary):
        column = categories[:, t]
        at = np.minimum(np.searchsorted(values, column), max(len(values) - 1, 0))
        frequent = values[at] == column if len(values) else np.zeros(len(column), bool)
        rows[:, t] = first_row[t] + np.where(frequent, row_of[at] if len(values) else 0, RARE)
    return rows


def _frequent(column: Ints, least_count: int, most_rows: int | None) -> tuple[Ints, Int32]:
    """Values of one column that get a row of their own, sorted, and their rows from 1 on."""
    values, counts = np.unique(column, return_counts=True)
    by_count = np.lexsort((values, -counts))
    by_count = by_count[counts[by_count] >= least_count]
    if most_rows is not None:
        by_count = by_count[: most_rows - 1]
    by_value = np.argsort(values[by_count], kind="stable")
    return values[by_count][by_value], (by_value + 1).astype(np.int32)


def encode(
    train: RawClicks, test: RawClicks, least_count: int = 3, most_rows: int | None = None
) -> tuple[Clicks, Clicks]:
    """Training and test clicks, by the vocabulary and the scale that the first ones teach."""
    vocabulary = vocabulary_of(train.categories, least_count, most_rows)
    tables, scale = tables_of(vocabulary), scale_of(train.integers)

    def encoded(raw: RawClicks) -> Clicks:
        integers = standardised(raw.integers, *scale)
        return Clicks(tables, raw.label, integers, rows_of(vocabulary, raw.categories))

    return encoded(train), encoded(test)


def scale_of(integers: Float32) -> tuple[Float32, Float32]:
    """Mean and standard deviation (13,) of ln(1 + x); 1 where a column never varies."""
    log, present = _log(integers), ~np.isnan(integers)
    n = np.maximum(present.sum(0), 1)
    mean = np.where(present, log, 0).sum(0, dtype=np.float64) / n
    variance = np.where(present, (log - mean) ** 2, 0).sum(0, dtype=np.float64) / n
    scale = np.where(variance > 0, np.sqrt(variance), 1.0)
    return mean.astype(np.float32), scale.astype(np.float32)


def standardised(integers: Float32, mean: Float32, scale: Float32) -> Float32:
    """ln(1 + x) (n, 13) with negatives at 0, standardised; missing becomes 0."""
    scaled: Float32 = (_log(integers) - mean) / scale
    return np.nan_to_num(scaled, nan=0.0)


def _log(integers: Float32) -> Float32:
    return np.log1p(np.maximum(integers, np.float32(0)))
