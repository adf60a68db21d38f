"""Reading click logs in Criteo's format: plain, .gz or .xz, block by block.

A file is streamed as bytes and parsed into arrays; no line ever becomes Python objects. Whatever
is wrong is one ClickError with file and line, or, with `skip_bad`, a line left out and counted.
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

from cprsim.errors import ClickError, Place
from cprsim.kernel.clicks.lines import (
    BAD_CATEGORY,
    BAD_INTEGER,
    BAD_LABEL,
    FINE,
    N_FIELDS,
    WRONG_COUNT,
    parse_lines,
)
from cprsim.kernel.clicks.records import N_CATEGORIES, N_INTEGERS, RawClicks

BLOCK_LINES = 1 << 16
READ_BYTES = 1 << 22
LONGEST_LINE_BYTES = 1 << 16  # a whole line of the format has some 350

WHAT_IS_WRONG = {
    BAD_LABEL: "is no label (0 or 1)",
    BAD_INTEGER: "is no integer",
    BAD_CATEGORY: "is not eight hexadecimal digits",
}


class CriteoLog:
    """One log on disk. `skipped` counts the lines that `skip_bad` left out so far."""

    def __init__(self, path: Path, skip_bad: bool = False) -> None:
        self.path = path
        self.skip_bad = skip_bad
        self.skipped = 0
        self._line = 1  # of the next line to parse
        self._text = b""

    def blocks(self, n_lines: int = BLOCK_LINES) -> Iterator[RawClicks]:
        """The whole log as blocks of at most `n_lines` clicks, from its beginning.

        Raises ClickError for an unreadable or empty file, and for bad lines unless they are
        skipped. A file whose compressed stream is cut short ends, when skipping, with the last
        whole line before the cut.
        """
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
    shown = value if len(value) <= 40 else f"{value[:40]}..."
    return f"field {field + 1} ({name}): `{shown}` {WHAT_IS_WRONG[problem]}"


def read_log(path: Path, most: int | None = None, skip_bad: bool = False) -> tuple[RawClicks, int]:
    """The first `most` clicks of a log (all where None), and how many bad lines were skipped.

    Takes 261 bytes of memory per click.
    """
    log, blocks, n = CriteoLog(path, skip_bad), [], 0
    for block in log.blocks():
        blocks.append(block)
        n += len(block)
        if most is not None and n >= most:
            break
    columns = ([getattr(b, name) for b in blocks] for name in ("label", "integers", "categories"))
    return RawClicks(*(np.concatenate(column) for column in columns))[:most], log.skipped
