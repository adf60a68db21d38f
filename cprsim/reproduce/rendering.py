"""A reproduced result on the terminal, and the same as Markdown for the documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cprsim.present.terminal import plain_table, print_whole
from cprsim.reproduce.runner import COLUMNS, Reproduced, read_reproduced
from cprsim.reproduce.summary import Row, Summary
from cprsim.reproduce.verdicts import Finding
from cprsim.results.manifest import MANIFEST


def print_reproduced(console: Console, made: Reproduced) -> None:
    """Print title, comparisons, further tables and notes, and where the figure lies."""
    summary = made.summary
    title = Text.assemble((made.name, "bold"), f": {summary.title}")
    console.print(title, soft_wrap=True, highlight=False)
    console.print(summary.question, soft_wrap=True, highlight=False)
    if summary.rows:
        console.print()
        _print_table(console, COLUMNS, [_cells(row) for row in summary.rows])
    for listing in summary.listings:
        console.print(f"\n{listing.title}\n", soft_wrap=True, highlight=False)
        _print_table(console, listing.headings, listing.rows)
    for note in summary.notes:
        console.print(f"\n{note}", soft_wrap=True, highlight=False)
    console.print()
    for path in made.figures or (made.path,):
        console.print(str(path), soft_wrap=True, highlight=False)


def _print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = plain_table()
    for heading in headings:
        table.add_column(heading, no_wrap=True, vertical="top")
    for row in rows:
        table.add_row(*row)
    print_whole(console, table)


def _cells(row: Row) -> tuple[str, ...]:
    return (row.quantity, row.paper, row.mark, row.ours, str(row.verdict))


# ------------------------------------------------------------------------------ Markdown


def page(kept: Path, order: Sequence[str], *, beside: Path) -> str:
    """The results that are kept in a folder, as sections of a document.

    Parameters
    ----------
    kept : ``results/reproduction`` of the repository
    order : names of results, first to last; one that is not kept is left out
    beside : folder of the document, from which figures are linked
    """
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
    return markdown(("result", "`cprsim reproduce`", *map(str, findings)), lines)


def _anchor(title: str) -> str:
    """The name by which a link leads to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _section(made: Reproduced, beside: Path) -> str:
    return "\n\n".join(_paragraphs(made.name, made.summary, made, beside))


def _paragraphs(name: str, summary: Summary, made: Reproduced, beside: Path) -> Iterator[str]:
    yield f"## {summary.title}"
    yield f"`cprsim reproduce {name}`. {summary.question}"
    if summary.rows:
        yield markdown(COLUMNS, [_cells(row) for row in summary.rows])
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
        yield markdown(listing.headings, listing.rows)
    yield from summary.notes


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of a document."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
