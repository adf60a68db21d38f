"""A reproduced result of a paper as a document: ours beside the paper's, judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cprsim.present.charts import chart_blocks
from cprsim.present.document import Block, Column, Document, Section, Table, Words
from cprsim.present.provenance import file_listing, provenance
from cprsim.reproduce.runner import Reproduced
from cprsim.reproduce.summary import Listing, Row
from cprsim.reproduce.verdicts import Finding
from cprsim.results.manifest import read_manifest
from cprsim.results.words import NO_NUMBER, count

HEADINGS = ("quantity", "paper", "provenance", "ours", "verdict", "inputs that we assumed")
MARKS = (
    "published: in the paper's abstract or poster; secondary: in a text that quotes it; derived: "
    "by arithmetic from these; recalled: remembered, not checked"
)


def document_of_reproduction(made: Reproduced) -> Document:
    """Everything about one reproduced result. Raises ResultError for an unreadable file."""
    summary = made.summary
    said: list[Block] = [_comparisons(summary.rows)] if summary.rows else []
    said += [Words(summary.notes)] if summary.notes else []
    inputs = sorted(made.path.glob("*.yaml"))
    return Document(
        title=summary.title,
        question=summary.question,
        answer=[_tally(summary.rows), *_misses(summary.rows)],
        sections=[
            Section("Ours beside the paper's", said),
            *(Section(chart.title, chart_blocks(chart)) for chart in summary.charts),
            *([Section("Tables", _tables(summary.listings))] if summary.listings else []),
            Section("The scenarios", [file_listing(path, "as it was read") for path in inputs]),
            Section(
                "Where these numbers come from", provenance(read_manifest(made.path), made.path)
            ),
        ],
    )


def overview_of_reproductions(made: Sequence[Reproduced]) -> Document:
    """All comparisons of several reproduced results in one table."""
    rows = [row for one in made for row in one.summary.rows]
    return Document(
        title=f"A paper's results again: {count(len(made), 'result')}",
        question="Which results of the paper come out again, and which do not?",
        answer=[_tally(rows)],
        sections=[Section("All verdicts", [_verdicts(made)])],
    )


def _tally(rows: Sequence[Row]) -> str:
    """How many comparisons came to which verdict, limits included, the most frequent first."""
    found = Counter(str(row.verdict) for row in _judged(rows))
    if not found:
        return "The paper has no number to compare with."
    parts = "; ".join(f"{n} {verdict}" for verdict, n in found.most_common())
    return f"Of {count(found.total(), 'comparison')} with the paper: {parts}."


def _judged(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.verdict.finding is not Finding.NOTHING]


def _misses(rows: Sequence[Row]) -> list[str]:
    missed = (Finding.NOT_CONSISTENT, Finding.NOT_REPRODUCED, Finding.OPEN)
    return [
        f"{row.quantity}: {row.paper} ({row.mark}) in the paper, {row.ours} here: {row.verdict}."
        for row in rows
        if row.verdict.finding in missed
    ]


def _comparisons(rows: Sequence[Row]) -> Table:
    return Table(
        caption=f"Quantities, with 95 % intervals where ours has noise. {MARKS}.",
        columns=[Column(heading, is_number=False) for heading in HEADINGS],
        rows=[
            [
                row.quantity,
                row.paper or NO_NUMBER,
                row.mark or NO_NUMBER,
                row.ours,
                str(row.verdict),
                "; ".join(row.free) or NO_NUMBER,
            ]
            for row in rows
        ],
    )


def _verdicts(made: Sequence[Reproduced]) -> Table:
    return Table(
        caption=f"Quantities that the paper has a number for, by result. {MARKS}.",
        columns=[
            Column(heading, is_number=False)
            for heading in ("quantity", "result", "paper", "provenance", "ours", "verdict")
        ],
        rows=[
            [row.quantity, one.name, row.paper, row.mark, row.ours, str(row.verdict)]
            for one in made
            for row in _judged(one.summary.rows)
        ],
    )


def _tables(listings: Sequence[Listing]) -> list[Block]:
    return [
        Table(
            one.title,
            [Column(heading, is_number=False) for heading in one.headings],
            _named(one.rows),
        )
        for one in listings
    ]


def _named(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Rows of which each has a name: an empty one is that of the row above."""
    named, name = [], NO_NUMBER
    for first, *rest in rows:
        name = first or name
        named.append([name, *rest])
    return named
