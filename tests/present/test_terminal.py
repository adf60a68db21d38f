"""Tables on terminals that are narrower than they are."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cprsim.present.document import Column, Table, word_columns
from cprsim.present.terminal import show

NAMES = ("cpr-round-robin", "partial, by the formula of the paper", "full")
NUMBERS = ("0.000357 ± 0.000061", "1,234.5 ± 67.8", "12 of 12", "yes", "0.9229")


def printed(width: int, *, terminal: bool = True, grouped: bool = False) -> str:
    columns = [*word_columns(*["group"] * grouped, "name"), *map(Column, "abcde")]
    rows = [[*["one"] * grouped, name, *NUMBERS] for name in NAMES]
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
    show(console, [Table("", columns, rows, grouped=grouped)])
    return out.getvalue()


@pytest.mark.parametrize("width", [45, 60, 80, 100, 120, 160])
@pytest.mark.parametrize("grouped", [False, True])
def test_no_line_is_wider_than_the_terminal_and_every_number_is_there_once(
    width: int, grouped: bool
) -> None:
    text = printed(width, grouped=grouped)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert [text.count(number) for number in NUMBERS] == [len(NAMES)] * len(NUMBERS)


def test_what_fits_is_one_table_and_what_does_not_repeats_the_names() -> None:
    assert (
        printed(160).count("cpr-round-robin")
        == printed(40, terminal=False).count("cpr-round-robin")
        == 1
    )
    assert printed(50).count("cpr-round-robin") > 1
