"""The answer that every function of cprsim returns, and every command prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cprsim.errors import ParameterError, one_line
from cprsim.pages.document import Document
from cprsim.pages.figures import displayed
from cprsim.pages.html import fragment
from cprsim.pages.markdown import write_page
from cprsim.pages.terminal import text_of

ANSWER_FORMAT = 2  # of the JSON object


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to one question: its numbers as tables, and a document that explains them.

    ``print`` shows it as text, a notebook as HTML.

    Parameters
    ----------
    kind : str
        Which question: ``"run"``, ``"sweep"``, ``"fit"``, ...
    name : str
        Its subject, such as the scenario's name.
    frames : mapping of str to DataFrame
        Its numbers, tidy; an estimate ``x`` has columns ``x``, ``x_low``, ``x_high`` (95 %).
    values : mapping of str to Any
        Values that are no table.
    rows : mapping of str to DataFrame
        Data behind the numbers, such as a row per replication. Not in the JSON.
    folder : Path or None
        The results folder, or the file of a curve; None where it is not kept.
    """

    kind: str
    name: str
    make_document: Callable[[], Document]
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    folder: Path | None = None
    found_again: bool = False  # the folder was there, finished
    files: Sequence[Path] = ()  # further files that were written
    exit_code: int = 0  # of the command
    stored: Any = None  # the `StoredResult` that it was made of, with its folder

    @cached_property
    def document(self) -> Document:
        """Question, answer, main table, remarks, and sections of tables and figures."""
        return self.make_document()

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures by name, drawn anew; a notebook shows each as an image."""
        return {picture.name: displayed(picture.draw()) for picture in self.document.pictures}

    def plot(self, name: str | None = None, **options: str) -> Figure:
        """Draw one figure by its name; without a name the first.

        Parameters
        ----------
        name : str, optional
            One of `figures`.
        **options : str
            Of the ``"map"`` of a sweep: ``strategy`` and ``metric`` (a column of
            ``frames["points"]``) for a heat map of that instead of the cheapest.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ParameterError
            No figure has that name, or there is no figure; an option has another value.
        """
        pictures = {picture.name: picture for picture in self.document.pictures}
        name = next(iter(pictures), "") if name is None else name
        if name not in pictures:
            there = f"no figure {name!r}; there are: {', '.join(pictures)}"
            raise ParameterError(f"there is {there if pictures else 'no figure'}")
        picture = pictures[name]
        for option, value in options.items():
            if value not in picture.choices.get(option, ()):
                known = ", ".join(picture.choices.get(option, picture.choices)) or "no options"
                raise ParameterError(f"{option}={value!r}: figure {name!r} takes: {known}")
        return displayed(picture.draw(**options))

    def to_json(self) -> str:
        """One JSON object; missing numbers are null."""
        content = {
            "format": ANSWER_FORMAT,
            "kind": self.kind,
            "name": self.name,
            "folder": self.folder,
            "files": list(self.files),
            "values": dict(self.values),
            "frames": {name: frame.to_dict("records") for name, frame in self.frames.items()},
        }
        return json.dumps(_plain(content), allow_nan=False, ensure_ascii=False, indent=1)

    def report(self, file: str | Path, *, title: str | None = None) -> Path:
        """Write all of it as one page; a file of that name is replaced.

        Parameters
        ----------
        file : str or Path
            Markdown where its name ends in .md; else .html, which needs no network.
        title : str, optional
            Title of the page; default: that of the answer.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ResultError
            It can't be written.
        """
        return write_page(self.document, Path(file), title)[0]

    def beginning_with(self, remarks: Sequence[str]) -> Answer:
        """A copy that begins with some of its remarks."""

        def made() -> Document:
            others = [remark for remark in self.document.remarks if remark not in remarks]
            return replace(self.document, answer=[*remarks, *self.document.answer], remarks=others)

        return replace(self, make_document=made)

    def with_files(self, files: Iterable[Path]) -> Answer:
        """A copy with further written files."""
        return replace(self, files=tuple(files), make_document=lambda: self.document)

    def _repr_html_(self) -> str:
        return fragment(self.document)

    def __str__(self) -> str:
        return text_of(self.document)

    def __repr__(self) -> str:
        return f"<cprsim.Answer {self.kind} {one_line(self.name)}>"


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, float | np.floating):
        return float(value) if isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    return value if value is None or isinstance(value, bool | int) else str(value)
