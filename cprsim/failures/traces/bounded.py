"""Files of unknown size as a stream of bytes: only regular ones, unpacked, within the budget.

A small compressed file may unpack to terabytes, and a pipe may never end. So a log is looked
through once before it is parsed, at the speed of unpacking, and refused as soon as it exceeds what
the memory budget allows (`cprsim.budget`); whoever needs more raises the budget.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from cprsim.budget import how_to_raise, memory_bytes
from cprsim.errors import BudgetError, Place, Problem, TraceError

BYTES_PER_ROW = 160  # that a row of a log takes at most while it is read and sorted
TEXT_PER_MEMORY = 2  # bytes of text that may be streamed for each byte of the budget
LONGEST_LINE_BYTES = 1_000_000
MOST_COLUMNS = 1_000
AT_ONCE_BYTES = 1 << 20
_UNREADABLE = (OSError, EOFError, UnicodeError, BadZipFile, lzma.LZMAError, zlib.error)

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Extent(NamedTuple):
    """How much a log holds, unpacked."""

    n_lines: int
    n_bytes: int
    n_columns: int  # of its first line, at most
    unended: bytes = b""  # the last line, where no end of line follows it


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a regular file, unpacked by its suffix: .xz, .gz, .bz2, .zst or .zip.

    Raises
    ------
    TraceError
        for a file that is missing, no regular file, damaged, or a .zip of several files.
    """
    _require_regular(path)
    try:
        with _unpacked(path) as file:
            yield file
    except _UNREADABLE as error:
        raise _unreadable(path, error) from None


def _require_regular(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "no regular file")
        raise _error(path, f"can't be read: it is {kind}; give a regular file")


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    openers: dict[str, Callable[[Path], Any]] = {
        ".xz": lzma.LZMAFile,
        ".gz": gzip.GzipFile,
        ".bz2": bz2.BZ2File,
        ".zst": _zstandard,
    }
    suffix = path.suffix.lower()
    if suffix != ".zip":
        with openers.get(suffix, io.FileIO)(path) as file:
            yield file
        return
    with ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise _error(path, f"can't be read: it holds {len(names)} files; pack the log alone")
        if archive.getinfo(names[0]).flag_bits & 1:
            raise _error(path, "can't be read: it is encrypted")
        with archive.open(names[0]) as member:
            yield member


def _zstandard(path: Path) -> Any:
    import pyarrow as pa  # the standard library has no zstd before Python 3.14

    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


def extent_of(path: Path, separator: bytes = b",") -> Extent:
    """Look through a log once, in pieces.

    Raises
    ------
    BudgetError
        where it holds more rows or text than the memory budget allows.
    TraceError
        as `opened`, or for a line that no row can be.
    """
    most_bytes, most_lines = TEXT_PER_MEMORY * memory_bytes(), memory_bytes() / BYTES_PER_ROW
    n_lines = n_bytes = n_columns = since_line = 0
    unended = b""
    with opened(path) as file:
        while piece := file.read(AT_ONCE_BYTES):
            if n_lines == 0:
                n_columns += piece.partition(b"\n")[0].count(separator)
            n_bytes += len(piece)
            unended = (unended + piece).rpartition(b"\n")[2]
            n_lines += (found := piece.count(b"\n"))
            since_line = since_line + len(piece) if not found else len(piece) - piece.rfind(b"\n")
            if n_lines > most_lines:
                raise _too_much(path, f"{int(most_lines):,} rows")
            if n_bytes > most_bytes:
                raise _too_much(path, f"{most_bytes / 1e9:.3g} GB of text")
            if since_line > LONGEST_LINE_BYTES + AT_ONCE_BYTES:
                message = f"has a line of more than {LONGEST_LINE_BYTES:,} bytes: is it text?"
                raise _error(path, message, n_lines + 1)
            if n_columns >= MOST_COLUMNS:
                raise _error(path, f"has more than {MOST_COLUMNS:,} columns: is it a log?", 1)
    return Extent(n_lines + (since_line > 1), n_bytes, n_columns + 1, unended)


def read_bytes(path: Path, most_bytes: float) -> bytes:
    """All of a file. Raises BudgetError beyond `most_bytes`, else as `opened`."""
    with opened(path) as file:
        pieces, n_bytes = [], 0
        while piece := file.read(AT_ONCE_BYTES):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > most_bytes:
                raise _too_much(path, f"{most_bytes / 1e6:.4g} MB")
        return b"".join(pieces)


class Counted(io.RawIOBase):
    """A stream that refuses to hand out more than so many bytes until it is told that all is well.

    A parser that is inside an open quote swallows line after line and never comes to a row's end.
    """

    def __init__(self, file: IO[bytes], path: Path, most_bytes: float) -> None:
        self._file, self._path, self._most_bytes = file, path, most_bytes
        self.n_since = 0
        self.refusal: BudgetError | None = None  # a parser may hide what it was told

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(min(len(buffer), AT_ONCE_BYTES))
        self.n_since += len(piece)
        if self.n_since > self._most_bytes:
            self.refusal = BudgetError(
                f"{self._path}: some rows hold more than {self._most_bytes / 1e6:.4g} MB together: "
                f"is a quote left open? Otherwise {how_to_raise()}"
            )
            raise self.refusal
        buffer[: len(piece)] = piece
        return len(piece)


def _unreadable(path: Path, error: BaseException) -> TraceError:
    """One line on a file that can't be opened or unpacked."""
    reason = getattr(error, "strerror", None) or (str(error).strip() or "damaged").splitlines()[-1]
    return _error(path, f"can't be read: {reason}")


def _too_much(path: Path, most: str) -> BudgetError:
    return BudgetError(f"{path}: holds more than {most}: {how_to_raise()}")


def _error(path: Path, message: str, line: int | None = None) -> TraceError:
    return TraceError([Problem(Place(path, line), "", message)])
