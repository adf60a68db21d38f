"""Tables that are wider than the terminal: first words are folded, then columns go to a next table.

No digit is cut, and no row: each of the tables begins with the columns that name the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from rich.console import Console
from rich.table import Column, Table

FOLDED = (32, 24, 16, 12)  # characters at which words are folded, the first that suffices
LONGEST_WORD = 40  # that is not broken


def full_width(console: Console, table: Table) -> int:
    """How wide a table is where nothing is narrow."""
    wide = console.options.update(width=1000)
    return console.measure(table, options=wide).maximum


def narrowed(console: Console, table: Table) -> list[Table]:
    """The table, or what stands for it on a terminal that is too narrow: tables of its rows."""
    everything = range(len(table.columns))
    whole = ([_part(table, everything, width)] for width in FOLDED)
    shared = (
        [_part(table, places, width) for places in _shares(console, table, width)]
        for width in FOLDED[1:]
    )
    tried: list[Table] = []
    for tried in chain([[table]], whole, shared):
        if all(full_width(console, one) <= console.width for one in tried):
            break
    return tried


def _shares(console: Console, table: Table, width: int) -> Iterator[list[int]]:
    """The columns of each table, the naming ones first; as many as fit, but at least one more."""
    naming = list(range(_n_naming(table)))
    places = list(naming)
    for place in range(len(naming), len(table.columns)):
        wider = _part(table, [*places, place], width)
        if len(places) > len(naming) and full_width(console, wider) > console.width:
            yield places
            places = list(naming)
        places.append(place)
    yield places


def _n_naming(table: Table) -> int:
    """Columns that name a row: the first; two where the first is said once for several rows."""
    first = list(table.columns[0].cells)
    return 1 if all(first) else 2


def _part(table: Table, places: Sequence[int], width: int) -> Table:
    """Some columns of a table, those of words folded at a number of characters."""
    part = Table(
        box=table.box,
        show_edge=table.show_edge,
        pad_edge=table.pad_edge,
        padding=table.padding,
        header_style=table.header_style,
    )
    columns = [table.columns[place] for place in places]
    for column in columns:
        words = column.justify == "left"
        part.add_column(
            column.header,
            justify=column.justify,
            vertical=column.vertical,
            no_wrap=column.no_wrap and not words,
            overflow="fold" if words else column.overflow,
            max_width=max(width, _longest_word(column)) if words else None,
        )
    for row, *cells in zip(table.rows, *(column.cells for column in columns), strict=True):
        part.add_row(*cells, end_section=row.end_section)
    return part


def _longest_word(column: Column) -> int:
    words = (word for cell in (column.header, *column.cells) for word in str(cell).split())
    return min(LONGEST_WORD, max(map(len, words), default=0))
