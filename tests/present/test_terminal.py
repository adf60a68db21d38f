"""Tables on terminals that are narrower than they are."""

from __future__ import annotations

import pytest

from cprsim.present.document import Column, Table, word_columns
from cprsim.present.terminal import text_of_blocks

NAMES = ("cpr-round-robin", "partial, by the formula of the paper", "full")
NUMBERS = ("0.000357 ± 0.000061", "1,234.5 ± 67.8", "12 of 12", "yes", "0.9229")


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("width", [45, 60, 80, 100, 120, 160])
def test_no_line_is_too_wide_and_every_number_is_there_once(width: int, grouped: bool) -> None:
    columns = [*word_columns(*["group"] * grouped, "name"), *map(Column, "abcde")]
    rows = [[*["one"] * grouped, name, *NUMBERS] for name in NAMES]
    for terminal in (True, False):
        table = Table("", columns, rows, grouped=grouped)
        text = text_of_blocks([table], width if terminal else None)
        assert [text.count(number) for number in NUMBERS] == [len(NAMES)] * len(NUMBERS)
        fits = width == 160 or not terminal  # where it does not, names are repeated
        if fits:
            assert text.count("cpr-round-robin") == 1
        if terminal:
            assert max(len(line) for line in text.splitlines()) <= width
        if terminal and width <= 60:
            assert text.count("cpr-round-robin") > 1
