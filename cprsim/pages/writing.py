"""A page into a file, whole or not at all; figures into a folder."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from cprsim.errors import ResultError
from cprsim.files import write_whole, writes
from cprsim.pages import html, markdown
from cprsim.pages.document import Document, Picture
from cprsim.pages.figures import save_figure


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

        text = markdown.render(document, place, title)
        if drawn:
            folder.mkdir(exist_ok=True)
        for file in drawn:
            file.replace(folder / file.name)
        write_whole(path, text)
    return [path, folder] if drawn else [path]
