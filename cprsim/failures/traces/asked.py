"""What a user says of a log, and what a format can say of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.failures.outages import Outages

if TYPE_CHECKING:
    import pandas as pd

Instant = str | float
Period = tuple[Instant | None, Instant | None]  # from (included), to (excluded); None: all there is


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of a reader; each format takes some of them."""

    n_nodes: int | None = None
    system: int | None = None
    period: Period = (None, None)
    columns: Mapping[str, str] = field(default_factory=dict)
    time_unit: str | None = None
    date_format: str | None = None  # as strptime writes it
    tz: str | None = None  # IANA name of the zone of time stamps that name none
    repair_h: float | None = None

    def given(self) -> set[str]:
        """Names of the options that are set, as the command line calls them."""
        options = {
            "--system": self.system is not None,
            "--period": self.period != (None, None),
            "--column": bool(self.columns),
            "--time-unit": self.time_unit is not None,
            "--date-format": self.date_format is not None,
            "--tz": self.tz is not None,
            "--repair": self.repair_h is not None,
        }
        return {name for name, is_set in options.items() if is_set}


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a log, for a guess at its format."""

    text: str  # of its first bytes, without blanks before it; what is no UTF-8 replaced
    begins: bytes  # its first bytes

    @property
    def first_line(self) -> str:
        """The first line that is not empty."""
        return self.text.partition("\n")[0]

    def names(self, *columns: str, separator: str = "|") -> bool:
        """Whether the first line is a header with these columns, in whatever case."""
        cells = {cell.strip().lower() for cell in self.first_line.split(separator)}
        return cells >= {column.lower() for column in columns}


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One way to write a log of failures."""

    name: str  # what ``--format`` calls it
    options: frozenset[str]  # of `Asked.given` that it takes
    looks_like: Callable[[Head], str]  # by what it is recognised; empty where it is not
    read: Callable[[Path, LogOptions], Outages]
    order: int = 50  # smaller ones are tried first; special formats before general ones
    pieces: Callable[[Path], Iterator[pd.DataFrame]] | None = None  # of a table: its cells as text
