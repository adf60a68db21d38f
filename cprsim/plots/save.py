"""Figures into files, the same bytes every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from weakref import WeakSet

import matplotlib
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, Formatter, FuncFormatter

from cprsim.errors import printable
from cprsim.plots.style import style

Draw = Callable[[], Figure]

# what matplotlib would add of itself: dates and versions
_SILENT = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
FORMATS = tuple(_SILENT)
_DONE: WeakSet[Figure] = WeakSet()


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write the figure as ``<stem>.<format>`` for each format and return the paths."""
    make_literal(figure)
    paths = []
    with style():
        for suffix in formats:
            path = stem.with_name(f"{stem.name}.{suffix}")
            figure.savefig(path, format=suffix, metadata=_SILENT[suffix])
            figure.set_layout_engine("none")  # laid out once, for all formats: half of the time
            paths.append(path)
    return paths


def save_figures(
    figures: Mapping[str, Draw],
    folder: Path,
    *,
    prefix: str = "",
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Draw figures into a folder that is there, each under its name; the paths."""
    return [
        path
        for name, draw in figures.items()
        for path in save_figure(draw(), folder / f"{prefix}{name}", formats)
    ]


def png_bytes(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG."""
    make_literal(figure)
    file = BytesIO()
    with style():
        figure.savefig(file, format="png", metadata=_SILENT["png"])
    return file.getvalue()


def displayed(figure: Figure) -> Figure:
    """The figure, which a notebook shows as an image without pyplot; returns it."""
    make_literal(figure)
    vars(figure)["_repr_png_"] = partial(png_bytes, figure)
    return figure


def svg_text(figure: Figure, salt: str) -> str:
    """The figure as SVG whose words are words, for a page that holds several."""
    make_literal(figure)
    file = StringIO()
    with style(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata=_SILENT["svg"])
    return file.getvalue()


def make_literal(figure: Figure) -> None:
    """Draw every text of a finished figure as it is written, with control characters spelled out.

    matplotlib sets what stands between two dollar signs as mathematics, and raises an error where
    it is none. Names and values of users are no mathematics; only the powers of ten that label
    logarithmic axes are.
    """
    FigureCanvasAgg(figure)
    if figure in _DONE:
        return
    _DONE.add(figure)
    axes = [axis for one in figure.axes for axis in (one.xaxis, one.yaxis)]
    labels = {id(label) for axis in axes for label in _labels(axis)}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)  # as asked for
        if id(text) not in labels:
            text.set_parse_math(False)
            text.set_text(printable(text.get_text()))
    for axis in axes:
        formatter = axis.get_major_formatter()
        if isinstance(formatter, FixedFormatter | FuncFormatter):
            axis.set_major_formatter(_Literally(formatter))


class _Literally(Formatter):
    """A formatter whose labels are drawn as they are written."""

    def __init__(self, inner: Formatter) -> None:
        self.inner = inner

    def __call__(self, x: float, pos: int | None = None) -> str:
        return printable(self.inner(x, pos)).replace("$", r"\$")


def _labels(axis: Axis) -> list[Text]:
    """Labels of ticks: formatters write them anew whenever the figure is drawn."""
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [label for tick in ticks for label in (tick.label1, tick.label2)]
