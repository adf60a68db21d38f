"""Figures: colours, titles with captions, words for keys, scales; and their files.

Colours are Okabe and Ito's (2008), which colour-blind readers distinguish; their grey values differ
too, and every activity has a different hatch, so that a black-and-white print is readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from math import ceil, floor, log10
from pathlib import Path
from textwrap import fill
from typing import Any
from zlib import crc32

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator, NullLocator

from cprsim.errors import counted, printable
from cprsim.results.metrics import known_first
from cprsim.results.words import PART_LABELS

INK = "#222222"
FAINT = "#8a8a8a"
CAPTION = "#555555"  # small print under a title


Look = dict[str, Any]
"""Keywords of a line, or a filled area with its label; the hatch has the edge's colour."""


def filled(label: str, colour: str, hatch: str = "") -> Look:
    """How an activity of the job is drawn and called."""
    edge = {"edgecolor": "white", "linewidth": 0}
    return {"label": label, "facecolor": colour, "hatch": hatch, **edge}


# keyed by the parts of overhead and the lower-case names of records.Activity, in stacking order
LOOKS = {
    "useful": filled("useful work", "#e3e6e8"),
    "save": filled("save", "#0072b2"),
    "load": filled("load", "#56b4e9", "////"),
    "lost": filled(PART_LABELS["lost"], "#d55e00", "xxx"),
    "detect": filled("detect", "#4a4a4a", "||||"),
    "wait": filled(PART_LABELS["wait"], "#cc79a7", "----"),
    # no dots or circles: matplotlib spells each one out, a quarter of a megabyte in an SVG
    "reschedule": filled("reschedule", "#e69f00", "+++"),
}
# parts that recovery systems add
_OF_SYSTEMS = {
    "rebuild": filled("rebuild", "#009e73", "\\\\\\\\"),
    "regroup": filled("regroup", "#f0e442", "//"),
    "replay": filled("replay", "#8c6bb1", "--"),
    "degraded": filled("degraded", "#999999", "xx"),
    "tax": filled("tax", "#b0a070", "||"),
}
OTHER_LOOKS = tuple(_OF_SYSTEMS.values())  # like none of LOOKS: for parts that nothing here names


def look_of(part: str) -> Look:
    """How a part of overhead is drawn; a part that is not listed is called by its name."""
    fallback = OTHER_LOOKS[crc32(part.encode()) % len(OTHER_LOOKS)]
    return (LOOKS | _OF_SYSTEMS).get(part, fallback | {"label": part})


def stacked(parts: Iterable[str]) -> tuple[str, ...]:
    """Parts of overhead from the bottom of a bar to its top."""
    return known_first(parts, LOOKS)


SERIES: tuple[Look, ...] = (  # lines, told apart in colour and in black and white
    {"color": "#0072b2", "marker": "o", "ls": "-"},
    {"color": "#d55e00", "marker": "s", "ls": "--"},
    {"color": "#009e73", "marker": "^", "ls": "-."},
    {"color": "#cc79a7", "marker": "D", "ls": (0, (1, 1.2))},
    {"color": "#e69f00", "marker": "v", "ls": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#56b4e9", "marker": "P", "ls": (0, (8, 2))},
)

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.parse_math": False,  # a dollar sign in a name is no mathematics
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.handleheight": 1.2,
    "figure.facecolor": "white",
    "figure.dpi": 150,
    "savefig.dpi": 150,
    # the same figure is the same bytes, on any day and in any process
    "svg.hashsalt": "cprsim",
    "svg.fonttype": "path",
}


def line_of_many(number: int, n: int) -> Look:
    """The look of one of `n` lines in an order: from dark to light where they are more than looks.

    Markers and dashes repeat then, and neighbours differ in all three.
    """
    look = SERIES[number % len(SERIES)]
    if n <= len(SERIES):
        return look
    shade = matplotlib.colormaps["viridis"](0.9 * number / (n - 1))
    return look | {"color": to_hex(shade)}


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures, independent of the user's own matplotlibrc."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


OVERHEAD_LABEL = "overhead, % of useful time"
TITLE_POINTS, CAPTION_POINTS = 10.5, 8.0
# a bar of more than this share of useful time that is so many times the next is cut, so that the
# others can be read
CUT_ABOVE_FRACTION, CUT_ABOVE_TIMES = 0.3, 5.0
HEADROOM = 1.16
LEAST_TICKS, MOST_TICKS = 3, 8  # of a logarithmic axis
MOST_TICK_LETTERS = 44  # along a horizontal one in a third of a page
DIGITS_OF_TICKS = (range(1, 10), (1, 2, 5), (1,))  # in each decade

WORDS = {
    "accuracy.max_auc_loss": "AUC that may be lost",
    "accuracy.max_log_loss": "rise of the log-loss that is allowed",
    "accuracy.target_pls": "target PLS",
    "cluster.emb_ps": "embedding servers",
    "cluster.link": "bandwidth of a node's link",
    "cluster.rack": "nodes of a rack",
    "cluster.repair": "time to repair a node",
    "cluster.shard_size": "size of a shard",
    "cluster.spares": "spare nodes",
    "cluster.state": "state of the job",
    "cluster.trainers": "trainers",
    "cluster.workers": "workers",
    "costs.detect": "time to detect a failure",
    "costs.load": "cost of a load",
    "costs.reschedule": "time to reschedule",
    "costs.save": "cost of a save",
    "failures.count": "failures per job",
    "failures.family": "distribution of failures",
    "failures.mtbf": "mean time between failures",
    "failures.role": "what fails",
    "failures.shape": "shape of the distribution",
    "failures.sigma": "sigma of the distribution",
    "failures.together": "nodes that fail together",
    "fleet.jobs": "jobs",
    "fleet.nodes": "nodes of the cluster",
    "fleet.spares": "spare nodes",
    "fleet.storage": "bandwidth of the shared storage",
    "job.samples": "samples",
    "job.step": "time of a step",
    "job.throughput": "throughput",
    "job.useful": "useful work",
    "prices.kwh": "price of a kilowatt-hour",
    "prices.node_hour": "price of a node-hour",
    "prices.storage_month": "price of a stored gigabyte and month",
    "prices.storage_written": "price of a written gigabyte",
    "storage.bandwidth": "bandwidth of the storage",
    "storage.per_server": "bandwidth of a server's link",
}
WORDS_OF_STRATEGY = {"interval": "save interval", "target_pls": "target PLS"}
WORDS_OF_SCOPE = {
    "share": "share of {} failures", "detect": "time to detect {} failures",
    "mtbf": "mean time between {} failures",
}  # fmt: skip


def words_of_key(key: str) -> str:
    """A key of a scenario in the field's words; an unlisted key is unchanged."""
    section, _, path = key.partition(".")
    strategy, _, option = path.rpartition(".")
    if section == "recovery" and option in WORDS_OF_STRATEGY:
        of_strategy = f" of {strategy}" if strategy not in ("", "*") else ""
        return WORDS_OF_STRATEGY[option] + of_strategy
    if section == "scopes" and option in WORDS_OF_SCOPE:
        return WORDS_OF_SCOPE[option].format(strategy.removesuffix(".failures"))
    if section == "recovery" and strategy.endswith(".options"):
        return f"{option.replace('_', ' ')} of {strategy.removesuffix('.options')}"
    return WORDS.get(key, key)


def fold(text: str, width: int) -> str:
    """Wrap text at `width` characters; a number and its unit stay on one line."""
    text = re.sub(r"(\d) (\w+\b|%)", "\\1\N{NO-BREAK SPACE}\\2", printable(text))
    return fill(text, width, break_long_words=False)


def panels(
    n: int, size_in: tuple[float, float] = (4.4, 4.0), beside_in: float = 0.0, **sharing: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with panels of equal size, at most three in a row (four as two by two)."""
    n_columns = 2 if n == 4 else min(n, 3)
    n_rows = -(-n // n_columns)
    width_in = max(6.4, size_in[0] * n_columns) + beside_in
    figure = Figure(figsize=(width_in, size_in[1] * n_rows), layout="constrained")
    axes = list(figure.subplots(n_rows, n_columns, squeeze=False, **sharing).flat)
    for empty in axes[n:]:
        empty.remove()
    return figure, axes[:n]


def title_figure(figure: Figure, title: str, caption: str) -> None:
    """Write a bold title over all panels of a figure and a caption in grey below it."""
    width_in, height_in = figure.get_size_inches()
    title, lines = fill(title, int(10 * width_in)), fill(caption, int(13 * width_in))
    n_blank = -(-(lines.count("\n") + 1) * CAPTION_POINTS // TITLE_POINTS)  # lines kept free
    top = {} if figure.get_layout_engine() else {"y": 1 - 3 / 72 / height_in}
    figure.suptitle(
        title + "\n" * int(n_blank), x=0.01, ha="left", fontweight="bold",
        fontsize=TITLE_POINTS, **top,
    )  # fmt: skip
    below_title = 1 - (1.9 + 1.2 * title.count("\n")) * TITLE_POINTS / 72 / height_in
    figure.text(0.011, below_title, lines, fontsize=CAPTION_POINTS, color=CAPTION, va="top")


def log_scale(axes: Axes, direction: str) -> None:
    """Make an axis logarithmic, with ticks at round numbers, as many as can be read."""
    axis = axes.xaxis if direction == "x" else axes.yaxis
    (axes.set_xscale if direction == "x" else axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    decades = 10.0 ** np.arange(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in DIGITS_OF_TICKS:
        ticks = np.outer(decades, digits).ravel()
        ticks = ticks[(low <= ticks) & (ticks <= high)]
        if len(ticks) <= MOST_TICKS:
            break
    if len(ticks) < LEAST_TICKS:  # a narrow axis is nearly linear
        ticks = np.array(MaxNLocator(MOST_TICKS).tick_values(low, high)[1:-1])
    ticks = ticks[:: ceil(len(ticks) / MOST_TICKS)]
    labels = [plain_number(tick, 10) for tick in ticks]
    step = 2 if direction == "x" and len(labels) * max(map(len, labels)) > MOST_TICK_LETTERS else 1
    axis.set_ticks(ticks[::step], labels[::step])
    axis.set_minor_locator(NullLocator())  # each would be laid out like a text: half of the time


def plain_number(value: float, digits: int = 3) -> str:
    """``20,000``, ``9.16``, ``0.00001``: whole or rounded, never a power of ten."""
    if float(value).is_integer() or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return np.format_float_positional(float(f"{value:.{digits}g}"), trim="-")


def axis_top(totals: Sequence[float]) -> float:
    """Where an axis of overheads ends [share of useful time]."""
    heights = sorted((total for total in totals if total > 0), reverse=True)
    if not heights:
        return 0.01
    dwarfs = len(heights) > 1 and heights[0] > CUT_ABOVE_TIMES * heights[1]
    if dwarfs and heights[0] > CUT_ABOVE_FRACTION:
        return heights[1] * 1.5
    return heights[0] * HEADROOM


# --------------------------------------------------------------------------- files

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
