"""Reproduced results of papers: ours, the paper's and the verdict; also for documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, nan
from typing import Any

import pandas as pd

from cprsim.commands.reproduce.study import STUDY_COLUMNS, Study, Summary
from cprsim.commands.reproduce.verdicts import Claim, Finding
from cprsim.job.records import NO_NUMBER
from cprsim.pages.answer import Answer
from cprsim.pages.chart import Chart, Panel, Series, chart_figure
from cprsim.pages.document import Block, Document, Picture, Section, Table, Words
from cprsim.pages.provenance import origin
from cprsim.results.folder import read_manifest
from cprsim.results.words import count, ends, significant, suited

HOW_KNOWN = (
    "published: in the authors' text, poster or code; secondary: in a text that quotes it; "
    "derived: by arithmetic from these; recalled: remembered, not checked"
)
MOST_POINTS_OF_TABLE = 60  # of a panel: a curve of more points is read off the figure
FINDINGS = [finding for finding in Finding if finding is not Finding.NOTHING]


def answer_of_list(studies: Iterable[Study]) -> Answer:
    """The results that can be reproduced."""
    rows = [[study.name, study.paper, study.known_as, study.shows] for study in studies]
    sentence = (
        f"There are {len(rows)} results to reproduce. Figures and tables of papers are named by "
        "their content, as their figure and table numbers were not at hand."
    )
    table = _words(
        f"Provenance of the paper's numbers: {HOW_KNOWN}",
        ["name", "of the paper", "provenance", "what it shows"],
        rows,
    )
    document = Document("Results of papers", "What can be made again?", [sentence], table=table)
    frame = pd.DataFrame(rows, columns=["name", "paper", "known_as", "shows"])
    return Answer("studies", "results of papers", lambda: document, {"studies": frame})


def answer_of_reproductions(results: Sequence[Summary], **about: Any) -> Answer:
    """One reproduced result, or several."""
    several = len(results) > 1
    claims = [
        {
            "result": result.name,
            "quantity": row.quantity,
            "paper": row.paper,
            "provenance": row.mark,
            "ours": row.ours,
            "unit": row.unit,
            "value": row.value,
            "value_low": row.low,
            "value_high": row.high,
            "finding": str(row.verdict.finding),
            "verdict": str(row.verdict),
            "assumed": "; ".join(row.free),
        }
        for result in results
        for row in result.rows
    ]
    return Answer(
        "reproduction",
        count(len(results), "result") if several else results[0].name,
        lambda: (
            replace(overview_of_reproductions(results), parts=[*map(_document, results)])
            if several
            else _document(results[0])
        ),
        frames={"claims": pd.DataFrame(claims)},
        values={"tables": {result.name: _tables(result) for result in results}},
        **about,
    )


def _tables(result: Summary) -> dict[str, list[dict[str, str]]]:
    return {
        listing["title"]: [
            dict(zip(listing["headings"], row, strict=True)) for row in listing["rows"]
        ]
        for listing in result.listings
    }


# ------------------------------------------------------------------------------ documents


def _document(result: Summary) -> Document:
    """Everything about one reproduced result. Raises ResultError for an unreadable file."""
    assumed = [f"{row.quantity}: {'; '.join(row.free)}." for row in result.rows if row.free]
    inputs = sorted(path.name for path in result.path.glob("*.yaml"))
    return Document(
        title=result.title,
        question=result.question,
        answer=[_tally(result.rows)],
        table=_words(
            f"Quantities, with 95 % intervals where ours has noise. {HOW_KNOWN}.",
            STUDY_COLUMNS,
            [[cell or NO_NUMBER for cell in row.cells] for row in result.rows],
        )
        if result.rows
        else None,
        remarks=[*_misses(result.rows), *result.notes],
        sections=[
            *(Section(chart.title, _chart_blocks(chart)) for chart in result.charts),
            Section("Tables", [*map(_table, result.listings)]),
            Section("Inputs that we assumed", [Words(assumed)]),
            *origin(read_manifest(result.path), result.path, scenarios=inputs),
        ],
    )


def _chart_blocks(chart: Chart) -> list[Block]:
    """The figure, its caption, and a table for each panel."""
    panels = "; ".join(
        f"{panel.title}: {panel.y_label} over {panel.x_label}" for panel in chart.panels
    )
    alternative = f"{chart.subtitle} {panels}. The numbers stand in the tables below."
    picture = Picture(chart.title, alternative, lambda: chart_figure(chart), "figure")
    return [picture, Words([chart.subtitle]), *map(_panel_table, chart.panels)]


def _with_total(series: Sequence[Series]) -> list[Series]:
    """The series of a panel; a stack's interval, which is of its total, has a row of its own."""
    parts = [one for one in series if one.kind == "stack"]
    if not parts or not parts[-1].low:
        return [*series]
    last = parts[-1]
    heights = pd.concat([pd.Series(part.y, part.x) for part in parts]).groupby(level=0).sum()
    total = replace(last, label="all parts", y=tuple(heights[[*last.x]]))
    bare = [replace(one, low=(), high=()) if one is last else one for one in series]
    return [*bare, total]


def _panel_table(panel: Panel) -> Table:
    rows = []
    for series in _with_total(panel.series):
        none = (nan,) * len(series.y)
        points = zip(series.x, series.y, series.low or none, series.high or none, strict=True)
        for x, *of_y in points:
            value, low, high = suited(*of_y)
            interval = NO_NUMBER if low == high else f"{low} to {high}"
            at = x if isinstance(x, str) else significant(x)
            rows.append([series.label, at, value, interval])
    step = max(1, ceil(len(rows) / MOST_POINTS_OF_TABLE))
    cut = "" if step == 1 else f"; one of {step} of the {len(rows):,} values"
    bands = [
        [band.label, "all along", NO_NUMBER, ends(band.low, band.high)]
        if band.low < band.high
        else [band.label, "all along", significant(band.low), NO_NUMBER]
        for band in panel.bands
    ]
    has_names = any(isinstance(x, str) for series in panel.series for x in series.x)
    x, y = panel.x_label or "case", panel.y_label or "value"
    headings, names = ["series", x, y, "95 % interval"], [x] * has_names
    return Table(f"{panel.title or panel.y_label}{cut}", headings, [*rows[::step], *bands], names)


def overview_of_reproductions(results: Sequence[Summary]) -> Document:
    """All comparisons of several reproduced results in one table."""
    rows = [row for result in results for row in result.rows]
    verdicts = _words(
        f"Quantities that the paper has a number for, by result. {HOW_KNOWN}.",
        ["result", *STUDY_COLUMNS],
        [[result.name, *row.cells] for result in results for row in _judged(result.rows)],
        grouped=True,
    )
    return Document(
        title=f"A paper's results again: {count(len(results), 'result')}",
        question="Which results of the paper come out again, and which do not?",
        answer=[_tally(rows)],
        table=Table(
            "Comparisons by result and finding",
            ["result", *map(str, FINDINGS)],
            [
                [result.name, *(str(found[finding] or "") for finding in FINDINGS)]
                for result in results
                for found in [Counter(row.verdict.finding for row in result.rows)]
            ],
        ),
        remarks=_misses(rows),
        sections=[Section("All verdicts", [verdicts])],
    )


def _tally(rows: Sequence[Claim]) -> str:
    """How many comparisons came to which verdict, limits included, the most frequent first."""
    verdicts = Counter(str(row.verdict) for row in _judged(rows))
    if not verdicts:
        return "The paper has no number to compare with."
    parts = "; ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
    return f"Of {count(verdicts.total(), 'comparison')} with the paper: {parts}."


def _judged(rows: Sequence[Claim]) -> list[Claim]:
    return [row for row in rows if row.verdict.finding is not Finding.NOTHING]


def _misses(rows: Sequence[Claim]) -> list[str]:
    missed = (Finding.NOT_CONSISTENT, Finding.NOT_REPRODUCED, Finding.OPEN)
    return [
        f"{row.quantity}: {row.paper} ({row.mark}) in the paper, {row.ours} here: {row.verdict}."
        for row in rows
        if row.verdict.finding in missed
    ]


def _table(listing: Mapping[str, Any]) -> Table:
    """A further table; a name that is empty is that of the row above."""
    rows: list[list[str]] = []
    for first, *cells in listing["rows"]:
        rows.append([first or (rows[-1][0] if rows else NO_NUMBER), *cells])
    return _words(listing["title"], listing["headings"], rows)


def _words(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, grouped: bool = False
) -> Table:
    """A table whose columns are all words."""
    return Table(caption, headings, rows, headings, grouped)
