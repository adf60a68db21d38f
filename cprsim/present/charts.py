"""Charts that are kept as data: the figure, and its numbers as tables."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, nan

from cprsim.plots.chart import Chart, Panel
from cprsim.plots.draw_chart import chart_figure
from cprsim.present.document import Block, Picture, Table, Words, row_columns
from cprsim.records import NO_NUMBER
from cprsim.results.words import ends, significant, suited

MOST_ROWS = 60  # of a panel: a curve of more points is read off the figure


def chart_blocks(chart: Chart, name: str) -> list[Block]:
    """The figure, what its numbers are, and a table for each panel."""
    panels = "; ".join(
        f"{panel.title}: {panel.y_label} over {panel.x_label}" for panel in chart.panels
    )
    alternative = f"{chart.subtitle} {panels}. The numbers stand in the tables below."
    picture = Picture(chart.title, alternative, lambda: chart_figure(chart), name)
    return [picture, Words([chart.subtitle]), *map(_table, chart.panels)]


def _table(panel: Panel) -> Table:
    rows = list(_rows(panel))
    step = max(1, ceil(len(rows) / MOST_ROWS))
    cut = "" if step == 1 else f"; one of {step} of the {len(rows):,} values"
    bands = [
        [band.label, "all along", NO_NUMBER, ends(band.low, band.high)]
        if band.low < band.high
        else [band.label, "all along", significant(band.low), NO_NUMBER]
        for band in panel.bands
    ]
    headings = "series", panel.x_label or "case", panel.y_label or "value", "95 % interval"
    return Table(
        f"{panel.title or panel.y_label}{cut}", row_columns(*headings), [*rows[::step], *bands]
    )


def _rows(panel: Panel) -> Iterator[list[str]]:
    for series in panel.series:
        none = (nan,) * len(series.y)
        for x, *values in zip(
            series.x, series.y, series.low or none, series.high or none, strict=True
        ):
            value, low, high = suited(*values)
            x_text = x if isinstance(x, str) else significant(x)
            interval = NO_NUMBER if low == high else f"{low} to {high}"
            yield [series.label, x_text, value, interval]
