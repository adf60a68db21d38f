"""Charts that are kept as data: the figure, and its numbers as tables."""

from __future__ import annotations

from math import ceil, isnan, nan

from cprsim.plots.chart import Chart, Panel, Series
from cprsim.plots.draw_chart import chart_figure
from cprsim.present.document import Block, Picture, Table, Words, row_columns
from cprsim.records import NO_NUMBER
from cprsim.results.words import ends, significant, suited

MOST_ROWS = 60  # of a panel: a curve of more points is read off the figure


def chart_blocks(chart: Chart, name: str = "") -> list[Block]:
    """The figure under its name, what its numbers are, and a table for each panel."""
    panels = "; ".join(f"{_what(one)} over {one.x_label}" for one in chart.panels)
    picture = Picture(
        caption=chart.title,
        alternative=f"{chart.subtitle} {panels}. The numbers stand in the tables below.",
        draw=lambda: chart_figure(chart),
        name=name,
    )
    return [picture, Words([chart.subtitle]), *map(_table, chart.panels)]


def _what(panel: Panel) -> str:
    """Title and label of y, once where they are the same."""
    both = (panel.title, panel.y_label)
    return panel.title if panel.title == panel.y_label else ": ".join(filter(None, both))


def _table(panel: Panel) -> Table:
    rows = [row for one in panel.series for row in _rows(one)]
    bands = [[one.label, "all along", _ends(one.low, one.high), NO_NUMBER] for one in panel.bands]
    step = max(1, ceil(len(rows) / MOST_ROWS))
    cut = "" if step == 1 else f"; one of {step} of the {len(rows):,} values"
    return Table(
        caption=f"{_what(panel)}{cut}",
        columns=row_columns(
            "series", panel.x_label or "case", panel.y_label or "value", "95 % interval"
        ),
        rows=[*rows[::step], *bands],
    )


def _rows(one: Series) -> list[list[str]]:
    none = (nan,) * len(one.y)
    ends = zip(one.low or none, one.high or none, strict=True)
    return [
        [
            one.label,
            x if isinstance(x, str) else significant(x),
            *_with_interval(y, low, high),
        ]
        for x, y, (low, high) in zip(one.x, one.y, ends, strict=True)
    ]


def _ends(low: float, high: float) -> str:
    return significant(low) if low == high else ends(low, high)


def _with_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """The value and its interval, with digits that suit the interval."""
    shown, least, most = suited(value, low, high)
    if isnan(low) or isnan(high):
        return shown, NO_NUMBER
    return shown, least if low == high else f"{least} to {most}"
