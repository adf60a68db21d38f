"""A selection of ``cprsim select`` as a document: what to run, within which limit, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

from cprsim.plots.selection import selection_figure
from cprsim.present.document import Block, Column, Document, Listing, Picture, Section, Table, Words
from cprsim.present.provenance import file_listing, provenance
from cprsim.report.selection_report import asked_of, entries_text, every
from cprsim.report.selection_sentences import (
    decision,
    drawn,
    flips,
    formula,
    left_out,
    warnings,
)
from cprsim.results.manifest import read_manifest
from cprsim.results.words import NO_NUMBER, hours, percent, portion, with_interval
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.folder import read_selection
from cprsim.selector.words import decimals, quantity_of

HEADINGS = (
    "saves",
    "overhead, %",
    "less than full recovery, % points",
    "PLS",
    "expected loss",
    "its upper bound",
)


OF_COSTS = HEADINGS[:3]  # where nothing loses samples


@dataclass(frozen=True, slots=True)
class Selected:
    """A selection as read from its folder."""

    path: Path
    manifest: Mapping[str, Any]
    selection: Selection

    @property
    def name(self) -> str:
        """Of the scenario."""
        return str(self.manifest["name"]).removesuffix("-select")


def load_selected(folder: Path) -> Selected:
    """Read a finished selection. Raises ResultError where it is unfinished or damaged."""
    manifest = read_manifest(folder)
    return Selected(folder, manifest, read_selection(folder))


def document_of_selection(made: Selected) -> Document:
    """Everything about one selection. Raises ResultError for an unreadable file."""
    chosen = made.selection
    why: list[Block] = [
        Words(
            [
                *formula(chosen),
                *flips(chosen),
                *drawn(chosen),
                *left_out(chosen),
            ]
        )
    ]
    return Document(
        title=f"What to run: {made.name}",
        question=(
            f"How should a job of {hours(chosen.useful_h)} of useful work recover from failures, "
            f"and how often save? {asked_of(chosen)}"
        ),
        answer=[*decision(chosen), *warnings(chosen)],
        sections=[
            Section("What there is to choose from", [_picture(made), _table(chosen)]),
            Section("How to run it", [Listing("For the scenario", entries_text(chosen))]),
            Section("What the decision rests on", why),
            Section("The scenario", [file_listing(made.path / "scenario.yaml", "as it was read")]),
            Section("Where these numbers come from", provenance(made.manifest, made.path)),
        ],
    )


def _picture(made: Selected) -> Picture:
    against, line = "the number of saves", "over the number of saves, with the choice marked"
    if made.selection.limited:
        against = quantity_of(made.selection.limit)
        line = (
            f"over the upper bound of the {against}, from many saves to none, with full recovery, "
            "the limit and the choice marked"
        )
    return Picture(
        caption=f"Overhead against {against}",
        alternative=(
            f"A line per strategy: overhead in percent of useful time {line}. The table below has "
            "the strategies at their best."
        ),
        draw=lambda narrow: selection_figure(made.selection, made.name, narrow=narrow),
    )


def _table(selection: Selection) -> Table:
    table = _whole_table(selection)
    if selection.limited:
        return table
    n = 1 + len(OF_COSTS)
    return replace(
        table,
        caption="Each strategy at its best; ± the half-width of the 95 % interval.",
        columns=table.columns[:n],
        rows=[row[:n] for row in table.rows],
    )


def _whole_table(selection: Selection) -> Table:
    curve = "" if selection.curve is None else f" Staleness curve: {selection.curve}."
    return Table(
        caption=(
            f"Full recovery at its best, each strategy at the best interval that keeps the limit, "
            f"and the paper's formula; ± the half-width of the 95 % interval.{curve}"
        ),
        columns=[
            Column("strategy", is_number=False),
            *(Column(heading) for heading in HEADINGS),
            Column("keeps the limit", is_number=False),
        ],
        rows=[
            _row(selection, selection.full, "full recovery"),
            *(
                [name, "no interval that is worth its saves keeps the limit", *[NO_NUMBER] * 6]
                if one is None
                else _row(selection, one, name)
                for name, one in selection.best.items()
            ),
            *(_row(selection, one, f"{one.strategy}, {one.rule}") for one in selection.formula),
        ],
    )


def _row(selection: Selection, one: Candidate, name: str) -> list[str]:
    digits, benefit = decimals(selection.limit.most), one.benefit
    name = f"{name} (recommended)" if one is selection.chosen else name
    if one.finished_fraction < 1:
        return [name, every(one), f"only {percent(one.finished_fraction)} finish", *[NO_NUMBER] * 5]
    same = one is selection.full or isnan(benefit.mean)
    return [
        name,
        every(one),
        with_interval(100 * one.overhead.mean, 100 * one.overhead.half_width),
        NO_NUMBER if same else with_interval(100 * benefit.mean, 100 * benefit.half_width),
        NO_NUMBER if one is selection.full else portion(one.pls.mean),
        with_interval(one.loss.mean, one.loss.half_width, at_least=digits),
        f"{one.held:.{digits}f}",
        "yes" if one.keeps else "no",
    ]
