"""A document on a terminal: sentences wrapped, tables narrowed to its width; whole in a pipe.

A table that is wider than the terminal has its words folded first, then columns go to a next table.
No digit is cut, and no row: each of the tables begins with the columns that name the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cprsim.present.document import Block, Document, Facts, ListingBlock, Table, Words

FOLDED = (1000, 32, 24, 16, 12)  # characters at which words are folded, the first that suffices
MOST_REMARKS = 3


def show_document(console: Console, document: Document, *, whole: bool) -> None:
    """Answer, table and first remarks; or all of a document but its figures."""
    if whole:
        sections = [
            block
            for one in document.sections
            for block in (Words([one.heading.upper()]), *one.blocks)
        ]
        show(console, [Words(document.answer), *document.main, *sections])
        return
    table = [] if document.table is None else [document.table]
    show(console, [Words(document.answer), *table, Words(document.remarks[:MOST_REMARKS])])


def show(console: Console, blocks: Sequence[Block]) -> None:
    """Print blocks with a blank line between them; pictures are left out."""
    shown = [text for block in blocks if (text := list(_printed(console, block)))]
    for number, lines in enumerate(shown):
        if number:
            console.print()
        for line in lines:
            wrapped = isinstance(line, str) and console.is_terminal
            console.print(line, markup=False, highlight=False, soft_wrap=not wrapped)


def _printed(console: Console, block: Block) -> Iterator[str | Text | RichTable]:
    """What is printed of a block: paragraphs, which are wrapped, lines as they are, tables."""
    match block:
        case Words(paragraphs):
            yield from paragraphs
        case Table():
            if block.caption:
                yield block.caption
                yield ""
            for number, part in enumerate(_parts(console, block)):
                if number:
                    yield ""
                yield part
        case Facts(entries):
            yield from (f"{term}  {what}" for term, what in entries)
        case ListingBlock(_, text):
            yield from map(Text, text.rstrip("\n").split("\n"))


def _parts(console: Console, table: Table) -> list[RichTable]:
    """The table, or what stands for it on a terminal that is too narrow: tables of its rows."""
    everything = list(range(len(table.columns)))
    width = console.width if console.is_terminal else 1_000_000
    for folded in FOLDED:
        whole = _rich(console, table, everything, folded)
        if (whole.width or 0) <= width:
            return [whole]
    naming = everything[: 2 if table.grouped else 1]
    parts: list[RichTable] = []
    places = naming
    for place in everything[len(naming) :]:
        wider = _rich(console, table, [*places, place], FOLDED[-1])
        if places != naming and (wider.width or 0) > width:
            parts.append(_rich(console, table, places, FOLDED[-1]))
            places = naming
        places = [*places, place]
    return [*parts, _rich(console, table, places, FOLDED[-1])]


def _rich(console: Console, table: Table, places: Sequence[int], folded: int) -> RichTable:
    """Some columns of a table, words folded at a number of characters; it knows its own width."""
    rich = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
        header_style="bold",
    )  # fmt: skip
    shown = [[_folded(str(row[at]), table, at, folded) for at in places] for row in table.rows]
    for number, at in enumerate(places):
        column = table.columns[at]
        lines = [line for cells in shown for line in cells[number].split("\n")]
        width = max(map(len, [*lines, *column.heading.split(), ""]))
        rich.add_column(
            fill(column.heading, max(width, 1)), vertical="top", no_wrap=True,
            justify="right" if column.is_number else "left",
        )  # fmt: skip
    previous = None
    for row, cells in zip(table.rows, shown, strict=True):
        first = str(row[0])
        if table.grouped and first == previous:
            cells[0] = ""
        elif table.grouped and previous is not None:
            rich.add_section()
        previous = first
        rich.add_row(*cells)
    rich.width = console.measure(rich, options=console.options.update(width=1_000_000)).maximum
    return rich


def _folded(text: str, table: Table, at: int, width: int) -> str:
    """Words on several lines; numbers stay whole."""
    if table.columns[at].is_number or len(text) <= width:
        return text
    return fill(text, width, break_on_hyphens=False, break_long_words=len(text) > 40)
