"""A page into a file, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from cprsim.errors import ResultError
from cprsim.files import write_whole, writes
from cprsim.plots.save import save_figure
from cprsim.present import html, markdown
from cprsim.present.document import Picture, ResultsPage

Format = Literal["html", "md"]


def format_of(path: Path) -> Format:
    """Markdown where the name of a file ends so, else HTML."""
    return "md" if path.suffix.lower() in (".md", ".markdown") else "html"


def write_page(page: ResultsPage, path: Path, form: Format | None = None) -> list[Path]:
    """Write the page; a file of that name is replaced.

    Raises ResultError: it can't be written; a file that is there stays as it is.
    """
    if path.is_dir():
        raise ResultError(f"can't write {path}: it is a folder")
    if not path.parent.is_dir():
        raise ResultError(f"can't write {path}: there is no folder {path.parent}")
    with writes(path):
        if (form or format_of(path)) == "md":
            return _write_markdown(page, path)
        write_whole(path, html.render(page))
    return [path]


def _write_markdown(page: ResultsPage, path: Path) -> list[Path]:
    """The text, and the figures that it shows: ``report_files/figure-1.png`` and so on.

    Figures that are there from an earlier report are replaced one by one; other files stay.
    """
    folder = path.with_name(f"{path.stem}_files")
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=path.parent) as unfinished:
        drawn: list[Path] = []

        def place(picture: Picture) -> str:
            stem = Path(unfinished) / f"figure-{len(drawn) + 1}"
            drawn.extend(save_figure(picture.draw(), stem, ("png",)))
            return markdown.address(f"{folder.name}/{drawn[-1].name}")

        text = markdown.render(page, place)
        if drawn:
            folder.mkdir(exist_ok=True)
        for file in drawn:
            file.replace(folder / file.name)
        write_whole(path, text)
    return [path, folder] if drawn else [path]
