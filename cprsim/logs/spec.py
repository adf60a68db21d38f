"""Options of a user for a log. Imports little, as the help reads it."""

# ruff: noqa: RUF009 - `_option` makes the fields of a dataclass
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cprsim.errors import ParameterError, one_line
from cprsim.files.units import TIME

DATES = "dates"  # of `LogSpec.nodes`: the log has the dates of its nodes
LOG_COLUMNS = ("node", "start", "end", "cause")
NODE_COLUMNS = ("installed", "entry", "exit")
UNKNOWN_WORDS = {  # words for what is not known, or not there
    "", "-", "--", "?", "null", "none", "nan", "nat", "n/a", "na", "unknown", "tbd", "(null)",
    "<none>", "<null>", "<na>", "<unknown>", "none assigned", "undefined", "unspecified", "[]",
    "{}", "nil", "\\n", "unbekannt",
}  # fmt: skip
TIME_UNITS = ("ns", "us", "ms", "s", "min", "h", "d")
COLUMNS_FOR_END = ("duration", "state")  # columns that stand for the end


def _option(
    words: str, metavar: str = "", option: str = "", *, many: bool = False, complete: str = ""
) -> Any:
    """Return a field with the help of its option, and its name on the command line."""
    shell = {"metavar": metavar, "option": option, "many": many, "complete": complete}
    return field(default=None, metadata={"help": words, "shell": shell})


@dataclass(frozen=True, slots=True)
class LogSpec:
    """A log of failures as a user describes it, and what of it counts.

    Its fields are the options of ``cprsim fit``, keywords of `cprsim.fit`, and the keys of a
    scenario's section ``failures: {kind: trace}``.
    """

    format: str | None = _option(
        "Format of the log; default: guessed, and shown.", "NAME", complete="format"
    )
    nodes: int | str | Path | None = _option(
        "Nodes observed, with those that never failed: their number; a table with node and any "
        "of installed, entry, exit; dates: the log has these columns, or its own dates.",
        "N|FILE|dates",
    )
    period: str | None = _option(
        "The observation, its end excluded, as the log writes times, e.g. "
        "2024-01-01..2025-01-01; one of both may be left out.",
        "FROM..TO",
    )
    columns: Mapping[str, str] | Sequence[str] | None = _option(
        "The name of a column in a table, or in the table of nodes, e.g. start=begin; may be "
        "repeated.",
        "OURS=THEIRS",
        "--column",
        many=True,
    )
    ignore: Sequence[str] | None = _option(
        "A column of a table that does not matter, or with =WORDS its rows with these words (a,b); "
        "may be repeated.",
        "COLUMN[=WORDS]",
        many=True,
    )
    down: str | None = _option(
        "The words of the column of states, or the values of the metric, that say that a node is "
        "down (a,b); all others then say that it is up.",
        "WORDS",
    )
    time_unit: Literal["ns", "us", "ms", "s", "min", "h", "d"] | None = _option(
        "Of a table: unit of times that are numbers."
    )
    date_format: str | None = _option(
        "Of a table: form of its dates, e.g. '%d/%m/%Y %H:%M'; default: ISO 8601."
    )
    tz: str | None = _option(
        "Zone of time stamps that name none, e.g. Europe/Berlin; default: UTC.", "ZONE"
    )
    system: int | None = _option("Of records of several systems: which one.")
    repair: str | None = _option(
        "Length of outages whose end is missing in the log, e.g. '2 h'.", "TIME"
    )
    coalesce: str | None = _option(
        "Merge failures of one node that are less than this apart, e.g. '10 min'; default: "
        "'1 min' where the log has no ends, else '0 s' (no merging).",
        "TIME",
    )
    together: str | None = _option(
        "Failures of nodes less than this after the one before are one event; default: none.",
        "TIME",
    )
    cause: str | None = _option(
        "Only causes that contain this text; the others' outages censor the up-times."
    )
    not_cause: str | None = _option(
        "No causes that contain this text, e.g. maintenance; their outages censor the up-times."
    )
    node: str | None = _option("This node alone.")

    def __post_init__(self) -> None:
        """Raise ParameterError for times, a period or columns that are none, or an unknown zone."""
        _ = (
            [self.hours(option) for option in ("repair", "coalesce", "together")],
            self.ends,
            self.names,
        )
        try:
            ZoneInfo(self.tz or "UTC")
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"there is no time zone '{one_line(str(self.tz))}'; one is Europe/Berlin"
            raise ParameterError(f"{message}, or UTC", option="--tz") from None

    @property
    def names(self) -> dict[str, str]:
        """The log's names of columns by ours."""
        columns = self.columns or {}
        if not isinstance(columns, Mapping):
            if wrong := [pair for pair in columns if "=" not in pair]:
                message = f"{wrong[0]!r} is no pair such as start=begin"
                raise ParameterError(message, option="--column")
            columns = dict(pair.split("=", 1) for pair in columns)
        return dict(columns)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Columns that do not matter, with =WORDS rows of them."""
        return (self.ignore,) if isinstance(self.ignore, str) else tuple(self.ignore or ())

    @property
    def down_words(self) -> tuple[str, ...]:
        """The words that say that a node is down."""
        return tuple(word.strip() for word in (self.down or "").split(",") if word.strip())

    @property
    def ends(self) -> tuple[str | None, str | None]:
        """Begin and end of the observation, as the log writes times."""
        first, sign, last = (self.period or "..").partition("..")
        if not sign:
            right = "is no FROM..TO such as 2024-01-01..2025-01-01"
            raise ParameterError(f"{self.period!r} {right}", option="--period")
        return first.strip() or None, last.strip() or None

    @property
    def n_nodes(self) -> int | None:
        """How many nodes, where that is said."""
        text = str(self.nodes)
        return int(text[:20]) if text.removeprefix("-").isdigit() else None

    @property
    def has_dates(self) -> bool:
        """Whether the log itself has the dates of its nodes."""
        return str(self.nodes) == DATES

    @property
    def nodes_file(self) -> Path | None:
        """The table of nodes, where there is one."""
        if self.nodes is None or self.n_nodes is not None or self.has_dates:
            return None
        path = Path(str(self.nodes))
        if not path.is_file():
            neither = f"is neither a whole number nor a file, nor {DATES!r}"
            raise ParameterError(f"{one_line(str(path))!r} {neither}", option="--nodes")
        return path

    def hours(self, option: str) -> float | None:
        """The time that an option says [h]."""
        text = getattr(self, option)
        if text is None:
            return None
        try:
            hours = TIME.parse(text)
            if not 0 <= hours < inf:
                raise ParameterError("is no time from 0 on")
        except ParameterError as error:
            raise ParameterError(f"{text!r} {error}", option=f"--{option}") from None
        return hours

    @property
    def options_given(self) -> dict[str, object]:
        """Return the given values, by the names of their options."""
        values = {option: getattr(self, option.name) for option in fields(self)}
        return {
            option.metadata["shell"]["option"] or f"--{option.name.replace('_', '-')}": value
            for option, value in values.items()
            if value
        }


A_LOG = "a log of failures of yours"
FORMAT_OPTIONS = {
    "--system", "--period", "--column", "--time-unit", "--date-format", "--tz", "--repair",
    "--ignore", "--down",
}  # fmt: skip
TABLE_OPTIONS = frozenset(FORMAT_OPTIONS - {"--system"})
