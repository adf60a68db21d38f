"""A page as HTML: templates with every word escaped by jinja2, style inside."""

from __future__ import annotations

import base64
import re
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from cprsim.errors import printable
from cprsim.pages.document import Document, Picture
from cprsim.pages.figures import bytes_of

_TEMPLATES = files("cprsim.pages") / "templates"
PX_PER_INCH = 96  # of a style sheet
_CODE = re.compile(r"`([^`]+)`")
_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:h|min|s|node-hours?|nodes?)\b|%|±)|(?<=±) ")


def render(document: Document, title: str | None = None) -> str:
    """The document as one page of HTML without any reference to another file."""
    return rendered("page.html", document=document, title=title or document.title)


def rendered(template: str, **values: Any) -> str:
    """A template with values; it may take in files of its folder, and pictures as SVG."""
    numbers = count(1)
    shared: dict[str, Any] = {
        "file": lambda name: Markup((_TEMPLATES / name).read_text("utf-8")),
        "number": lambda: next(numbers),
        "image": lambda picture: inline(picture, "svg"),
    }
    return printable(_template(template).render(shared | values))


def fragment(document: Document) -> str:
    """Title, answer, table, remarks and first figure, for a notebook; figures are images."""
    shown = [*document.main, *document.pictures[:1]]
    own = {"number": lambda: next(_NUMBERS), "image": lambda picture: inline(picture, "png")}
    return rendered("fragment.html", document=document, blocks_shown=shown, **own)


_NUMBERS = count(1)  # of all fragments of this process: their names are in one page


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("cprsim.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["typeset"] = typeset
    return environment.get_template(name)


def typeset(text: str) -> Markup:
    """Escape text: numbers stay with their units, and text in backticks becomes code."""
    escaped = str(escape(_NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", str(text))))
    return Markup(_CODE.sub(r"<code>\1</code>", escaped))  # escaped before


def inline(picture: Picture, format: str) -> Markup:
    """The figure as an image embedded in the page."""
    kind = {"svg": "svg+xml", "png": "png"}[format]
    figure = picture.draw()
    data = base64.b64encode(bytes_of(figure, format)).decode()
    width_px = PX_PER_INCH * figure.get_size_inches()[0]
    style = Markup(f' style="--width: {width_px:.0f}px"') if format == "svg" else ""
    image = Markup('<img alt="{}"{} src="data:image/{};base64,{}">')
    return image.format(picture.alternative, style, kind, data)
