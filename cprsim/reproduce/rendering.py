"""How a reproduction is told: a title, a table, and what it means."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

from cprsim.report.run_table import print_whole


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One result of a paper, ours beside published."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]  # paragraphs below the table

    def print_on(self, console: Console) -> None:
        """Print title, table and notes."""
        table = Table(
            box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold"
        )
        for heading in self.headings:
            table.add_column(heading, no_wrap=True, vertical="top")
        for row in self.rows:
            table.add_row(*row)
        console.print(self.title, soft_wrap=True)
        console.print()
        print_whole(console, table)
        for note in self.notes:
            console.print()
            console.print(note, soft_wrap=True)
