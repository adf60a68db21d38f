"""What others wrote, made safe: for terminals, for messages, for spreadsheets, and as JSON.

Names, causes and cells come from files that nobody here has looked at. They may hold sequences
that a terminal obeys, formulas that a spreadsheet runs, or numbers without end.
"""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

MOST_SHOWN = 60  # characters of a value or key found, in a message
MOST_DIGITS = 300  # of a whole number in JSON: any longer one would be no finite float
MOST_JSON_BYTES = 50_000_000

UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What comes of using plain data of another layout than expected."""

# Characters that a terminal obeys or that reorder the text around them: controls (C0 but line
# feed and tab, C1), formats (bidirectional overrides, zero widths, tags), ends of lines and
# paragraphs of Unicode, halves of surrogate pairs.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf)")
_FORMULA = tuple("=+-@\t\n＝＋－＠")  # begin what a spreadsheet may run, the wide signs too


def printable(text: str) -> str:
    """The text with what a terminal would obey spelled out; ends of lines and tabs stay."""
    return _UNPRINTABLE.sub(_spelled, text)


def one_line(text: str, most: int = MOST_SHOWN) -> str:
    """The text on one line, not too long, with what can't be printed spelled out."""
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def json_printable(text: str) -> str:
    """JSON with what a terminal would obey as JSON's own escapes: it reads back the same."""
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def spreadsheet_cell(cell: Any) -> Any:
    """A cell for a CSV: text that a spreadsheet would take for a formula gets a ' before it."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def parse_json(text: str | bytes) -> Any:
    """JSON as plain data. Raises ValueError where it is none, or holds a number without end."""
    try:
        return json.loads(text, parse_int=whole_number)
    except RecursionError:
        raise ValueError("is nested too deep") from None


def read_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """A file's JSON as plain data."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("is not a regular file")
    with path.open("rb") as file:
        text = file.read(most_bytes + 1)
    if len(text) > most_bytes:
        raise ValueError(f"has more than {most_bytes} bytes")
    return parse_json(text)


def whole_number(digits: str) -> int:
    """The whole number of a JSON text. Raises ValueError where no float is as large."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(
            f"holds a whole number of {len(digits)} digits; at most {MOST_DIGITS} are possible"
        )
    return int(digits)


def _spelled(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
