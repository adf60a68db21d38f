"""Reading click logs in Criteo's format: plain, .gz or .xz, block by block.

A line is ``label, 13 integers, 26 categories`` with tabs between: the label 0 or 1, an integer
decimal with an optional minus, a category eight hexadecimal digits; empty means missing.

A file is streamed as bytes and parsed into arrays by compiled loops. Whatever is wrong is one
ClickError with file and line, or, with `skip_bad`, a line that is left out and counted.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import cast

import numpy as np

from cprsim.compiling import compiled
from cprsim.errors import ClickError, Place
from cprsim.kernel.clicks.records import N_CATEGORIES, N_INTEGERS, RawClicks
from cprsim.kernel.loops import Array

N_FIELDS = 40
FINE, WRONG_COUNT, BAD_LABEL, BAD_INTEGER, BAD_CATEGORY = range(5)

TAB, NEWLINE, RETURN, MINUS, ZERO = 9, 10, 13, 45, 48
UPPER_A, LOWER_A = 65, 97
MOST_DIGITS = 18  # all that fit 64 bits
BLOCK_LINES = 1 << 16
READ_BYTES = 1 << 22
LONGEST_LINE_BYTES = 1 << 16  # a whole line of the format has some 350
WHAT_IS_WRONG = {
    BAD_LABEL: "is no label (0 or 1)",
    BAD_INTEGER: "is no integer",
    BAD_CATEGORY: "is not eight hexadecimal digits",
}


@compiled
def parse_lines(
    text: Array, at: int, label: Array, integers: Array, categories: Array
) -> tuple[int, int, int, int]:
    """Parse whole lines of `text` (uint8) from `at` until the arrays are full.

    Returns how many lines were parsed, where the next one begins, what is wrong with that one
    (FINE where nothing: the rest of the text is no whole line), and its field, or, where their
    count is wrong, how many fields it has.
    """
    n = 0
    while n < label.shape[0]:
        end, n_fields = at, 1
        while end < text.shape[0] and text[end] != NEWLINE:
            n_fields += text[end] == TAB
            end += 1
        if end == text.shape[0]:
            break
        stop = end - 1 if end > at and text[end - 1] == RETURN else end
        if n_fields != N_FIELDS:
            return n, at, WRONG_COUNT, n_fields
        problem, field = parse_fields(text, at, stop, n, label, integers, categories)
        if problem != FINE:
            return n, at, problem, field
        at = end + 1
        n += 1
    return n, at, FINE, 0


@compiled
def parse_fields(
    text: Array, at: int, stop: int, n: int, label: Array, integers: Array, categories: Array
) -> tuple[int, int]:
    """Write the 40 fields of ``text[at:stop]`` to row n; (problem, field) of the first mistake."""
    first, field = at, 0
    for i in range(at, stop + 1):
        if i < stop and text[i] != TAB:
            continue
        if field == 0:
            if i != first + 1 or not ZERO <= text[first] <= ZERO + 1:
                return BAD_LABEL, field
            label[n] = text[first] - ZERO
        elif field <= integers.shape[1]:
            fine, value = parse_integer(text, first, i)
            if not fine:
                return BAD_INTEGER, field
            integers[n, field - 1] = value
        else:
            category = parse_category(text, first, i)
            if category < -1:
                return BAD_CATEGORY, field
            categories[n, field - 1 - integers.shape[1]] = category
        first = i + 1
        field += 1
    return FINE, 0


@compiled
def parse_integer(text: Array, first: int, stop: int) -> tuple[bool, float]:
    """(whether it is one, its value); NaN for an empty field."""
    if first == stop:
        return True, np.nan
    negative = text[first] == MINUS
    first += negative
    if not 1 <= stop - first <= MOST_DIGITS:
        return False, 0.0
    value = 0
    for i in range(first, stop):
        digit = np.int64(text[i]) - ZERO
        if not 0 <= digit <= 9:
            return False, 0.0
        value = 10 * value + int(digit)
    return True, float(-value if negative else value)


@compiled
def parse_category(text: Array, first: int, stop: int) -> int:
    """Its 32-bit value; -1 for an empty field, -2 where it is not eight hexadecimal digits."""
    if first == stop:
        return -1
    if stop - first != 8:
        return -2
    value = 0
    for i in range(first, stop):
        c = np.int64(text[i])
        if ZERO <= c <= ZERO + 9:
            digit = c - ZERO
        elif LOWER_A <= c < LOWER_A + 6:
            digit = c - LOWER_A + 10
        elif UPPER_A <= c < UPPER_A + 6:
            digit = c - UPPER_A + 10
        else:
            return -2
        value = 16 * value + int(digit)
    return value


class CriteoLog:
    """One log on disk. `skipped` counts the lines that `skip_bad` left out so far."""

    def __init__(self, path: Path, skip_bad: bool = False) -> None:
        self.path = path
        self.skip_bad = skip_bad
        self.skipped = 0
        self._line = 1  # of the next line to parse
        self._text = b""

    def blocks(self, n_lines: int = BLOCK_LINES) -> Iterator[RawClicks]:
        """The whole log as blocks of at most `n_lines` clicks, from its beginning."""
        self._line, self.skipped, n_read, self._text = 1, 0, 0, b""
        for more in self._chunks():
            self._text += more
            while len(block := self._parse(n_lines)):
                n_read += len(block)
                yield block
        if not n_read:
            raise self._error("holds no click", 1)

    def _chunks(self) -> Iterator[bytes]:
        """Decompressed bytes; a newline is added to a last line that has none."""
        try:
            with self._open() as file:
                last = b"\n"
                while chunk := file.read1(READ_BYTES):  # what there is, also just before a cut
                    last = chunk
                    yield chunk
                if not last.endswith(b"\n"):
                    yield b"\n"
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            cause = "cut short" if isinstance(error, EOFError) else f"unreadable: {error}"
            if not self.skip_bad or isinstance(error, FileNotFoundError | IsADirectoryError):
                raise self._error(f"the file is {cause}", self._line) from error
            self.skipped += 1

    def _open(self) -> BufferedReader:
        if self.path.suffix == ".gz":
            return cast(BufferedReader, gzip.open(self.path, "rb"))
        if self.path.suffix == ".xz":
            return cast(BufferedReader, lzma.open(self.path, "rb"))
        return self.path.open("rb")

    def _parse(self, n_lines: int) -> RawClicks:
        """As many clicks as the buffered text holds, at most `n_lines`; keeps the rest of it."""
        n_lines = min(n_lines, self._text.count(b"\n"))
        block = RawClicks(
            np.empty(n_lines, np.float32),
            np.empty((n_lines, N_INTEGERS), np.float32),
            np.empty((n_lines, N_CATEGORIES), np.int64),
        )
        text, at, n = np.frombuffer(self._text, np.uint8), 0, 0
        while True:
            parsed, at, problem, field = parse_lines(
                text, at, block.label[n:], block.integers[n:], block.categories[n:]
            )
            n += parsed
            self._line += parsed
            if problem == FINE:
                break
            at = self._skip(at, problem, field)
        self._text = self._text[at:]
        if len(self._text) > LONGEST_LINE_BYTES and b"\n" not in self._text:
            raise self._error("a line without end; is this a click log?", self._line)
        return block[:n]

    def _skip(self, at: int, problem: int, field: int) -> int:
        """Where the line after the bad one at `at` begins; raises ClickError unless skipping."""
        end = self._text.index(b"\n", at)
        if not self.skip_bad:
            line = self._text[at:end].decode("utf-8", "replace").rstrip("\r")
            raise self._error(describe(line, problem, field), self._line)
        self.skipped += 1
        self._line += 1
        return end + 1

    def _error(self, message: str, line: int) -> ClickError:
        return ClickError.at(Place(self.path, line), message)


def describe(line: str, problem: int, field: int) -> str:
    """In words what is wrong with a line, with the field's name as Criteo numbers them."""
    if problem == WRONG_COUNT:
        return f"{field} fields between tabs, not {N_FIELDS}"
    name = "label" if field == 0 else f"I{field}"
    if field > N_INTEGERS:
        name = f"C{field - N_INTEGERS}"
    value = line.split("\t")[field]
    start = value if len(value) <= 40 else f"{value[:40]}..."
    return f"field {field + 1} ({name}): `{start}` {WHAT_IS_WRONG[problem]}"


def read_log(path: Path, most: int | None = None, skip_bad: bool = False) -> tuple[RawClicks, int]:
    """The first `most` clicks of a log (all where None), and how many bad lines were skipped."""
    log, blocks, n = CriteoLog(path, skip_bad), [], 0
    for block in log.blocks():
        blocks.append(block)
        n += len(block)
        if most is not None and n >= most:
            break
    columns = ([getattr(b, name) for b in blocks] for name in ("label", "integers", "categories"))
    return RawClicks(*(np.concatenate(column) for column in columns))[:most], log.skipped
