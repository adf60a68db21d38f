"""Clicks: as a log holds them, and as the model eats them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cprsim.errors import ParameterError
from cprsim.job.model_shape import TableLayout
from cprsim.job.records import Ints

Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]

N_INTEGERS, N_CATEGORIES = 13, 26
MISSING_CATEGORY = -1
TEST_SHARE = Fraction(1, 7)  # the last of Criteo's seven days


@dataclass(frozen=True, slots=True, eq=False)
class RawClicks:
    """Lines of a click log in their order: numbers as written, missing values marked."""

    label: Float32  # (n,) 0 or 1
    integers: Float32  # (n, 13) NaN where missing
    categories: Ints  # (n, 26) 32-bit values, MISSING_CATEGORY where missing

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, some: slice) -> RawClicks:
        return RawClicks(self.label[some], self.integers[some], self.categories[some])


@dataclass(frozen=True, slots=True, eq=False)
class Clicks:
    """Samples ready for the model, in the order of training."""

    tables: TableLayout
    label: Float32  # (n,) 0 or 1
    integers: Float32  # (n, 13) transformed
    rows: Int32  # (n, n_tables) fused row ids

    def __post_init__(self) -> None:
        n = len(self.label)
        if len(self.integers) != n or self.rows.shape != (n, self.tables.n_tables):
            raise ParameterError(
                f"{n} labels beside integers {self.integers.shape} and rows {self.rows.shape}"
            )
        first = self.tables.first_row
        if n and not ((self.rows >= first[:-1]).all() and (self.rows < first[1:]).all()):
            raise ParameterError("a row id lies outside its table")
        if not np.isfinite(self.integers).all():
            raise ParameterError("an integer feature is not finite")

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, some: slice) -> Clicks:
        return Clicks(self.tables, self.label[some], self.integers[some], self.rows[some])


def n_train(n_samples: int) -> int:
    """How many samples come before the test share, which is the end of the log."""
    return int(n_samples * (1 - TEST_SHARE))


def split(clicks: Clicks) -> tuple[Clicks, Clicks]:
    """Training and test clicks, chronologically: the model never sees its future."""
    at = n_train(len(clicks))
    return clicks[:at], clicks[at:]
