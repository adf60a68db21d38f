"""A log as bytes, lines or text, unpacked; every complaint with its file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from cprsim.errors import Place, Problem, TraceError

UNREADABLE = (OSError, EOFError, BadZipFile, lzma.LZMAError, zlib.error)


def trace_error(path: Path, line: int | None, message: str, key: str = "") -> TraceError:
    """One complaint about one place."""
    return TraceError([Problem(Place(path, line), key, message)])


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a regular file, unpacked by its suffix: .xz, .gz, .bz2, .zst or .zip.

    Raises TraceError for a file that is missing, no regular file, damaged, or a .zip of several
    files.
    """
    if not path.is_file():
        reason = "it is no regular file" if path.exists() else "No such file or directory"
        raise trace_error(path, None, f"can't be read: {reason}")
    try:
        with _unpacked(path) as file:
            yield file
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or "it is damaged"
        raise trace_error(path, None, f"can't be read: {reason.splitlines()[-1]}") from None


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    openers: dict[str, Callable[[Path], Any]] = {
        ".xz": lzma.LZMAFile,
        ".gz": gzip.GzipFile,
        ".bz2": bz2.BZ2File,
        ".zst": _zstandard,
    }
    if path.suffix.lower() != ".zip":
        with openers.get(path.suffix.lower(), _buffered)(path) as file:
            yield file
        return
    with ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1 or archive.getinfo(names[0]).flag_bits & 1:
            message = "can't be read: pack the log alone, without a password"
            raise trace_error(path, None, message)
        with archive.open(names[0]) as member:
            yield member


def _buffered(path: Path) -> IO[bytes]:
    return path.open("rb")


def _zstandard(path: Path) -> Any:
    import pyarrow as pa  # the standard library has no zstd before Python 3.14

    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank.

    Raises TraceError with line and byte, for what is no UTF-8.
    """
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = f"byte {error.start + 1} of the line (0x{line[error.start]:02x})"
                message = f"can't be read: {byte} is no UTF-8; iconv writes a file in UTF-8"
                raise trace_error(path, number, message) from None
            if text.strip():
                yield number, text.rstrip("\r\n")


def read_text(path: Path) -> str:
    """The whole file. Raises TraceError where it is missing, damaged, or no UTF-8."""
    with opened(path) as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise trace_error(path, None, f"can't be read: {error}") from None
