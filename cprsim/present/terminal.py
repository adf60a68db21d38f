"""A document on a terminal: sentences wrapped, tables narrowed to its width; whole in a pipe.

A table that is wider than the terminal has its words folded first, then columns go to a next table.
No digit is cut, and no row: each of the tables begins with the columns that name the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Literal, overload

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cprsim.errors import printable
from cprsim.present.document import Block, Document, Facts, ListingBlock, Table, Words

LONGEST = 32  # characters of a word that is not broken
WIDEST = 100_000  # characters
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
    naming = everything[: 2 if table.grouped else 1]
    parts: list[RichTable] = []
    places = naming
    for place in everything[len(naming) :]:
        if places != naming and _rich(console, table, [*places, place]) is None:
            parts.append(_rich(console, table, places, fits=True))
            places = naming
        places = [*places, place]
    return [*parts, _rich(console, table, places, fits=True)]


@overload
def _rich(console: Console, table: Table, places: Sequence[int]) -> RichTable | None: ...
@overload
def _rich(
    console: Console, table: Table, places: Sequence[int], *, fits: Literal[True]
) -> RichTable: ...
def _rich(
    console: Console, table: Table, places: Sequence[int], *, fits: bool = False
) -> RichTable | None:
    """Some columns of a table, words folded where it is too wide; None where it is still."""
    rich = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
        header_style="bold",
    )  # fmt: skip
    least, wanted, folds = 0, [], console.is_terminal
    for at in places:
        column = table.columns[at]
        cells = [printable(str(row[at])) for row in table.rows]
        words = [word for text in (column.heading, *cells) for word in text.split()]
        widest = max(map(len, [*words, *cells] if column.is_number else words), default=1)
        wanted.append(max(map(len, cells), default=0))
        least += (widest if column.is_number else min(widest, LONGEST)) + 2  # between columns
        rich.add_column(
            fill(column.heading, widest) if folds and column.is_number else column.heading,
            vertical="top",
            justify="right" if column.is_number else "left", no_wrap=column.is_number,
            overflow="fold", min_width=min(widest, LONGEST),
        )  # fmt: skip
    if console.is_terminal and least - 2 > console.width and not fits:
        return None
    previous = None
    for row in table.rows:
        first, cells = str(row[0]), [str(row[at]) for at in places]
        if table.grouped and first == previous:
            cells[0] = ""
        elif table.grouped and previous is not None:
            rich.add_section()
        previous = first
        rich.add_row(*cells)
    whole = console.measure(rich, options=console.options.update(width=WIDEST)).maximum
    if not console.is_terminal or whole <= console.width:
        rich.width = whole
        return rich
    room = max(0, console.width - least + 2)  # rich would break words; the shortest have it first
    for width, of in sorted(zip(wanted, rich.columns, strict=True), key=lambda one: one[0]):
        assert of.min_width is not None
        more = min(room, max(0, width - of.min_width))
        of.width, room = of.min_width + more, room - more
    return rich
