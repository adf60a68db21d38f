"""The document of a result as records: question, answer, and sections of blocks.

A kind of result builds its blocks once, independently of their rendering by `terminal`, `html` and
`markdown`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from matplotlib.figure import Figure

MOST_ROWS = 200  # of a table on a page


@dataclass(frozen=True, slots=True)
class Words:
    """Paragraphs of plain text; on a terminal each begins a line."""

    kind: ClassVar[str] = "words"
    paragraphs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names the row; numbers, right-aligned, are in most others."""

    kind: ClassVar[str] = "table"
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]  # a cell for each heading
    words: Collection[str] = ()  # headings of the other columns of words
    grouped: bool = False  # the first column names a group of rows, the second the row

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers."""
        return [at > 0 and heading not in self.words for at, heading in enumerate(self.headings)]


@dataclass(frozen=True, slots=True)
class ListingBlock:
    """A text file as it is, such as the scenario; a terminal shows no caption."""

    kind: ClassVar[str] = "listing"
    caption: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, drawn when a renderer needs it; a terminal shows none."""

    kind: ClassVar[str] = "picture"
    caption: str
    alternative: str  # description of the figure for readers who can't see it
    draw: Callable[..., Figure]
    name: str = ""  # of its file
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)  # keywords of `draw`


Block = Words | Table | ListingBlock | Picture


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its blocks; words without a paragraph, tables without a column are left out."""

    heading: str
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        filled = [
            block
            for block in self.blocks
            if not (isinstance(block, Words) and not block.paragraphs)
            and not (isinstance(block, Table) and not block.headings)
        ]
        object.__setattr__(self, "blocks", filled)


@dataclass(frozen=True, slots=True)
class Document:
    """All about one result: answer, main table, remarks, then sections; empty ones are left out.

    A terminal shows the answer, the table and the first remarks; a page shows all.
    """

    title: str
    question: str
    answer: Sequence[str]  # a sentence or two
    sections: Sequence[Section] = ()
    table: Table | ListingBlock | None = None
    remarks: Sequence[str] = ()  # the most important first
    turns_on: str = ""  # the last remark, shown by all: the input that moves the answer most
    parts: Sequence[Document] = ()  # of the results that it compares

    def __post_init__(self) -> None:
        filled = [section for section in self.sections if section.blocks]
        object.__setattr__(self, "sections", filled)

    @property
    def main(self) -> list[Block]:
        table: list[Block] = [] if self.table is None else [self.table]
        remarks = [*self.remarks, *filter(None, [self.turns_on])]
        return [*table, *([Words(remarks)] if remarks else [])]

    @property
    def blocks(self) -> list[Block]:
        return [*self.main, *(block for section in self.sections for block in section.blocks)]

    @property
    def pictures(self) -> list[Picture]:
        return [block for block in self.blocks if isinstance(block, Picture)]

    @property
    def drawings(self) -> dict[str, Callable[[], Figure]]:
        """Functions that draw the figures, by the names of their files."""
        return {picture.name: picture.draw for picture in self.pictures}
