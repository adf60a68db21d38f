"""A reproduced result of a paper: ours beside the paper's, judged; and the same in documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cprsim.present.charts import chart_blocks
from cprsim.present.document import (
    Block,
    Cell,
    Column,
    Document,
    ListingBlock,
    Section,
    Table,
    Words,
    word_columns,
)
from cprsim.present.markdown import raw_table
from cprsim.present.provenance import origin
from cprsim.records import NO_NUMBER
from cprsim.reproduce.runner import COLUMNS, Reproduced, read_reproduced
from cprsim.reproduce.study import Listing, Summary
from cprsim.reproduce.verdicts import Claim, Finding
from cprsim.results.manifest import MANIFEST, read_manifest
from cprsim.results.words import count

MARKS = (
    "published: in the paper's abstract or poster; secondary: in a text that quotes it; derived: "
    "by arithmetic from these; recalled: remembered, not checked"
)


def reproduced_blocks(made: Reproduced) -> list[Block]:
    """What a terminal shows: comparisons, further tables and notes, and where the figure lies."""
    found = made.summary
    return [
        Words([f"{made.name}: {found.title}", found.question]),
        *([_comparisons(found.rows)] if found.rows else []),
        *(block for one in found.listings for block in (Words([one.title]), _table(one))),
        *(Words([note]) for note in found.notes),
        ListingBlock("", "\n".join(map(str, made.figures or (made.path,)))),
    ]


# ------------------------------------------------------------------------------ a page


def document_of_reproduction(made: Reproduced) -> Document:
    """Everything about one reproduced result. Raises ResultError for an unreadable file."""
    summary = made.summary
    blocks: list[Block] = [_comparisons(summary.rows)] if summary.rows else []
    inputs = sorted(path.name for path in made.path.glob("*.yaml"))
    return Document(
        title=summary.title,
        question=summary.question,
        answer=[_tally(summary.rows), *_misses(summary.rows)],
        sections=[
            Section("Ours beside the paper's", [*blocks, Words(summary.notes)]),
            *(Section(chart.title, chart_blocks(chart)) for chart in summary.charts),
            Section("Tables", [*map(_table, summary.listings)]),
            *origin(read_manifest(made.path), made.path, scenarios=inputs),
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


def _comparisons(rows: Sequence[Claim]) -> Table:
    return Table(
        caption=f"Quantities, with 95 % intervals where ours has noise. {MARKS}.",
        columns=[
            *word_columns(*COLUMNS),
            Column("inputs that we assumed", is_number=False, in_full=True),
        ],
        rows=[[*map(_cell, _cells(row)), _cell("; ".join(row.free))] for row in rows],
    )


def _cells(row: Claim) -> tuple[str, ...]:
    return (row.quantity, row.paper, row.mark, row.ours, str(row.verdict))


def _cell(text: str) -> Cell:
    return Cell(text or NO_NUMBER, text)


def _verdicts(made: Sequence[Reproduced]) -> Table:
    return Table(
        caption=f"Quantities that the paper has a number for, by result. {MARKS}.",
        columns=word_columns("quantity", "result", "paper", "provenance", "ours", "verdict"),
        rows=[
            [row.quantity, one.name, row.paper, row.mark, row.ours, str(row.verdict)]
            for one in made
            for row in _judged(one.summary.rows)
        ],
    )


def _table(listing: Listing) -> Table:
    """A further table; on a page a name that is empty is that of the row above."""
    rows: list[list[str | Cell]] = []
    name = NO_NUMBER
    for first, *rest in listing.rows:
        name = first or name
        rows.append([Cell(name, first), *rest])
    return Table(listing.title, word_columns(*listing.headings), rows)


# ------------------------------------------------------------------------------ documents


def page(kept: Path, order: Sequence[str], *, beside: Path) -> str:
    """The results that are kept in a folder, as sections of a document."""
    results = [read_reproduced(kept / name) for name in order if (kept / name / MANIFEST).is_file()]
    return "\n\n".join([_overview(results), *(_section(made, beside) for made in results)])


def _overview(results: Sequence[Reproduced]) -> str:
    """How many comparisons of each result came to which finding."""
    findings = [finding for finding in Finding if finding is not Finding.NOTHING]
    lines = []
    for made in results:
        found = Counter(row.verdict.finding for row in made.summary.rows)
        counts = [str(found[finding] or "") for finding in findings]
        title = made.summary.title
        lines.append((f"[{title}](#{_anchor(title)})", f"`{made.name}`", *counts))
    return raw_table(("result", "`cprsim reproduce`", *map(str, findings)), lines)


def _anchor(title: str) -> str:
    """The name by which a link leads to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _section(made: Reproduced, beside: Path) -> str:
    return "\n\n".join(_paragraphs(made.name, made.summary, made, beside))


def _paragraphs(name: str, summary: Summary, made: Reproduced, beside: Path) -> Iterator[str]:
    yield f"## {summary.title}"
    yield f"`cprsim reproduce {name}`. {summary.question}"
    if summary.rows:
        yield raw_table(COLUMNS, [_cells(row) for row in summary.rows])
    for path in made.figures:
        link = path.resolve().relative_to(beside.resolve().parent)
        yield f"![{summary.title}](../{link.as_posix()})"
    yield from _tables(summary)


def tables(kept: Path) -> str:
    """The tables of one kept result and what is said with them, for another document."""
    return "\n\n".join(_tables(read_reproduced(kept).summary))


def _tables(summary: Summary) -> Iterator[str]:
    for listing in summary.listings:
        yield listing.title
        yield raw_table(listing.headings, listing.rows)
    yield from summary.notes
