"""A document as text: for a terminal sentences wrapped and tables narrowed, whole in a pipe.

A table that is wider than the terminal has its words folded first, then columns go to a next table.
No digit is cut, and no row: each of the tables begins with the columns that name the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

from cprsim.errors import printable
from cprsim.pages.document import Block, Document, Facts, ListingBlock, Table, Words

LONGEST_UNBROKEN = 32  # characters of a word that is not broken
WIDEST = 100_000  # where there is no terminal
MOST_REMARKS = 3
GAP = "  "  # columns


def text_of(document: Document, *, verbose: bool = False, width: int | None = None) -> str:
    """Answer, table and first remarks, or all but the figures; width is that of a terminal."""
    if verbose:
        headed = [
            (Words([section.heading.upper()]), *section.blocks) for section in document.sections
        ]
        blocks = [*document.main, *(block for part in headed for block in part)]
    else:
        table = [] if document.table is None else [document.table]
        remarks = [*document.remarks[:MOST_REMARKS], *filter(None, [document.turns_on])]
        blocks = [*table, Words(remarks)]
    texts = ("\n".join(_lines(block, width)) for block in (Words(document.answer), *blocks))
    return "\n\n".join(filter(None, texts))


def _lines(block: Block, width: int | None) -> Iterator[str]:
    match block:
        case Words(paragraphs):
            for paragraph in paragraphs:
                yield from _folded(printable(paragraph), width)
        case Table():
            if block.caption:
                yield from [*_folded(printable(block.caption), width), ""]
            yield from _table(block, width)
        case Facts(entries):
            for term, meaning in entries:
                yield from _folded(printable(f"{term}  {meaning}"), width)
        case ListingBlock(_, text):
            yield printable(text.rstrip("\n"))


def _folded(text: str, width: int | None) -> list[str]:
    return [text] if width is None else wrap(text, width, break_on_hyphens=False) or [""]


def _table(table: Table, width: int | None) -> Iterator[str]:
    """The table, or several narrower ones if it is too wide."""
    n_naming = 2 if table.grouped else 1
    rows = [[printable(str(cell)) for cell in row] for row in table.rows]
    least, widest = [], []  # widths
    for column, *cells in zip(table.columns, *rows, strict=True):
        heading = [column.heading] if width is None else column.heading.split()
        words = [word for text in (column.heading, *cells) for word in text.split()]
        widest.append(max(map(len, [column.heading, *cells])))
        if column.is_number:
            least.append(max(map(len, [*heading, *cells]), default=0))
        else:
            least.append(min(max(map(len, words), default=0), LONGEST_UNBROKEN))
    parts, gap = [[*range(n_naming)]], len(GAP)
    for place in range(n_naming, len(table.columns)):
        narrowest = sum(least[at] + gap for at in [*parts[-1], place]) - gap
        if width is not None and narrowest > width and len(parts[-1]) > n_naming:
            parts.append([*range(n_naming)])
        parts[-1].append(place)
    for number, places in enumerate(parts):
        if number:
            yield ""
        room = max(0, (width or WIDEST) - sum(least[at] + gap for at in places) + gap)
        widths = {}
        # words have it before headings of numbers, the narrowest first
        for at in sorted(places, key=lambda at: (table.columns[at].is_number, widest[at])):
            widths[at] = min(widest[at], least[at] + room)
            room -= widths[at] - least[at]
        widths = {at: widths[at] for at in places}
        yield from _row([column.heading for column in table.columns], table, widths)
        yield "─" * (sum(widths.values()) + gap * (len(places) - 1))
        previous = None
        for row in rows:
            again = table.grouped and row[0] == previous
            if table.grouped and previous is not None and not again:
                yield ""
            previous = row[0]
            yield from _row(["", *row[1:]] if again else row, table, widths)


def _row(cells: Sequence[str], table: Table, widths: dict[int, int]) -> Iterator[str]:
    """The lines of a row."""
    folded = [wrap(cells[at], width, break_on_hyphens=False) for at, width in widths.items()]
    for line in zip_longest(*folded, fillvalue=""):
        padded = (
            text.rjust(width) if table.columns[at].is_number else text.ljust(width)
            for text, (at, width) in zip(line, widths.items(), strict=True)
        )
        yield GAP.join(padded).rstrip()
