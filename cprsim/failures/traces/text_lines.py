"""A log as lines of text, with a clear complaint for bytes that are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cprsim.failures.traces.bounded import extent_of, opened
from cprsim.failures.traces.reading import trace_error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank.

    Raises
    ------
    TraceError
        with line and byte, for what is no UTF-8; BudgetError for a log beyond the budget.
    """
    extent_of(path)
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = f"byte {error.start + 1} of the line (0x{line[error.start]:02x})"
                raise trace_error(path, number, f"can't be read: {byte} is no UTF-8") from None
            if text.strip():
                yield number, text.rstrip("\r\n")
