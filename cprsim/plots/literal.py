"""Texts in figures mean themselves: names and values of users are no mathematics.

matplotlib sets what stands between two dollar signs as mathematics, and ends in an error where it
is none. No figure of ours needs that but the powers of ten that label logarithmic axes.
"""

from __future__ import annotations

from weakref import WeakSet

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, Formatter, FuncFormatter

from cprsim.foreign import printable

_DONE: WeakSet[Figure] = WeakSet()


def make_literal(figure: Figure) -> None:
    """Have every text of a finished figure drawn as it is written, controls spelled out."""
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
    """What another formatter says, as it is written."""

    def __init__(self, inner: Formatter) -> None:
        self.inner = inner

    def __call__(self, x: float, pos: int | None = None) -> str:
        return printable(self.inner(x, pos)).replace("$", r"\$")


def _labels(axis: Axis) -> list[Text]:
    """Labels of ticks: formatters write them anew whenever the figure is drawn."""
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [label for tick in ticks for label in (tick.label1, tick.label2)]
