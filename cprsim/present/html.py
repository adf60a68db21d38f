"""A page as HTML: templates with every word escaped by jinja2, style and script inside."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import count
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from matplotlib.figure import Figure

from cprsim.plots.save import png_bytes, svg_text
from cprsim.present.document import Block, Cell, Document, FigureMark, Picture, ResultsPage

_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:h|min|s|node-hours?|nodes?)\b|%|±)|(?<=±) ")


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
POINTERS = ("pointer", "plot-area")  # pieces that a scale moves and measures
LEAST_PX_PER_POINT, MOST_PX_PER_POINT = 1.1, 1.5

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def render(page: ResultsPage) -> str:
    """The page as one HTML document without any reference to another file."""
    style, script = _part("page.css"), _part("page.js")
    numbers = count(1)
    return _template("page.html").render(
        page=page,
        style=style,
        script=script,
        script_digest=_digest(script),
        number=lambda: next(numbers),
        svg=_svg,
    )


def fragment(document: Document, blocks: Sequence[Block]) -> str:
    """Title, answer and some blocks of a document, for a notebook: no script, no style, no file.

    Figures are images; scales and prices, which take a script, are left out.
    """
    return _template("fragment.html").render(
        document=document,
        blocks_shown=blocks,
        number=lambda: next(_NUMBERS),
        image=lambda picture: base64.b64encode(png_bytes(picture.draw(False))).decode(),
    )


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


def whole(text: str | Cell) -> str:
    """The text with numbers and their units held together where lines break."""
    return _NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", str(text))


def _svg(picture: Picture, narrow: bool, name: str) -> Markup:
    marks: dict[str, FigureMark] = dict(picture.marks)
    label = (
        f"{picture.caption}; arrow keys go from piece to piece" if marks else picture.alternative
    )
    return inline(picture.draw(narrow), name, label, marks)


def _part(name: str) -> Markup:
    """A part of the package that goes into the page as it is."""
    text = (files("cprsim.present") / "templates" / name).read_text("utf-8")
    return Markup(text)  # our own file


def _digest(script: str) -> str:
    """What the page's security policy calls the one script that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


# ------------------------------------------------------------------------------ figures


def inline(figure: Figure, name: str, label: str, marks: Mapping[str, FigureMark]) -> Markup:
    """The figure as one SVG element.

    With marks it is a list box, whose options are the marks: they take the arrow keys, and all else
    in it is for the eye. Without, it is one image.

    Parameters
    ----------
    figure : is drawn
    name : different for each figure of a page
    label : what the figure shows
    marks : by the name (gid) that the piece has in the figure
    """
    root = ElementTree.fromstring(svg_text(figure, name))
    _drop(root, "metadata")
    _drop_styles(root)
    _size(root)
    _name_pieces(root, marks)
    root.set("aria-label", label)
    root.set("role", "listbox" if marks else "img")
    if marks:
        _hide_all_but_options(root)
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


def _name_pieces(root: ElementTree.Element, marks: Mapping[str, FigureMark]) -> None:
    """Marks and pointers get classes; names that nothing refers to go: they are not unique."""
    for group in root.iter(f"{{{SVG}}}g"):
        gid = group.attrib.pop("id", "")
        if gid in POINTERS:
            group.set("class", gid)
        elif gid in marks:
            group.set("class", "mark")
            group.set("role", "option")
            group.set("aria-selected", "false")
            group.set("aria-label", marks[gid].words)
            group.set("data-group", marks[gid].group)


def _hide_all_but_options(element: ElementTree.Element) -> None:
    for child in element:
        if child.get("role") == "option":
            continue
        if any(inner.get("role") == "option" for inner in child.iter()):
            _hide_all_but_options(child)
        else:
            child.set("aria-hidden", "true")
