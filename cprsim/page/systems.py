"""A comparison of ``cprsim compare-systems`` as a document: which system, and why."""

from __future__ import annotations

from collections.abc import Sequence

from cprsim.compare_systems import Comparison, Standing, standings
from cprsim.compare_systems.words import intervals_in_words
from cprsim.plots.systems import systems_figure
from cprsim.present.document import Column, Document, Listing, Picture, Section, Table, Words
from cprsim.present.provenance import file_listing, provenance
from cprsim.report.systems_report import (
    answer,
    careful,
    entries_text,
    not_compared,
    tables_of,
)
from cprsim.results.words import hours

CAPTIONS = {  # by the first heading of a table
    "system": "What each costs and takes; ± the half-width of the 95 % interval, of paired "
    "differences where it is more than the best",
    "of which, %": "Where the hours go, in % of useful time",
    "lost at most\nby": "Progress lost at most by a failure of each kind, and the bytes "
    "that saves move",
}


def document_of_systems(comparison: Comparison) -> Document:
    """Everything about one comparison. Raises ResultError for an unreadable file."""
    found, result = standings(comparison), comparison.result
    others = not_compared(comparison)
    return Document(
        title=f"Which recovery system: {comparison.name}",
        question=(
            f"Which recovery system costs a job of {hours(result.useful_h)} of useful work on "
            f"{result.n_nodes} nodes least, {intervals_in_words(comparison)}?"
        ),
        answer=[*answer(found), *careful(comparison, found)],
        sections=[
            Section("All that can run the job", [_picture(comparison), *_tables(found)]),
            *([Section("What can't run it", [Words(others)])] if others else []),
            Section("How to run them", [Listing("For the scenario", entries_text(found))]),
            Section(
                "The scenario", [file_listing(result.path / "scenario.yaml", "as it was read")]
            ),
            Section("Where these numbers come from", provenance(result.manifest, result.path)),
        ],
    )


def _picture(comparison: Comparison) -> Picture:
    return Picture(
        caption="Overhead by system and cause",
        alternative=(
            "A bar per system, the cheapest on top: mean overhead in percent of useful time, by "
            "cause, with the 95 % interval of the total. The tables below have the numbers."
        ),
        draw=lambda narrow: systems_figure(comparison, narrow=narrow),
    )


def _tables(found: Sequence[Standing]) -> list[Table]:
    return [
        Table(
            caption=CAPTIONS[headings[0]],
            columns=[
                Column(heading.replace("\n", " "), is_number=place > 0)
                for place, heading in enumerate(headings)
            ],
            rows=rows,
        )
        for headings, *rows in tables_of(found)
    ]
