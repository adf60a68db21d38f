"""A document as text: for a terminal sentences wrapped and tables narrowed, whole in a pipe.

A table that is wider than the terminal has its words folded first, then columns go to a next table.
No digit is cut, no row, and no unit from its number: each of the tables begins with the columns
that name the rows. Styles are put around finished lines: the text is the same without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap

from cprsim.errors import printable
from cprsim.pages.document import Block, Document, ListingBlock, Picture, Table, Words

LONGEST_UNBROKEN = 30  # characters of a word that is not broken
WIDEST = 100_000  # where there is no terminal
MOST_REMARKS = 3
GAP = "  "  # columns
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Look:
    """How a terminal shows a text: its width, None in a pipe; the style of lines; what to mark."""

    width: int | None = None
    style: Callable[..., str] = lambda line, **_: line
    best: str | None = None  # the name of the row that is recommended
    warnings: Collection[str] = ()  # paragraphs


IN_A_PIPE = Look()


def text_of(document: Document, *, verbose: bool = False, look: Look = IN_A_PIPE) -> str:
    """Answer, table and first remarks, or all but the figures."""
    if verbose:
        headed = [
            (Words([section.heading.upper()]), *section.blocks)
            for section in document.sections
            if not all(isinstance(block, Picture) for block in section.blocks)
        ]
        blocks = [*document.main, *(block for part in headed for block in part)]
    else:
        table = [] if document.table is None else [document.table]
        remarks = [*document.remarks[:MOST_REMARKS], *filter(None, [document.turns_on])]
        blocks = [*table, Words(remarks)]
    answer, n_bold = [], len(re.split(r"(?<=\.) ", printable("".join(document.answer[:1])))[0])
    for line in _lines(Words(document.answer), look):
        answer.append(look.style(line[:n_bold], bold=True) + line[n_bold:])
        n_bold = max(0, n_bold - len(line) - 1)
    texts = ("\n".join(lines) for lines in (answer, *(_lines(block, look) for block in blocks)))
    return "\n\n".join(filter(None, texts))


def _lines(block: Block, look: Look) -> Iterator[str]:
    match block:
        case Words(paragraphs):
            for paragraph in paragraphs:
                colour = "yellow" if paragraph in look.warnings else None
                for line in _folded(printable(paragraph), look.width):
                    yield look.style(line, fg=colour)
        case Table():
            if block.caption:
                yield from [*_folded(printable(block.caption), look.width), ""]
            yield from _table(block, look)
        case ListingBlock(_, text):
            yield printable(text.rstrip("\n"))


def _folded(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    lines = wrap(_with_units(text), width, break_on_hyphens=False) or [""]
    return [line.replace(NO_BREAK, " ") for line in lines]


def _with_units(text: str) -> str:
    """The text, in which no line ends between a number and its unit."""
    return re.sub(r"(?<=\d) (?=[%±A-Za-z])|(?<=±) ", NO_BREAK, text)


def _table(table: Table, look: Look) -> Iterator[str]:
    """The table, or several narrower ones if it is too wide."""
    n_naming, width = 2 if table.grouped else 1, look.width
    heads = [printable(heading) for heading in table.headings]
    rows = [[printable(str(cell)) for cell in row] for row in table.rows]
    least, widest = [], []  # widths
    for is_number, head, *cells in zip(table.numeric, heads, *rows, strict=True):
        heading = [head] if width is None else head.split()
        words = [word for text in (head, *cells) for word in _with_units(text).split(" ")]
        widest.append(max(map(len, [head, *cells])))
        if is_number:
            least.append(max(map(len, [*heading, *cells]), default=0))
        else:
            least.append(min(max(map(len, words), default=0), LONGEST_UNBROKEN))
    parts, gap = [[*range(n_naming)]], len(GAP)
    for place in range(n_naming, len(heads)):
        narrowest = sum(least[at] + gap for at in [*parts[-1], place]) - gap
        if width is not None and narrowest > width and len(parts[-1]) > n_naming:
            parts.append([*range(n_naming)])
        parts[-1].append(place)
    for number, places in enumerate(parts):
        if number:
            yield ""
        room = max((width or WIDEST) + gap, sum(least[at] + gap for at in places))
        for n_lines in range(1, max(widest) + 1):  # of a cell, the fewest for which there is room
            widths = {at: max(least[at], -(-widest[at] // n_lines)) for at in places}
            room_left = room - sum(widths[at] + gap for at in places)
            if room_left >= 0:
                break
        # words have what is left before headings of numbers
        for at in sorted(places, key=table.numeric.__getitem__):
            more = min(widest[at] - widths[at], max(room_left, 0))
            widths[at], room_left = widths[at] + more, room_left - more
        yield from _row(heads, table, widths)
        yield "─" * (sum(widths.values()) + gap * (len(places) - 1))
        previous = None
        for row in rows:
            again = table.grouped and row[0] == previous
            if table.grouped and previous is not None and not again:
                yield ""
            previous = row[0]
            is_best = any(f"{cell} (".startswith(f"{look.best} (") for cell in row[:n_naming])
            colour = "green" if is_best else None
            for line in _row(["", *row[1:]] if again else row, table, widths):
                yield look.style(line, fg=colour, bold=colour is not None)


def _row(cells: Sequence[str], table: Table, widths: dict[int, int]) -> Iterator[str]:
    """The lines of a row."""
    folded = [_folded(cells[at], width) for at, width in widths.items()]
    for line in zip_longest(*folded, fillvalue=""):
        padded = (
            text.rjust(width) if table.numeric[at] else text.ljust(width)
            for text, (at, width) in zip(line, widths.items(), strict=True)
        )
        yield GAP.join(padded).rstrip()
