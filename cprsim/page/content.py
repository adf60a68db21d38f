"""What a page shows, as records: question, answer, and sections of blocks. No HTML here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Words:
    """Paragraphs of plain text."""

    kind: ClassVar[str] = "words"
    paragraphs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of one column of a table; numbers stand on the right."""

    heading: str
    is_number: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names the row."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Facts:
    """Terms and what they are, such as versions."""

    kind: ClassVar[str] = "facts"
    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Listing:
    """A text file as it is, such as the scenario."""

    kind: ClassVar[str] = "listing"
    caption: str
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of a figure that can be pointed at: what it says, and the group it belongs to."""

    words: str
    group: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure in two widths.

    Parameters
    ----------
    caption : title of the figure
    alternative : what the figure shows, for who can't see it
    wide, narrow : the same figure for a screen and for a telephone; without a narrow one, the wide
        one can be scrolled
    marks : by the name of the mark in both figures; reached by pointer and by arrow keys
    groups : names of groups of marks, each with a button that makes it stand out
    """

    kind: ClassVar[str] = "picture"
    caption: str
    alternative: str
    wide: Figure
    narrow: Figure | None = None
    marks: Mapping[str, Mark] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scale:
    """A picture with a line at one of its values that the reader moves, and what is read off there.

    Parameters
    ----------
    picture : has the mark ``pointer`` at `start` and ``plot-area``, which is 0 to 100 wide
    label : what the reader chooses
    values, start : what can be chosen, ascending, and what is chosen first
    readings : by name, the text read off at each value
    """

    kind: ClassVar[str] = "scale"
    picture: Picture
    label: str
    values: Sequence[int]
    start: int
    readings: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Price:
    """Node-hours that the reader can put a price on.

    Parameters
    ----------
    node_h : mean, low and high by name [node-hours]; low and high None where there is no interval
    each : the price to begin with
    currency : its label
    """

    kind: ClassVar[str] = "price"
    node_h: Mapping[str, tuple[float, float | None, float | None]]
    each: float = 1.0
    currency: str = ""


Block = Words | Table | Facts | Listing | Picture | Scale | Price


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    heading: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Chapter:
    """All about one result: what the answer is, then the sections."""

    title: str
    question: str
    answer: Sequence[str]  # the first is the answer; the others are what has to be known with it
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class Page:
    """One chapter, or several with what compares them before."""

    title: str
    overview: Chapter | None  # of several results
    chapters: Sequence[Chapter]
