"""A map of ``cprsim compare-systems --map`` as a document: which system is cheapest where."""

from __future__ import annotations

from cprsim.compare_systems.map_folder import SystemsMap
from cprsim.plots.systems_map import systems_map_figure
from cprsim.present.document import Column, Document, Picture, Section, Table
from cprsim.present.provenance import file_listing, provenance
from cprsim.report.systems_map_report import answer
from cprsim.results.words import NO_NUMBER, count, hours, suited

MOST_ROWS = 200


def document_of_map(made: SystemsMap) -> Document:
    """Everything about one map. Raises ResultError for an unreadable file."""
    first, second = made.axes
    return Document(
        title=f"Which recovery system where: {made.name}",
        question=(
            f"Which recovery system costs a job of {hours(made.useful_h)} of useful work least, by "
            f"{first.key} and {second.key}, over {count(len(made.cells), 'point')}?"
        ),
        answer=answer(made),
        sections=[
            Section("The map", [_picture(made)]),
            Section("All points", [_table(made)]),
            Section("The scenario", [file_listing(made.path / "scenario.yaml", "with the values")]),
            Section("Where these numbers come from", provenance(made.manifest, made.path)),
        ],
    )


def _picture(made: SystemsMap) -> Picture:
    return Picture(
        caption="The cheapest system at each point",
        alternative=(
            "A cell per point with the mark of the cheapest system, hatched where another can't "
            "be told from it. The table below names both."
        ),
        draw=lambda narrow: systems_map_figure(made, narrow=narrow),
    )


def _table(made: SystemsMap) -> Table:
    first, second = made.axes
    rows = []
    for row in list(made.rows())[:MOST_ROWS]:
        mean = row["overhead_fraction"]
        shown = NO_NUMBER
        if mean is not None:
            shown = suited(100 * mean, 100 * row["low"], 100 * row["high"])[0]
        others = ", ".join(row["cant_be_told"]) or NO_NUMBER
        where = (f"{row[first.column]:g}", f"{row[second.column]:g}")
        rows.append([*where, row["best"] or NO_NUMBER, shown, others])
    more = len(made.cells) - len(rows)
    cut = f"; {more} more are in map.csv" if more > 0 else ""
    return Table(
        caption=f"The cheapest at each point{cut}",
        columns=[
            Column(first.column),
            Column(second.column),
            Column("cheapest", is_number=False),
            Column("overhead, %"),
            Column("can't be told from it", is_number=False),
        ],
        rows=rows,
    )
