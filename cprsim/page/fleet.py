"""A fleet as a document: the recommendation, what each option costs, and what would reverse it."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from cprsim.estimate import Estimate
from cprsim.fleet.cells import STATISTICS
from cprsim.fleet.folder import FleetResult
from cprsim.plots.fleet import fleet_figures, shown_options
from cprsim.present.document import Block, Column, Document, Picture, Section, Table, Words
from cprsim.present.provenance import file_listing, provenance
from cprsim.report.fleet_report import (
    cost_rows,
    energy,
    heading,
    knee_sentences,
    recommendation,
    what_costs,
)
from cprsim.results.manifest import read_manifest
from cprsim.results.words import NO_NUMBER, suited

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTIONS = {"fleet": "Overheads, and what is not useful work", "curve": "Over what was varied"}
IN_PERCENT = ("overhead", "p50", "p90", "p95", "utilisation", "pls")
MOST_ROWS = 200


def document_of_fleet(result: FleetResult) -> Document:
    """Everything about one fleet. Raises ResultError for an unreadable file."""
    figures = cache(lambda narrow: fleet_figures(result, narrow=narrow))

    def figure(name: str, narrow: bool) -> Figure:
        return figures(narrow)[name]

    pictures: list[Block] = [
        Picture(
            caption=CAPTIONS[name],
            alternative=f"{CAPTIONS[name]}; the tables have the numbers.",
            draw=partial(figure, name),
        )
        for name in figures(False)
    ]
    return Document(
        title=f"What failures cost a fleet: {result.name}",
        question=f"What should {result.n_jobs:,} jobs on one cluster do about failures?",
        answer=[*recommendation(result), *knee_sentences(result)],
        sections=[
            Section("What was simulated", [Words([heading(result)])]),
            Section("All options", [_options(result)]),
            Section("What a month costs", [_costs(result), *_words(energy(result))]),
            Section("In pictures", pictures),
            Section(
                "The scenario", [file_listing(result.path / "scenario.yaml", "with the values")]
            ),
            Section(
                "Where these numbers come from",
                provenance(read_manifest(result.path), result.path),
            ),
        ],
    )


def _words(said: list[str]) -> list[Block]:
    return [Words(said)] if said else []


def _options(result: FleetResult) -> Table:
    return Table(
        caption="Each option, with 95 % intervals where they are known; shares in %. "
        + "; ".join(f"{name}: {meaning}" for name, meaning in STATISTICS.items()),
        columns=[Column("option", is_number=False), *map(Column, STATISTICS)],
        rows=[
            [one.name, *(_cell(name, one.statistics[name]) for name in STATISTICS)]
            for one in result.options[:MOST_ROWS]
        ],
    )


def _cell(name: str, interval: Estimate) -> str:
    scale = 100 if name in IN_PERCENT else 1
    mean, low, high = suited(*(scale * v for v in (interval.mean, interval.low, interval.high)))
    return mean if NO_NUMBER in (low, high) else f"{mean} ({low} to {high})"


def _costs(result: FleetResult) -> Table:
    return Table(
        caption=what_costs(result).rstrip(":"),
        columns=[Column("part", is_number=False), *(Column(o.name) for o in shown_options(result))],
        rows=[list(row) for row in cost_rows(result)],
    )
