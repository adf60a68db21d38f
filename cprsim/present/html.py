"""A page as HTML: templates with every word escaped by jinja2, style inside."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import count
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from cprsim.errors import printable
from cprsim.plots.save import png_bytes, svg_text
from cprsim.present.document import Block, Document

_CODE = re.compile(r"`([^`]+)`")
_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:h|min|s|node-hours?|nodes?)\b|%|±)|(?<=±) ")


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
LEAST_PX_PER_POINT, MOST_PX_PER_POINT = 1.1, 1.5

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def render(document: Document, title: str | None = None) -> str:
    """The document as one page of HTML without any reference to another file."""
    numbers = count(1)
    page = _template("page.html").render(
        document=document,
        title=title or document.title,
        style=_part("page.css"),
        number=lambda: next(numbers),
        svg=lambda picture, name: inline(picture.draw(), name, picture.alternative),
    )
    return printable(page)


def fragment(document: Document, blocks: Sequence[Block] | None = None) -> str:
    """Title, answer, table, remarks and first figure, for a notebook; figures are images."""
    if blocks is None:
        blocks = [*document.main, *document.pictures[:1]]
    shown = _template("fragment.html").render(
        document=document,
        blocks_shown=blocks,
        number=lambda: next(_NUMBERS),
        image=lambda picture: base64.b64encode(png_bytes(picture.draw())).decode(),
    )
    return printable(shown)


_NUMBERS = count(1)  # of all fragments of this process: their names are in one page


def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("cprsim.present"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["whole"] = whole
    return environment.get_template(name)


def whole(text: str) -> Markup:
    """The text escaped: numbers stay with their units, and what stands in backticks is code."""
    escaped = str(escape(_NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", str(text))))
    return Markup(_CODE.sub(r"<code>\1</code>", escaped))  # escaped before


def _part(name: str) -> Markup:
    """A part of the package that goes into the page as it is."""
    text = (files("cprsim.present") / "templates" / name).read_text("utf-8")
    return Markup(text)  # our own file


# ------------------------------------------------------------------------------ figures


def inline(figure: Figure, name: str, label: str) -> Markup:
    """The figure as one SVG element, an image to those who can't see it."""
    root = ElementTree.fromstring(svg_text(figure, name))
    _drop(root, "metadata")
    _drop_styles(root)
    _size(root)
    for group in root.iter(f"{{{SVG}}}g"):
        group.attrib.pop("id", None)  # nothing refers to it, and it is not unique
    root.set("aria-label", label)
    root.set("role", "img")
    text = ElementTree.tostring(root, encoding="unicode")
    return Markup(text)  # ElementTree has escaped every word in it


def _drop(root: ElementTree.Element, tag: str) -> None:
    for child in root.findall(f"{{{SVG}}}{tag}"):
        root.remove(child)


def _drop_styles(root: ElementTree.Element) -> None:
    """A style sheet inside would hold for the whole page: the page has its rule."""
    for definitions in root.iter(f"{{{SVG}}}defs"):
        _drop(definitions, "style")


def _size(root: ElementTree.Element) -> None:
    """As wide as there is room, but never with words too small to read."""
    width = float(root.attrib.pop("width").removesuffix("pt"))
    del root.attrib["height"]
    least, most = width * LEAST_PX_PER_POINT, width * MOST_PX_PER_POINT
    root.set("style", f"width: {most:.0f}px; min-width: {least:.0f}px")
