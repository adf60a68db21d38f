"""Figures into files, the same bytes every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from cprsim.errors import counted, printable
from cprsim.pages.axes import style

Draw = Callable[[], Figure]

# what matplotlib would add of itself: dates and versions
_SILENT = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write the figure as ``<stem>.<format>`` for each format and return the paths."""
    paths = {suffix: stem.with_name(f"{stem.name}.{suffix}") for suffix in formats}
    for suffix, path in paths.items():
        path.write_bytes(bytes_of(figure, suffix))
        figure.set_layout_engine("none")  # laid out once, for all formats: half of the time
    return list(paths.values())


def save_figures(
    figures: Mapping[str, Draw], folder: Path, formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Draw figures into an existing folder, each under its name; returns the paths."""
    return [
        path
        for name, draw in counted("drawing figures", figures.items())
        for path in save_figure(draw(), folder / name, formats)
    ]


def drawing(
    folder: object, figures: Callable[[Any], Mapping[str, Draw]]
) -> Callable[[Any], object]:
    """A function that draws the figures of a result into its folder, if there is one."""

    def draw(result: Any) -> None:
        if folder is not None:
            save_figures(figures(result), result.path)

    return draw


def displayed(figure: Figure) -> Figure:
    """The figure, which a notebook shows as an image without pyplot; returns it."""
    vars(figure)["_repr_png_"] = partial(bytes_of, figure, "png")
    return figure


def bytes_of(figure: Figure, suffix: str) -> bytes:
    """The figure in a format, with control characters spelled out so that an SVG can be read."""
    FigureCanvasAgg(figure)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)  # as asked for
        text.set_text(printable(text.get_text()))
    file = BytesIO()
    with style():
        figure.savefig(file, format=suffix, metadata=_SILENT[suffix])
    return file.getvalue()
