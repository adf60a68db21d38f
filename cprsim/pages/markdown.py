"""A page as Markdown (GitHub's, with tables), its figures as separate files; and pages written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from cprsim.errors import ResultError, printable
from cprsim.files import write_whole, writes
from cprsim.pages import html
from cprsim.pages.document import Block, Document, ListingBlock, Picture, Table, Words
from cprsim.pages.figures import save_figure

_MARKUP = re.compile(r"[\\`*\[\]<>|~$]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
_BEGINS_A_BLOCK = re.compile(r"^(\d+(?=[.)] )|(?=#|[+-] ))")  # a backslash there keeps it text

Place = Callable[[Picture], str]  # the path of a figure


def render(document: Document, place: Place, title: str | None = None) -> str:
    """The document as one text."""
    parts = [f"# {_text(title or document.title)}", *_body(document, 2, place)]
    for part in document.parts:
        parts += [f"## {_text(part.title)}", *_body(part, 3, place)]
    return printable("\n\n".join(parts) + "\n")


def _body(document: Document, level: int, place: Place) -> Iterator[str]:
    """Question, answer and sections, whose headings are of a level."""
    yield f"*{_text(document.question)}*"
    yield from map(_paragraph, document.answer)
    for block in document.main:
        yield from _block(block, place)
    for section in document.sections:
        yield f"{'#' * level} {_text(section.heading)}"
        for block in section.blocks:
            yield from _block(block, place)


def _block(block: Block, place: Place) -> Iterator[str]:
    match block:
        case Words(paragraphs):
            yield from map(_paragraph, paragraphs)
        case Table():
            if block.caption:
                yield _paragraph(block.caption)
            yield table(block)
        case ListingBlock(caption, text):
            yield f"{_paragraph(caption)}:"
            yield fenced(text)
        case Picture(caption, alternative):
            yield f"{_paragraph(caption)}:"
            yield f"![{_text(alternative)}]({quote(place(block))})"


def table(block: Table) -> str:
    """A table without its caption; numbers are right-aligned."""
    sides = ["---:" if is_number else "---" for is_number in block.numeric]
    headings = [_text(heading) for heading in block.headings]
    rows = [[_text(str(cell)) for cell in row] for row in block.rows]
    return "\n".join(map(_line, [headings, sides, *rows]))


def raw_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of a document whose cells are Markdown already."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(_line([cell.replace("|", "/") for cell in line]) for line in lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def fenced(text: str) -> str:
    """Unchanged text within a fence that is longer than any in it."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _paragraph(text: str) -> str:
    """Escape the start of a text that would make it a heading or a list."""
    return _BEGINS_A_BLOCK.sub(r"\1\\", _text(text))


def _text(text: str) -> str:
    """One line with its markup escaped."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


# --------------------------------------------------------------------------- into a file


def write_page(document: Document, path: Path, title: str | None = None) -> list[Path]:
    """Write the page, as Markdown if the file's name ends so; an existing file is replaced.

    Raises ResultError if it can't be written; an existing file then stays as it is.
    """
    with writes(path):
        if path.is_dir():
            raise ResultError(f"can't write {path}: it is a folder")
        if not path.parent.is_dir():
            raise ResultError(f"can't write {path}: there is no folder {path.parent}")
        if path.suffix.lower() in (".md", ".markdown"):
            return _write_markdown(document, path, title)
        if path.suffix.lower() not in ("", ".html", ".htm"):
            raise ResultError(f"can't write {path}: name a page .html or .md")
        write_whole(path, html.render(document, title))
    return [path]


def _write_markdown(document: Document, path: Path, title: str | None) -> list[Path]:
    """Write the text and its figures: ``report_files/figure-1.png`` and so on.

    Figures of an earlier report are replaced one by one; other files stay.
    """
    folder = path.with_name(f"{path.stem}_files")
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=path.parent) as unfinished:
        drawn: list[Path] = []

        def place(picture: Picture) -> str:
            stem = Path(unfinished) / f"figure-{len(drawn) + 1}"
            drawn.extend(save_figure(picture.draw(), stem, ("png",)))
            return f"{folder.name}/{drawn[-1].name}"

        text = render(document, place, title)
        if drawn:
            folder.mkdir(exist_ok=True)
        for file in drawn:
            file.replace(folder / file.name)
        write_whole(path, text)
    return [path, folder] if drawn else [path]
