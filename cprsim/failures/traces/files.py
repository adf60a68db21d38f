"""A log as bytes, lines or text, unpacked; every complaint with its file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from cprsim.errors import Place, Problem, TraceError

UNREADABLE = (OSError, EOFError, BadZipFile, lzma.LZMAError, zlib.error)
HEAD_BYTES = 65_536


def trace_error(log: PathLike[str], line: int | None, message: str, key: str = "") -> TraceError:
    """One complaint about one place."""
    return TraceError([Problem(Place(Path(log), line), key, message)])


@contextmanager
def opened(log: PathLike[str]) -> Iterator[IO[bytes]]:
    """The bytes of a regular file, unpacked by its suffix: .xz, .gz, .bz2, .zst or .zip."""
    path = Path(log)
    try:
        if path.exists() and not path.is_file():  # to open a pipe would wait for ever
            raise OSError("it is no regular file")
        with _unpacked(path) as file:
            yield file
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or "it is damaged"
        raise trace_error(path, None, f"can't be read: {reason.splitlines()[-1]}") from None


def head_of(log: PathLike[str]) -> str:
    """The first bytes of a log without blanks before them; what is no UTF-8 is replaced."""
    with opened(log) as file:
        return file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace").lstrip()


def has_columns(head: str, *columns: str, separator: str = "|") -> bool:
    """Whether the first line is a header with these columns, in whatever case."""
    cells = {cell.strip().lower() for cell in head.partition("\n")[0].split(separator)}
    return cells >= {column.lower() for column in columns}


def _unpacked(path: Path) -> IO[bytes] | Any:
    match path.suffix.lower():
        case ".xz":
            return lzma.open(path)
        case ".gz":
            return gzip.open(path)
        case ".bz2":
            return bz2.open(path)
        case ".zst":
            import pyarrow as pa  # the standard library has no zstd before Python 3.14

            return pa.input_stream(str(path), compression="zstd")
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
    """The whole file."""
    with opened(log) as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise trace_error(log, None, f"can't be read: {error}") from None
