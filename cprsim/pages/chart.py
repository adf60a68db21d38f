"""A figure as data: panels of series, with a paper's values marked among them.

Whoever makes numbers says what belongs together and in which units; `cprsim.pages.draw_chart` draws
it, a report may draw the same data in another way. Nothing here knows matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from cprsim.files import Number

Kind = Literal["line", "points", "steps", "stack", "paper", "range"]


@dataclass(frozen=True, slots=True)
class Series:
    """Values over x, with their 95 % intervals where there is noise; one style per label.

    x are numbers, or names of categories (then all series of the panel share them). Stacked parts
    (`stack`) are listed from the bottom to the top; only the last of them has an interval, that of
    the total. `paper` values have a separate mark: values of a paper, whose label gives their
    source, or the lowest or chosen value. A `range` over names is a bar from low to high, along x;
    y is the value to compare it with.
    """

    label: str
    x: tuple[float | str, ...]
    y: tuple[Number, ...]
    low: tuple[Number, ...] = ()
    high: tuple[Number, ...] = ()
    kind: Kind = "line"


@dataclass(frozen=True, slots=True)
class Band:
    """A value or a range of a paper that holds all along the other axis."""

    label: str  # with its mark: published, secondary, derived, recalled
    low: Number
    high: Number
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes; labels of axes carry the unit."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    x_log: bool = False
    y_log: bool = False
    y_from_zero: bool = True
    x_range: tuple[float, float] | None = None  # as far as the axes go; None: as far as the data
    y_range: tuple[float, float] | None = None
    y_names: tuple[str, ...] = ()  # of the whole numbers on y, from 0 at the top


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure: its title, its caption, and its panels side by side."""

    title: str
    subtitle: str
    panels: tuple[Panel, ...]


def merged(series: Iterable[Series]) -> tuple[Series, ...]:
    """The series, with those of equal values as one by all their labels."""
    groups: dict[str, list[Series]] = {}
    for curve in series:
        groups.setdefault(repr((curve.x, curve.y)), []).append(curve)
    return tuple(
        replace(equal[0], label=", ".join(curve.label for curve in equal))
        for equal in groups.values()
    )


def floats(values: Iterable[float]) -> tuple[float, ...]:
    """Numbers of any kind, also NumPy's, as plain floats."""
    return tuple(float(value) for value in values)
