"""A sweep as a document: where each strategy is at its best and its worst, and every point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from cprsim.plots.sweep import sweep_figures
from cprsim.present.document import Block, Column, Document, Picture, Section, Table, Words
from cprsim.present.provenance import file_listing, provenance
from cprsim.results import records_of
from cprsim.results.manifest import read_manifest
from cprsim.results.words import NO_NUMBER, count, hours, suited
from cprsim.sweeps import Extreme, Summary, SweepResult, summaries
from cprsim.sweeps.summary import OVERHEAD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 200  # of the table of all points; the rest is in sweep.csv
CAPTIONS = {
    "curves": "Overhead along the sweep",
    "map": "What the strategies cost beside the reference",
    "tornado": "How far each value moves the overhead",
}


def document_of_sweep(result: SweepResult) -> Document:
    """Everything about one sweep. Raises ResultError for an unreadable file."""
    found = summaries(result)
    manifest = read_manifest(result.path)
    axes = ", ".join(axis.key for axis in result.axes)

    figures = cache(lambda narrow: sweep_figures(result, narrow=narrow))

    def figure(name: str, narrow: bool) -> Figure:
        return figures(narrow)[name]

    pictures: list[Block] = [
        Picture(
            caption=CAPTIONS.get(name, name),
            alternative=(
                f"{CAPTIONS.get(name, name)}: overhead of each strategy in percent of useful time "
                f"over {axes}. The table of all points has the numbers."
            ),
            draw=partial(figure, name),
        )
        for name in figures(False)
    ]
    return Document(
        title=f"What becomes of the overhead: {result.name}",
        question=(
            f"How does the overhead of a job of {hours(result.useful_h)} of useful work change "
            f"with {axes}, over {count(result.n_points, 'point')}?"
        ),
        answer=_answer(result, found),
        sections=[
            Section("Where each strategy is at its best and its worst", [_extremes(result, found)]),
            Section("The sweep in pictures", pictures),
            Section("All points", _points(result)),
            Section(
                "The scenario", [file_listing(result.path / "scenario.yaml", "with the values")]
            ),
            Section("Where these numbers come from", provenance(manifest, result.path)),
        ],
    )


def _answer(result: SweepResult, found: Sequence[Summary]) -> list[str]:
    """Who costs less than the reference, and where; then how far each strategy's cost goes."""
    against = [_against(one) for one in found if one.strategy != result.reference]
    ranges = [
        f"{one.strategy} {_percent(one.lowest)} to {_percent(one.highest)}"
        for one in found
        if one.lowest is not None and one.highest is not None
    ]
    said = [f"Beside {result.reference}: {'; '.join(against)}."] if against else []
    if not ranges:
        return [*said, "At no point does every replication of any strategy finish."]
    return [*said, f"Overhead over the whole sweep, in % of useful time: {'; '.join(ranges)}."]


def _against(one: Summary) -> str:
    more = f", more at {one.n_more:,}" if one.n_more else ""
    return f"{one.strategy} surely costs less at {one.n_less:,} of {one.n_points:,} points{more}"


def _percent(extreme: Extreme) -> str:
    mean, low, high = suited(*(100 * value for value in (extreme.mean, extreme.low, extreme.high)))
    return f"{mean} % ({low} to {high})"


def _extremes(result: SweepResult, found: Sequence[Summary]) -> Table:
    return Table(
        caption=(
            "Overhead in % of useful time, with its 95 % interval, at the points where every "
            f"replication finishes; points at which it is surely below and above {result.reference}"
        ),
        columns=[
            Column("strategy", is_number=False),
            Column("lowest"),
            Column("at", is_number=False),
            Column("highest"),
            Column("at", is_number=False),
            Column("below at"),
            Column("above at"),
        ],
        rows=[
            [
                one.strategy,
                *_extreme(one.lowest),
                *_extreme(one.highest),
                *(
                    [NO_NUMBER, NO_NUMBER]
                    if one.strategy == result.reference
                    else [f"{one.n_less:,} of {one.n_points:,}", f"{one.n_more:,}"]
                ),
            ]
            for one in found
        ],
    )


def _extreme(extreme: Extreme | None) -> list[str]:
    if extreme is None:
        return [NO_NUMBER, "no point at which every replication finishes"]
    return [_percent(extreme), ", ".join(f"{k} {_said(v)}" for k, v in extreme.where.items())]


def _points(result: SweepResult) -> list[Block]:
    rows = result.of(OVERHEAD)
    names = [axis.column for axis in result.axes]
    table = Table(
        caption="Mean overhead in % of useful time, with its 95 % interval",
        columns=[
            Column("strategy", is_number=False),
            *(Column(name) for name in names),
            Column("overhead, %"),
            Column("95 % interval"),
        ],
        rows=[_point(row, names) for row in records_of(rows.head(MOST_ROWS))],
    )
    left = len(rows) - MOST_ROWS
    more = [Words([f"{left:,} further rows are in sweep.csv of the results folder."])]
    return [table, *(more if left > 0 else [])]


def _point(row: dict[str, Any], names: Sequence[str]) -> list[str]:
    mean, low, high = suited(*(100 * float(row[name]) for name in ("mean", "low", "high")))
    within = NO_NUMBER if NO_NUMBER in (low, high) else f"{low} to {high}"
    places = [_said(row[name]) for name in names]
    return [str(row["strategy"]), *places, mean, within]


def _said(value: Any) -> str:
    if pd.isna(value):
        return NO_NUMBER
    return f"{value:g}" if isinstance(value, float) else str(value)
