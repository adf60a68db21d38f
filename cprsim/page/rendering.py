"""A page as HTML: templates with every word escaped by jinja2, style and script inside."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from itertools import count
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cprsim.errors import ResultError
from cprsim.page.content import Mark, Page, Picture
from cprsim.page.svg import inline
from cprsim.whole_file import write_whole

_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:h|min|s|node-hours?|nodes?)\b|%|±)|(?<=±) ")


def render(page: Page) -> str:
    """The page as one HTML document without any reference to another file."""
    environment = Environment(
        loader=PackageLoader("cprsim.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["whole"] = whole
    style, script = _part("page.css"), _part("page.js")
    numbers = count(1)
    return environment.get_template("page.html").render(
        page=page,
        style=style,
        script=script,
        script_digest=_digest(script),
        number=lambda: next(numbers),
        svg=_svg,
    )


def whole(text: str) -> str:
    """The text with numbers and their units held together where lines break."""
    return _NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", text)


def write_page(page: Page, path: Path) -> None:
    """Write the page, whole or not at all; a file of that name is replaced.

    Raises
    ------
    ResultError : it can't be written; nothing is left behind
    """
    if path.is_dir():
        raise ResultError(f"can't write {path}: it is a folder")
    if not path.parent.is_dir():
        raise ResultError(f"can't write {path}: there is no folder {path.parent}")
    text = render(page)
    try:
        write_whole(path, text)
    except OSError as error:
        raise ResultError(f"can't write {path}: {error.strerror or error}") from error


def _svg(picture: Picture, narrow: bool, name: str) -> Markup:
    marks: dict[str, Mark] = dict(picture.marks)
    label = (
        f"{picture.caption}; arrow keys go from piece to piece" if marks else picture.alternative
    )
    figure = picture.narrow if narrow and picture.narrow else picture.wide
    return inline(figure, name, label, marks)


def _part(name: str) -> Markup:
    """A part of the package that goes into the page as it is."""
    text = (files("cprsim.page") / "templates" / name).read_text("utf-8")
    return Markup(text)  # our own file


def _digest(script: str) -> str:
    """What the page's security policy calls the one script that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
