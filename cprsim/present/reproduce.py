"""Reproduced results of papers: ours beside the paper's, judged; and the same in documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import pandas as pd

from cprsim.present.answer import Answer
from cprsim.present.charts import chart_blocks
from cprsim.present.document import Document, Section, Table, Words, row_columns, word_columns
from cprsim.present.provenance import origin
from cprsim.records import NO_NUMBER
from cprsim.results.folder import read_manifest
from cprsim.results.words import count
from cprsim.studies.study import COLUMNS, Listing, Reproduced, Study
from cprsim.studies.verdicts import Claim, Finding

MARKS = (
    "published: in the paper's abstract or poster; secondary: in a text that quotes it; derived: "
    "by arithmetic from these; recalled: remembered, not checked"
)
FINDINGS = [one for one in Finding if one is not Finding.NOTHING]


def answer_of_list(studies: Iterable[Study]) -> Answer:
    """The results that can be made again."""
    rows = [[one.name, one.shows] for one in studies]
    said = f"There are {len(rows)} results to make again."
    table = Table("", word_columns("name", "what it shows"), rows)
    document = Document("Results of papers", "What can be made again?", [said], table=table)
    frame = pd.DataFrame(rows, columns=["name", "shows"])
    return Answer("studies", "results of papers", lambda: document, {"studies": frame})


def answer_of_reproductions(made: Sequence[Reproduced], **about: Any) -> Answer:
    """One reproduced result, or several."""
    several = len(made) > 1
    claims = [_claim(one.name, row) for one in made for row in one.summary.rows]
    return Answer(
        "reproduction",
        count(len(made), "result") if several else made[0].name,
        lambda: (
            replace(overview_of_reproductions(made), parts=[*map(_document, made)])
            if several
            else _document(made[0])
        ),
        frames={
            "claims": pd.DataFrame(claims),
            "charts": pd.DataFrame([point for one in made for point in _points(one)]),
        },
        values={"tables": {one.name: _tables(one) for one in made}},
        **about,
    )


def _claim(name: str, row: Claim) -> dict[str, Any]:
    return {
        "result": name,
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


def _points(made: Reproduced) -> Iterator[dict[str, Any]]:
    """What the figures of a result show."""
    for chart in made.summary.charts:
        for panel in chart.panels:
            axes = {"result": made.name, "chart": chart.title, "panel": panel.title}
            for one in panel.series:
                none = (nan,) * len(one.y)
                points = zip(one.x, one.y, one.low or none, one.high or none, strict=True)
                for x, y, low, high in points:
                    yield axes | {"series": one.label, "x": x, "y": y, "low": low, "high": high}
            for band in panel.bands:
                yield axes | {"series": band.label, "low": band.low, "high": band.high}


def _tables(made: Reproduced) -> dict[str, list[dict[str, str]]]:
    return {
        one.title: [dict(zip(one.headings, row, strict=True)) for row in one.rows]
        for one in made.summary.listings
    }


# ------------------------------------------------------------------------------ documents


def _document(made: Reproduced) -> Document:
    """Everything about one reproduced result. Raises ResultError for an unreadable file."""
    summary = made.summary
    assumed = [f"{row.quantity}: {'; '.join(row.free)}." for row in summary.rows if row.free]
    inputs = sorted(path.name for path in made.path.glob("*.yaml"))
    return Document(
        title=summary.title,
        question=summary.question,
        answer=[_tally(summary.rows)],
        table=_comparisons(summary.rows) if summary.rows else None,
        remarks=[*_misses(summary.rows), *summary.notes],
        sections=[
            *(Section(chart.title, chart_blocks(chart, "figure")) for chart in summary.charts),
            Section("Tables", [*map(_table, summary.listings)]),
            Section("Inputs that we assumed", [Words(assumed)]),
            *origin(read_manifest(made.path), made.path, scenarios=inputs),
        ],
    )


def overview_of_reproductions(made: Sequence[Reproduced]) -> Document:
    """All comparisons of several reproduced results in one table."""
    rows = [row for one in made for row in one.summary.rows]
    verdicts = Table(
        f"Quantities that the paper has a number for, by result. {MARKS}.",
        word_columns("result", *COLUMNS),
        [[one.name, *_cells(row)] for one in made for row in _judged(one.summary.rows)],
        grouped=True,
    )
    return Document(
        title=f"A paper's results again: {count(len(made), 'result')}",
        question="Which results of the paper come out again, and which do not?",
        answer=[_tally(rows)],
        table=Table(
            "Comparisons by result and finding",
            row_columns("result", *map(str, FINDINGS)),
            [[one.name, *_counts(one)] for one in made],
        ),
        remarks=_misses(rows),
        sections=[Section("All verdicts", [verdicts])],
    )


def _tally(rows: Sequence[Claim]) -> str:
    """How many comparisons came to which verdict, limits included, the most frequent first."""
    found = Counter(str(row.verdict) for row in _judged(rows))
    if not found:
        return "The paper has no number to compare with."
    parts = "; ".join(f"{n} {verdict}" for verdict, n in found.most_common())
    return f"Of {count(found.total(), 'comparison')} with the paper: {parts}."


def _judged(rows: Sequence[Claim]) -> list[Claim]:
    return [row for row in rows if row.verdict.finding is not Finding.NOTHING]


def _misses(rows: Sequence[Claim]) -> list[str]:
    missed = (Finding.NOT_CONSISTENT, Finding.NOT_REPRODUCED, Finding.OPEN)
    return [
        f"{row.quantity}: {row.paper} ({row.mark}) in the paper, {row.ours} here: {row.verdict}."
        for row in rows
        if row.verdict.finding in missed
    ]


def _counts(made: Reproduced) -> list[str]:
    """How many comparisons came to each finding."""
    found = Counter(row.verdict.finding for row in made.summary.rows)
    return [str(found[finding] or "") for finding in FINDINGS]


def _comparisons(rows: Sequence[Claim]) -> Table:
    return Table(
        f"Quantities, with 95 % intervals where ours has noise. {MARKS}.",
        word_columns(*COLUMNS),
        [[cell or NO_NUMBER for cell in _cells(row)] for row in rows],
    )


def _cells(row: Claim) -> tuple[str, ...]:
    return (row.quantity, row.paper, row.mark, row.ours, str(row.verdict))


def _table(listing: Listing) -> Table:
    """A further table; a name that is empty is that of the row above."""
    rows: list[list[str]] = []
    for first, *rest in listing.rows:
        rows.append([first or (rows[-1][0] if rows else NO_NUMBER), *rest])
    return Table(listing.title, word_columns(*listing.headings), rows)
