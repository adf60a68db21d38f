"""One look for all figures: colours that colour-blind readers tell apart, hatches for print.

Colours are Okabe and Ito's (2008); their grey values differ too, and every activity has a hatch of
its own, so that a black-and-white print still reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from zlib import crc32

import matplotlib
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from cprsim.results.metrics import known_first
from cprsim.results.words import PART_LABELS

INK = "#222222"
FAINT = "#8a8a8a"
CAPTION = "#555555"  # small print under a title


@dataclass(frozen=True, slots=True)
class Look:
    """How an activity of the job is drawn and called."""

    label: str
    colour: str
    hatch: str = ""

    def patch(self) -> Patch:
        """Its entry in a legend."""
        return Patch(**self.fill(), label=self.label)

    def fill(self) -> dict[str, Any]:
        """Keywords of a filled area: the hatch is drawn in the edge's colour, white."""
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0}


# keyed by the parts of overhead and the lower-case names of records.Activity, in stacking order
LOOKS = {
    "useful": Look("useful work", "#e3e6e8"),
    "save": Look("save", "#0072b2"),
    "load": Look("load", "#56b4e9", "////"),
    "lost": Look(PART_LABELS["lost"], "#d55e00", "xxx"),
    "detect": Look("detect", "#4a4a4a", "||||"),
    "wait": Look(PART_LABELS["wait"], "#cc79a7", "----"),
    # no dots or circles: matplotlib spells each one out, a quarter of a megabyte in an SVG
    "reschedule": Look("reschedule", "#e69f00", "+++"),
}
# parts that recovery systems add
_OF_SYSTEMS = {
    "rebuild": Look("rebuild", "#009e73", "\\\\\\\\"),
    "regroup": Look("regroup", "#f0e442", "//"),
    "replay": Look("replay", "#8c6bb1", "--"),
    "degraded": Look("degraded", "#999999", "xx"),
    "tax": Look("tax", "#b0a070", "||"),
}
OTHER_LOOKS = tuple(_OF_SYSTEMS.values())  # like none of LOOKS: for parts that nothing here names


def look_of(part: str) -> Look:
    """How a part of overhead is drawn; a part that is not listed is called by its name."""
    other = OTHER_LOOKS[crc32(part.encode()) % len(OTHER_LOOKS)]
    return (LOOKS | _OF_SYSTEMS).get(part, replace(other, label=part))


def stacked(parts: Iterable[str]) -> tuple[str, ...]:
    """Parts of overhead from the bottom of a bar to its top."""
    return known_first(parts, LOOKS)


class Line(NamedTuple):
    """How one of several lines of a figure is told from the others, in colour and without."""

    colour: str
    marker: str
    dashes: Any


SERIES = (
    Line("#0072b2", "o", "-"),
    Line("#d55e00", "s", "--"),
    Line("#009e73", "^", "-."),
    Line("#cc79a7", "D", (0, (1, 1.2))),
    Line("#e69f00", "v", (0, (5, 1, 1, 1, 1, 1))),
    Line("#56b4e9", "P", (0, (8, 2))),
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


def line_of_many(number: int, n: int) -> Line:
    """The look of one of `n` lines in an order: from dark to light where they are more than looks.

    Markers and dashes repeat then, and neighbours differ in all three.
    """
    look = SERIES[number % len(SERIES)]
    if n <= len(SERIES):
        return look
    shade = matplotlib.colormaps["viridis"](0.9 * number / (n - 1))
    return look._replace(colour=to_hex(shade))


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures, independent of the user's own matplotlibrc."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield
