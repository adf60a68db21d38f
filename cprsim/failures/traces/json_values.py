"""JSON values one after the other, whole or as a list's items, each with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cprsim.failures.traces.reading import read_text, trace_error
from cprsim.foreign import whole_number

_BLANK = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,]*")


def values(path: Path) -> Iterator[tuple[int, Any]]:
    """Line and value of each JSON value of a file.

    Raises
    ------
    TraceError
        with line and byte, for what is no JSON; BudgetError for a file beyond the budget.
    """
    text = read_text(path)
    at = line = counted = 0
    while (at := _end(_BLANK, text, at)) < len(text):
        line, counted = line + text.count("\n", counted, at), at
        value, at = _decoded(text, at, line + 1, path)
        yield line + 1, value


def items_of(path: Path, key: str) -> Iterator[tuple[int, Any]]:
    """Line and value of each item of the array that follows the first `key`, or of all values.

    Files of one object with a long array are told with the line of the item that is wrong.

    Raises
    ------
    TraceError
        as `values`.
    """
    text = read_text(path)
    bracket = text.find("[")
    if not _is_of_key(text[: max(bracket, 0)], key):
        yield from values(path)
        return
    yield from _items(text, bracket, path)


def items_of_array(path: Path) -> Iterator[tuple[int, Any]]:
    """Line and value of each item of a file that is one array.

    Raises
    ------
    TraceError
        as `values`.
    """
    text = read_text(path)
    yield from _items(text, text.find("["), path)


def _items(text: str, bracket: int, path: Path) -> Iterator[tuple[int, Any]]:
    at, counted, line = bracket + 1, 0, 1
    while True:
        at = _end(_BETWEEN, text, at)
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            break
        value, at = _decoded(text, at, line, path)
        yield line, value
    try:  # the items were all right: is what is around them?
        json.JSONDecoder().decode(text[: bracket + 1] + text[at:])
    except (ValueError, RecursionError) as error:
        raise _no_json(path, line, at, getattr(error, "msg", "")) from None


def _is_of_key(before: str, key: str) -> bool:
    """Whether what stands before an array is the begin of an object, and this key."""
    named, colon, gap = before.rpartition(":")
    begins = before.lstrip().startswith("{") and colon == ":" and not gap.strip()
    return begins and named.rstrip().endswith(f'"{key}"')


def _decoded(text: str, at: int, line: int, path: Path) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        inside = line + text.count("\n", at, error.pos)
        raise _no_json(path, inside, error.pos, error.msg) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise _no_json(path, line, at, reason) from None


def _no_json(path: Path, line: int, at: int, reason: str) -> Exception:
    return trace_error(path, line, f"is no valid JSON at character {at + 1:,}: {reason}")


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


_DECODER = json.JSONDecoder(parse_int=whole_number)
