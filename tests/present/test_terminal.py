"""Blocks on a terminal, and tables on terminals that are narrower than they are."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from cprsim.present.document import Cell, Column, Table
from cprsim.present.terminal import plain_table, print_whole, show

NAMES = ("cpr-round-robin", "partial, by the formula of the paper", "full")
NUMBERS = ("0.000357 ± 0.000061", "1,234.5 ± 67.8", "12 of 12", "yes", "0.9229")


def printed(width: int, *, terminal: bool = True, naming: int = 1) -> str:
    table = plain_table()
    for i in range(naming):
        table.add_column(f"name {i}", no_wrap=True)
    for i in range(len(NUMBERS)):
        table.add_column(f"number\n{i}", justify="right", no_wrap=True)
    for name in NAMES:
        table.add_row(*([""] * (naming - 1)), name, *NUMBERS)
    out = io.StringIO()
    print_whole(Console(file=out, width=width, force_terminal=terminal, color_system=None), table)
    return out.getvalue()


@pytest.mark.parametrize("width", [45, 60, 80, 100, 120, 160])
@pytest.mark.parametrize("naming", [1, 2])
def test_no_line_is_wider_than_the_terminal_and_every_number_is_there_once(width, naming) -> None:
    text = printed(width, naming=naming)
    assert max(map(len, text.splitlines())) <= width
    assert [text.count(number) for number in NUMBERS] == [len(NAMES)] * len(NUMBERS)


def test_what_fits_is_one_table_and_what_does_not_repeats_the_names() -> None:
    assert printed(160).count("cpr-round-robin") == 1
    narrow = printed(60)
    assert narrow.count("cpr-round-robin") == narrow.count("name 0") == 3


# ------------------------------------------------------------------------------ blocks


def shown(*blocks, width=100, terminal=False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
    show(console, blocks)
    return re.sub(" +\n", "\n", out.getvalue())


COLUMNS = [
    Column("strategy", is_number=False),
    Column("overhead, %", brief="overhead\n%"),
    Column("files", in_full=True),
    Column("save", apart=True),
    Column("cost", dispensable=True),
]
ROWS = [["full", Cell("12.0 ± 0.1", "12.0"), "7", "1.0", "8.5"]]


def test_a_terminal_shows_short_headings_and_cells_and_no_column_that_a_page_alone_has() -> None:
    text = shown(Table("caption", COLUMNS, ROWS))
    assert text.split() == [
        "overhead", "strategy", "%", "save", "cost", "─" * text.count("─"),
        "full", "12.0", "1.0", "8.5",
    ]  # fmt: skip


def test_where_it_is_too_wide_columns_are_left_out_and_others_go_apart() -> None:
    table = Table("", COLUMNS, ROWS, apart="of which")
    text = shown(table, width=23, terminal=True)
    main, apart = text.split("\nof which:\n\n")
    assert "8.5" not in text
    assert ("12.0" in main, "1.0" in apart, "full" in apart) == (True, True, True)
    assert "of which" not in shown(table, width=100, terminal=True)
    assert "of which" not in shown(table, width=20, terminal=False)
