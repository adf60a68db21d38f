"""A log as bytes, lines or text, unpacked; every complaint with its file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO, Any, Self
from zipfile import BadZipFile, ZipFile

from cprsim.errors import Place, Problem, TraceError

UNREADABLE = (OSError, EOFError, BadZipFile, lzma.LZMAError, zlib.error)


HEAD_BYTES = 65_536


def trace_error(log: PathLike[str], line: int | None, message: str, key: str = "") -> TraceError:
    """One complaint about one place."""
    return TraceError([Problem(Place(Path(log), line), key, message)])


@dataclass
class LogFile:
    """A log that is opened once, and read from its beginning as often as needed."""

    path: Path
    file: IO[bytes] = field(init=False)

    def __fspath__(self) -> str:
        return str(self.path)

    def __enter__(self) -> Self:
        self.file = _regular(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _regular(path: Path) -> IO[bytes]:
    if not path.is_file():
        reason = "it is no regular file" if path.exists() else "No such file or directory"
        raise trace_error(path, None, f"can't be read: {reason}")
    try:
        return path.open("rb")
    except OSError as error:
        raise trace_error(path, None, f"can't be read: {error.strerror}") from None


@contextmanager
def opened(log: PathLike[str]) -> Iterator[IO[bytes]]:
    """The bytes of a regular file, unpacked by its suffix: .xz, .gz, .bz2, .zst or .zip.

    Raises TraceError for a file that is missing, no regular file, damaged, or a .zip of several
    files.
    """
    path = Path(log)
    with nullcontext(log.file) if isinstance(log, LogFile) else _regular(path) as file:
        try:
            file.seek(0)
            yield _unpacked(file, path)
        except UNREADABLE as error:
            reason = getattr(error, "strerror", None) or str(error).strip() or "it is damaged"
            raise trace_error(path, None, f"can't be read: {reason.splitlines()[-1]}") from None


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a log, for a guess at its format."""

    text: str  # of its first bytes, without blanks before it; what is no UTF-8 replaced

    @property
    def first_line(self) -> str:
        """The first line that is not empty."""
        return self.text.partition("\n")[0]

    def names(self, *columns: str, separator: str = "|") -> bool:
        """Whether the first line is a header with these columns, in whatever case."""
        cells = {cell.strip().lower() for cell in self.first_line.split(separator)}
        return cells >= {column.lower() for column in columns}


def head_of(log: PathLike[str]) -> Head:
    """The beginning of a log. Raises TraceError where the file can't be opened."""
    with opened(log) as file:
        begins = file.read(HEAD_BYTES)
    return Head(begins.decode("utf-8-sig", errors="replace").lstrip())


def _unpacked(file: IO[bytes], path: Path) -> Any:
    openers: dict[str, Callable[[Any], Any]] = {
        ".xz": lzma.LZMAFile,
        ".gz": lambda packed: gzip.GzipFile(fileobj=packed),
        ".bz2": bz2.BZ2File,
        ".zst": _zstandard,
    }
    if path.suffix.lower() != ".zip":
        return openers.get(path.suffix.lower(), lambda plain: plain)(file)
    archive = ZipFile(file)
    names = [name for name in archive.namelist() if not name.endswith("/")]
    if len(names) != 1 or archive.getinfo(names[0]).flag_bits & 1:
        message = "can't be read: pack the log alone, without a password"
        raise trace_error(path, None, message)
    return archive.open(names[0])


def _zstandard(packed: IO[bytes]) -> Any:
    import pyarrow as pa  # the standard library has no zstd before Python 3.14

    again = os.fdopen(os.dup(packed.fileno()), "rb")  # it closes what it unpacks
    again.seek(0)
    return pa.CompressedInputStream(pa.PythonFile(again), "zstd")


def numbered_lines(log: PathLike[str]) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank.

    Raises TraceError with line and byte, for what is no UTF-8.
    """
    with opened(log) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = f"byte {error.start + 1} of the line (0x{line[error.start]:02x})"
                message = f"can't be read: {byte} is no UTF-8; iconv writes a file in UTF-8"
                raise trace_error(log, number, message) from None
            if text.strip():
                yield number, text.rstrip("\r\n")


def read_text(log: PathLike[str]) -> str:
    """The whole file. Raises TraceError where it is missing, damaged, or no UTF-8."""
    with opened(log) as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise trace_error(log, None, f"can't be read: {error}") from None
