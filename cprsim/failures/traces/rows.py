"""Rows of a long log gathered as arrays: texts as numbers of names, rows that are said twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.budget import how_to_raise, memory_bytes
from cprsim.errors import BudgetError
from cprsim.records import Bools, Ints

NAMES_OF_MEMORY = 1 / 4  # that the different texts of one column may take
BYTES_PER_NAME = 200  # of a text as an object, in a table and in its list, less its characters


class Names:
    """The different texts of one column, numbered as they come."""

    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key = path, key
        self._number: dict[str, int] = {}
        self._n_bytes = 0
        self._most_bytes = NAMES_OF_MEMORY * memory_bytes()

    def numbers(self, column: pd.Series[str]) -> Ints:
        """The number of each cell's text, (n_rows,). Raises BudgetError for too many texts."""
        place, found = pd.factorize(column)
        numbers = np.array([self._number_of(text) for text in found], dtype=np.int64)
        return np.asarray(numbers[place], dtype=np.int64)

    def _number_of(self, text: str) -> int:
        number = self._number.setdefault(text, len(self._number))
        if number == len(self._number) - 1:
            self._n_bytes += BYTES_PER_NAME + len(text)
            if self._n_bytes > self._most_bytes:
                message = f"more than {len(self._number):,} different texts: {how_to_raise()}"
                raise BudgetError(f"{self._path}: {self._key}: {message}")
        return number

    def in_order(self, numbers: Ints) -> tuple[Ints, tuple[str, ...]]:
        """The numbers (n_rows,) as places in the sorted texts of those rows, and these texts."""
        used = np.unique(numbers)
        texts = list(self._number)
        names = sorted(texts[number] for number in used.tolist())
        place = np.zeros(len(self._number), dtype=np.int64)
        place[[self._number[name] for name in names]] = np.arange(len(names))
        return place[numbers], tuple(names)


def digests(rows: pd.DataFrame) -> Ints:
    """A number per row that differs where any cell does, (n_rows,); (0,) without a column."""
    if rows.columns.empty:
        return np.zeros(0, dtype=np.int64)
    hashed = pd.util.hash_pandas_object(rows.fillna(""), index=False, categorize=True)
    return hashed.to_numpy(dtype=np.uint64).view(np.int64)


def said_before(columns: Sequence[np.ndarray]) -> Bools:
    """Which rows equal an earlier one in every column, (n_rows,).

    Parameters
    ----------
    columns : (n_rows,) each; a NaN equals a NaN
    """
    bits = [np.ascontiguousarray(column).view(np.uint64) for column in columns]
    mixed = np.zeros(len(bits[0]), dtype=np.uint64)
    for column in bits:
        mixed = (mixed ^ (mixed >> np.uint64(29)) ^ column) * np.uint64(0xBF58476D1CE4E5B9)
    before = np.zeros(len(mixed), dtype=bool)
    ordered = np.sort(mixed)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):  # as good as equal: look at the rows themselves
        alike = np.flatnonzero(np.isin(mixed, twice))
        alike = alike[np.lexsort([column[alike] for column in bits])]
        equal = np.ones(len(alike) - 1, dtype=bool)
        for column in bits:
            equal &= column[alike[1:]] == column[alike[:-1]]
        before[alike[1:][equal]] = True
    return before
