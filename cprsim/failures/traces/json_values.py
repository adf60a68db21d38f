"""JSON values one after the other, or the items of one array, each with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from os import PathLike
from typing import Any

from cprsim.failures.traces.files import read_text, trace_error

MOST_DIGITS = 300  # of a whole number: any longer one would be no finite float
_BETWEEN = re.compile(r"[\s,]*")


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"holds a whole number of {len(digits)} digits")
    return int(digits)


_DECODER = json.JSONDecoder(parse_int=_whole_number)


def items(path: PathLike[str]) -> Iterator[tuple[int, Any]]:
    """Line and value of each JSON value of a file; where it is one array, of each of its items.

    Raises TraceError with the line, for what is no JSON.
    """
    text = read_text(path)
    at, line, counted = len(text) - len(text.lstrip()), 1, 0
    is_array = text.startswith("[", at)
    at += is_array
    while True:
        found = _BETWEEN.match(text, at)
        at = found.end() if found else at
        line, counted = line + text.count("\n", counted, at), at
        if at == len(text) or (is_array and text[at] == "]"):
            break
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            inside = line + text.count("\n", at, error.pos)
            raise _no_json(path, inside, error.msg) from None
        except (ValueError, RecursionError) as error:
            too_deep = isinstance(error, RecursionError)
            raise _no_json(path, line, "nested too deep" if too_deep else str(error)) from None
        yield line, value
    if is_array and text[at:].strip() != "]":
        raise _no_json(path, line, "the array does not end where the file ends")


def _no_json(path: PathLike[str], line: int, reason: str) -> Exception:
    return trace_error(path, line, f"is no valid JSON: {reason}")


def require_object(item: Any, line: int, path: PathLike[str], example: str) -> dict[str, Any]:
    """The item. Raises TraceError where it is no object."""
    if not isinstance(item, dict):
        raise trace_error(path, line, f"is no JSON object such as {example}")
    return item
