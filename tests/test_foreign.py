"""What others wrote is made safe: for terminals, for messages, for spreadsheets."""

import csv
import json
import unicodedata

import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

from cprsim.errors import json_printable, one_line, printable
from cprsim.results.folder import write_csv

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\rfake\x08\u202egnp.exe\u2028\u200b\ufeff\x7f\x00"
FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\n=1", "＝1", "-", "+", "-x")
NUMBERS = ("-1", "+1.5", "-.5e-3", "-inf", "+0", "-1e300")


def is_obeyed(character: str) -> bool:
    """Whether a terminal may act on it, or reorder the text around it."""
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\n\t"


@given(st.text(alphabet=st.characters(exclude_categories=())))
@example(HOSTILE)
def test_printable_text_holds_nothing_that_a_terminal_obeys(text) -> None:
    shown = printable(text)
    assert not [c for c in shown if is_obeyed(c) and c not in BEYOND]
    assert printable(shown) == shown


# Formats of single scripts that neither hide nor reorder what stands around them.
BEYOND = {
    chr(n)
    for n in range(0x110000)
    if unicodedata.category(chr(n)) == "Cf"
    and (0x600 <= n <= 0x605 or n in (0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)
    or 0x13430 <= n <= 0x1343F or 0x1BCA0 <= n <= 0x1BCA3 or 0x1D173 <= n <= 0x1D17A)
}  # fmt: skip


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
@example(HOSTILE)
def test_json_for_a_terminal_reads_back_the_same(text) -> None:
    shown = json_printable(json.dumps({"a": text}, ensure_ascii=False))
    assert json.loads(shown) == {"a": text}
    assert printable(shown) == shown


@given(st.text(alphabet=st.characters(exclude_categories=())), st.integers(4, 100))
def test_one_line_is_one_line_and_no_longer_than_asked(text, most) -> None:
    shown = one_line(text, most)
    assert shown.isprintable()
    assert len(shown) <= 10 * most
    assert one_line("x" * 10**6, most) == "x" * (most - 3) + "..."


def test_a_table_as_csv_quotes_what_a_spreadsheet_would_run_and_keeps_the_rest(tmp_path) -> None:
    written = {f: "'" + f for f in FORMULAS} | {"a\r=1": r"a\r=1", "\r=1": r"\r=1", None: ""}
    written |= {cell: cell for cell in (*NUMBERS, "", "a=1", "1-2", "full", " x", "a\n=1")}
    numbers = [-0.5] * (len(written) - 1) + [float("-inf")]
    write_csv(pd.DataFrame({"name": list(written), "=n": numbers}), path := tmp_path / "a.csv")
    assert b"\r" not in path.read_bytes()  # no cell can end its row
    with path.open(newline="", encoding="utf-8") as file:
        heading, *rows = csv.reader(file)
    assert heading == ["name", "'=n"]
    assert [row[0] for row in rows] == list(written.values())
    assert [float(row[1]) for row in rows] == numbers
