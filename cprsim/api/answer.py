"""What answers have in common: a document, and how notebooks and terminals show it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.console import Console

from cprsim.api import public
from cprsim.errors import ParameterError, one_line, printable
from cprsim.present.document import Block, Document, Picture, Words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

WIDTH = 116  # characters of an answer as text
Draw = Callable[[], "Figure"]


class Shown(ABC):
    """Something with a document: ``print`` shows it as text, a notebook as HTML."""

    n_sections: ClassVar[int] = 1  # of the document, which are shown where there is little room

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is about, such as the scenario's name."""

    @cached_property
    def document(self) -> Document:
        """All that there is to say: question, answer, and sections of tables and figures."""
        return self._document()

    @abstractmethod
    def _document(self) -> Document: ...

    @public
    def report(self, file: str | Path, *, title: str | None = None) -> Path:
        """Write all of it as one page; a file of that name is replaced.

        Parameters
        ----------
        file : Markdown where its name ends in .md, else HTML that needs no network
        title : of the page, in place of its own

        Raises
        ------
        ResultError : it can't be written
        """
        from cprsim.present.writing import write_page

        return write_page(self.document, Path(file), title)[0]

    def _brief(self) -> list[Block]:
        """What is shown where there is little room: the first sections, with one figure."""
        sections = self.document.sections[: self.n_sections]
        blocks = [block for section in sections for block in section.blocks]
        first = next((block for block in blocks if isinstance(block, Picture)), None)
        return [one for one in blocks if not isinstance(one, Picture) or one is first]

    def _repr_html_(self) -> str:
        from cprsim.present.html import fragment

        return fragment(self.document, self._brief())

    def __str__(self) -> str:
        from cprsim.present.terminal import show

        console = Console(
            file=StringIO(), width=WIDTH, markup=False, emoji=False, color_system=None,
            force_terminal=False, force_jupyter=False, force_interactive=False,
        )  # fmt: skip
        blocks = [Words([self.document.title]), Words(self.document.answer), *self._brief()]
        show(console, blocks)
        assert isinstance(console.file, StringIO)
        lines = printable(console.file.getvalue()).splitlines()
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    def __repr__(self) -> str:
        return f"<cprsim.{type(self).__name__} {one_line(self.name)}>"


class Answer(Shown):
    """What came of a question: its numbers as a table, and figures."""

    @property
    @abstractmethod
    def table(self) -> pd.DataFrame:
        """The numbers, with the ends of their 95 % intervals."""

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures by name, drawn anew; a notebook shows each as an image."""
        return {name: _drawn(draw) for name, draw in self._drawings().items()}

    def figure(self, name: str | None = None) -> Figure:
        """One figure by its name; without a name the first.

        Raises
        ------
        ParameterError : there is none of that name, or none at all
        """
        drawings = self._drawings()
        if name is None and drawings:
            name = next(iter(drawings))
        if name is None or name not in drawings:
            known = ", ".join(drawings) or "none"
            raise ParameterError(f"there is no figure {name!r}; there are: {known}")
        return _drawn(drawings[name])

    def _drawings(self) -> Mapping[str, Draw]:
        """What draws each figure: by default those of the document."""
        pictures = [one for one in self.document.blocks if isinstance(one, Picture)]
        return {_slug(one.caption): one.draw for one in pictures}


def _slug(caption: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", caption.lower()).strip("-")


def _drawn(draw: Draw) -> Figure:
    from cprsim.plots.save import displayed

    return displayed(draw())


def require_known(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise ParameterError for a name of no quantity."""
    there = list(dict.fromkeys(known))
    for name in names:
        if name not in there:
            raise ParameterError(f"there is no quantity {name!r}; there are: {', '.join(there)}")


def table_of(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Rows as a table."""
    import pandas as pd

    return pd.DataFrame(list(rows))
