"""Blocks on a terminal: sentences are wrapped, tables are narrowed to its width; whole in a pipe.

A table that is wider than the terminal has its words folded first, then columns go to a next table.
No digit is cut, and no row: each of the tables begins with the columns that name the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from rich import box
from rich.console import Console
from rich.table import Column as RichColumn
from rich.table import Table as RichTable

from cprsim.present.document import Block, Cell, Document, Facts, ListingBlock, Table, Words

FOLDED = (32, 24, 16, 12)  # characters at which words are folded, the first that suffices
LONGEST_WORD = 40  # that is not broken


MOST_REMARKS = 3


def show_document(console: Console, document: Document, *, whole: bool) -> None:
    """Answer, table and first remarks; or all of a document but its figures."""
    if whole:
        sections = [
            block
            for one in document.sections
            for block in (Words([one.heading.upper()]), *one.blocks)
        ]
        show(console, [Words(document.answer), *document.main, *sections], captions=True)
        return
    table = [] if document.table is None else [document.table]
    blocks: list[Block] = [Words(document.answer), *table, Words(document.remarks[:MOST_REMARKS])]
    show(console, blocks, captions=True)


def show(console: Console, blocks: Sequence[Block], *, captions: bool = False) -> None:
    """Print blocks with a blank line between them.

    Pictures, scales and prices are left out, and words that say nothing.
    """
    first = True
    for block in blocks:
        if not _has_text(block):
            continue
        if not first:
            console.print()
        first = False
        _show(console, block, captions=captions)


def _has_text(block: Block) -> bool:
    return isinstance(block, Table | Facts | ListingBlock) or (
        isinstance(block, Words) and bool(block.paragraphs)
    )


def _show(console: Console, block: Block, *, captions: bool) -> None:
    match block:
        case Words(paragraphs):
            for paragraph in paragraphs:
                say(console, paragraph)
        case Table():
            show_table(console, block, captions=captions)
        case Facts(entries):
            for term, what in entries:
                say(console, f"{term}  {what}")
        case ListingBlock(_, text):
            console.print(text.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)


def say(console: Console, text: str) -> None:
    """A paragraph: wrapped at words on a terminal, one line in a pipe."""
    console.print(text, markup=False, highlight=False, soft_wrap=not console.is_terminal)


# ------------------------------------------------------------------------------ tables


def show_table(console: Console, table: Table, *, captions: bool = False) -> None:
    """Print a table, as several where the terminal is too narrow."""
    if captions and table.caption:
        say(console, f"{table.caption}\n")
    for heading, columns in _divided(console, table):
        if heading:
            console.print(f"\n{heading}:\n", markup=False, highlight=False)
        print_whole(console, _rich(table, columns))


def _divided(console: Console, table: Table) -> list[tuple[str, list[int]]]:
    """Columns of the tables to print: one, or two where some go apart as it is too wide."""
    columns = [place for place, column in enumerate(table.columns) if not column.in_full]
    apart = [place for place in columns if table.columns[place].apart]
    if not apart or len(_narrowed_whole(console, _rich(table, columns))) == 1:
        return [("", columns)]
    main = [
        place for place in columns if place not in apart and not table.columns[place].dispensable
    ]
    return [("", main), (table.apart, [columns[0], *apart])]


def _narrowed_whole(console: Console, table: RichTable) -> list[RichTable]:
    return narrowed(console, table) if console.is_terminal else [table]


def _rich(table: Table, places: Sequence[int]) -> RichTable:
    """Some columns of a table in rich's words."""
    rich = plain_table()
    for place in places:
        column = table.columns[place]
        rich.add_column(
            column.brief or column.heading,
            justify="right" if column.is_number else "left",
            no_wrap=True,
            vertical="top",
        )
    previous = None
    first_total = len(table.rows) - table.n_totals if table.n_totals else None
    for number, row in enumerate(table.rows):
        cells = [_brief(row[place]) for place in places]
        if number == first_total:
            rich.add_section()
        if table.grouped and cells[0] == previous:
            cells[0] = ""
        elif table.grouped and previous is not None:
            rich.add_section()
        previous = _brief(row[places[0]])
        rich.add_row(*cells)
    return rich


def _brief(cell: str | Cell) -> str:
    return cell.brief if isinstance(cell, Cell) else cell


def plain_table() -> RichTable:
    """An empty table in the look of all tables: no lines but the one below the heading."""
    return RichTable(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )


def print_whole(console: Console, table: RichTable) -> None:
    """Print a table: at its own width in a pipe, narrowed where a terminal is too narrow."""
    for i, part in enumerate(_narrowed_whole(console, table)):
        if i:
            console.print()
        part.width = full_width(console, part)
        console.print(part, soft_wrap=True)


def full_width(console: Console, table: RichTable) -> int:
    """How wide a table is where nothing is narrow."""
    wide = console.options.update(width=1000)
    return console.measure(table, options=wide).maximum


def narrowed(console: Console, table: RichTable) -> list[RichTable]:
    """The table, or what stands for it on a terminal that is too narrow: tables of its rows."""
    everything = range(len(table.columns))
    whole = ([_part(table, everything, width)] for width in FOLDED)
    shared = (
        [_part(table, places, width) for places in _shares(console, table, width)]
        for width in FOLDED[1:]
    )
    tried: list[RichTable] = []
    for tried in chain([[table]], whole, shared):
        if all(full_width(console, one) <= console.width for one in tried):
            break
    return tried


def _shares(console: Console, table: RichTable, width: int) -> Iterator[list[int]]:
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


def _n_naming(table: RichTable) -> int:
    """Columns that name a row: the first; two where the first is said once for several rows."""
    first = list(table.columns[0].cells)
    return 1 if all(first) else 2


def _part(table: RichTable, places: Sequence[int], width: int) -> RichTable:
    """Some columns of a table, those of words folded at a number of characters."""
    part = RichTable(
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


def _longest_word(column: RichColumn) -> int:
    words = (word for cell in (column.header, *column.cells) for word in str(cell).split())
    return min(LONGEST_WORD, max(map(len, words), default=0))
