"""A log as bytes, lines or text, unpacked; every complaint with its file and line."""

from __future__ import annotations

import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from cprsim.errors import Place, Problem, TraceError, one_line

LONGEST_LINE = 1 << 24  # bytes
LONGEST_MESSAGE = 2_000  # characters
MOST_TEXT = 200_000_000  # bytes of a document that is read as one
MOST_UNPACKED = 4_000_000_000  # of a packed log
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
PACKED = (".xz", ".zip", *CODECS)
READ_ERRORS = (OSError, EOFError, BadZipFile, lzma.LZMAError, zlib.error)
HEAD_BYTES = 65_536


def trace_error(log: PathLike[str], line: int | None, message: str, key: str = "") -> TraceError:
    """One complaint about one place, cut where a log has names of any length."""
    cut = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "..."
    return TraceError([Problem(Place(Path(log), line), one_line(key), cut)])


@contextmanager
def opened(log: PathLike[str], longest_line: int | None = LONGEST_LINE) -> Iterator[Any]:
    """The bytes of a regular file, unpacked by its suffix: .xz, .gz, .bz2, .zst or .zip.

    Raises TraceError for a line, or a packed log, of more bytes than any log has; a file that is no
    text (None) has no lines.
    """
    path = Path(log)
    try:
        if path.exists() and not path.is_file():  # to open a pipe would wait for ever
            raise OSError("it is no regular file")
        if path.exists() and path.stat().st_size == 0:  # some of the kernel's wait for ever, too
            raise trace_error(path, None, "is empty")
        with _unpacked(path) as file:
            bounded = longest_line and io.BufferedReader(_Bounded(file, path, longest_line))
            yield bounded or file
    except READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or "it is damaged"
        raise trace_error(path, None, f"can't be read: {reason.splitlines()[-1]}") from None


def head_of(log: PathLike[str]) -> str:
    """Return the first bytes of a log without leading blanks; invalid UTF-8 is replaced."""
    with opened(log) as file:
        head: bytes = file.read(HEAD_BYTES)
    return head.decode("utf-8-sig", errors="replace").lstrip()


def has_columns(head: str, *columns: str, separator: str = "|") -> bool:
    """Whether the first line is a header with these columns, in whatever case."""
    cells = {cell.strip().lower() for cell in head.partition("\n")[0].split(separator)}
    return cells >= {column.lower() for column in columns}


class _Bounded(io.RawIOBase):
    """The bytes of a log, as long as its lines and, where it is packed, its length are bounded."""

    def __init__(self, file: IO[bytes], path: Path, longest_line: int) -> None:
        self._file, self._path, self._longest = file, path, longest_line
        self._line, self._of_line, self._n_bytes = 1, 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        n_ends, end = data.count(b"\n"), data.rfind(b"\n")
        self._n_bytes += len(data)
        if self._of_line + (len(data) if end < 0 else data.index(b"\n")) > self._longest:
            message = f"the line has more than {self._longest:,} bytes: is it a log?"
            raise trace_error(self._path, self._line, message)
        if self._n_bytes > MOST_UNPACKED and self._path.suffix.lower() in PACKED:
            message = f"unpacked it has more than {MOST_UNPACKED:,} bytes: split it"
            raise trace_error(self._path, None, message)
        self._line += n_ends
        self._of_line = self._of_line + len(data) if end < 0 else len(data) - end - 1
        return len(data)


def _unpacked(path: Path) -> IO[bytes] | Any:
    match path.suffix.lower():
        case ".xz":
            return lzma.open(path)
        case suffix if suffix in CODECS:
            return pa.input_stream(str(path), compression=CODECS[suffix])
        case ".zip":
            archive = ZipFile(path)
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1 or archive.getinfo(names[0]).flag_bits & 1:
                raise BadZipFile("pack the log alone, without a password")
            return archive.open(names[0])
    return path.open("rb")


def numbered_lines(log: PathLike[str]) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank."""
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
    """The whole file. Raises TraceError for one of more than `MOST_TEXT` bytes."""
    with opened(log, MOST_TEXT) as file:
        content: bytes = file.read(MOST_TEXT + 1)
    if len(content) > MOST_TEXT:
        message = f"a document of more than {MOST_TEXT:,} bytes is not read: split it"
        raise trace_error(log, None, message)
    try:
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise trace_error(log, None, f"can't be read: {error}") from None
