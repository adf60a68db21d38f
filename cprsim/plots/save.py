"""Figures into files, the same bytes every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

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


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write the figure as ``<stem>.<format>`` for each format and return the paths."""
    _spell_out(figure)
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
    _spell_out(figure)
    file = BytesIO()
    with style():
        figure.savefig(file, format="png", metadata=_SILENT["png"])
    return file.getvalue()


def displayed(figure: Figure) -> Figure:
    """The figure, which a notebook shows as an image without pyplot; returns it."""
    _spell_out(figure)
    vars(figure)["_repr_png_"] = partial(png_bytes, figure)
    return figure


def svg_text(figure: Figure, salt: str) -> str:
    """The figure as SVG whose words are words, for a page that holds several."""
    _spell_out(figure)
    file = StringIO()
    with style(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata=_SILENT["svg"])
    return file.getvalue()


def _spell_out(figure: Figure) -> None:
    """Spell out control characters, so that an SVG can be read."""
    FigureCanvasAgg(figure)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)  # as asked for
        text.set_text(printable(text.get_text()))
