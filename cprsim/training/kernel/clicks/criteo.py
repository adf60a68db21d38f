"""Reading click logs in Criteo's format: plain, .gz or .xz, line by line.

A line is ``label, 13 integers, 26 categories`` with tabs between: the label 0 or 1, an integer
decimal with an optional minus, a category eight hexadecimal digits; empty means missing.

Whatever is wrong is one ClickError with file and line, or, with `skip_bad`, a line that is left out
and counted.
"""

from __future__ import annotations

import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import ClickError, Place
from cprsim.training.kernel.clicks.records import (
    MISSING_CATEGORY,
    N_CATEGORIES,
    N_INTEGERS,
    RawClicks,
)

LABEL, INTEGER, CATEGORY = "[01]", "(?:-?[0-9]{1,18})?", "(?:[0-9a-fA-F]{8})?"
CELLS = [("label", LABEL, "is no label (0 or 1)")]
CELLS += [(f"I{i + 1}", INTEGER, "is no integer") for i in range(N_INTEGERS)]
CELLS += [(f"C{i + 1}", CATEGORY, "is not eight hexadecimal digits") for i in range(N_CATEGORIES)]
CRITEO_LINE = re.compile(
    f"{LABEL}(?:\t{INTEGER}){{{N_INTEGERS}}}(?:\t{CATEGORY}){{{N_CATEGORIES}}}".encode()
)
BLOCK_LINES = 1 << 16
LONGEST_LINE_BYTES = 1 << 16  # a whole line of the format has some 350
READ_BYTES = 1 << 20


def read_log(path: Path, most: int | None = None, skip_bad: bool = False) -> tuple[RawClicks, int]:
    """The first `most` clicks of a log (all where None), and how many bad lines were skipped."""
    blocks: list[RawClicks] = []
    good: list[bytes] = []
    number, n, n_skipped = 0, 0, 0
    try:
        for number, line in enumerate(_lines(path), 1):
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            if CRITEO_LINE.fullmatch(text):
                good.append(text)
                n += 1
            elif len(line) > LONGEST_LINE_BYTES:
                raise _error(path, number, "a line without end; is this a click log?")
            elif not skip_bad:
                raise _error(path, number, _what_is_wrong(text.decode("utf-8", "replace")))
            else:
                n_skipped += 1
            if len(good) == BLOCK_LINES:
                blocks.append(_parsed(good))
                good = []
            if n == most:
                break
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        cause = "cut short" if isinstance(error, EOFError) else f"unreadable: {error}"
        if not skip_bad or isinstance(error, FileNotFoundError | IsADirectoryError):
            raise _error(path, number + 1, f"the file is {cause}") from error
        n_skipped += 1
    if not n:
        raise _error(path, 1, "holds no click")
    blocks += [_parsed(good)] if good else []
    columns = ([getattr(b, name) for b in blocks] for name in ("label", "integers", "categories"))
    return RawClicks(*(np.concatenate(column) for column in columns)), n_skipped


def _lines(path: Path) -> Iterator[bytes]:
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with BufferedReader(opened(path, "rb"), READ_BYTES) as file:
        yield from iter(partial(file.readline, LONGEST_LINE_BYTES + 1), b"")


def _parsed(lines: list[bytes]) -> RawClicks:
    """The clicks of good lines."""
    fields = np.array(b"\t".join(lines).split(b"\t"), "S19").reshape(len(lines), len(CELLS))
    integers, categories = np.split(fields[:, 1:], [N_INTEGERS], axis=1)
    no_integer, no_category = integers == b"", categories == b""
    integers[no_integer], categories[no_category] = b"0", b"00000000"
    numbers = integers.astype(np.int64).astype(np.float64)
    numbers[no_integer] = np.nan
    hexadecimal = categories.astype("S8").tobytes().decode()
    values = np.frombuffer(bytes.fromhex(hexadecimal), ">u4").astype(np.int64)
    values = values.reshape(categories.shape)
    values[no_category] = MISSING_CATEGORY
    label = (fields[:, 0] == b"1").astype(np.float32)
    return RawClicks(label, numbers.astype(np.float32), values)


def _what_is_wrong(line: str) -> str:
    """The first mistake of a line, with the field's name as Criteo numbers them."""
    values = line.split("\t")
    for number, (value, (name, pattern, wrong)) in enumerate(zip(values, CELLS, strict=False), 1):
        if len(values) == len(CELLS) and not re.fullmatch(pattern, value):
            start = value if len(value) <= 40 else f"{value[:40]}..."
            return f"field {number} ({name}): `{start}` {wrong}"
    return f"{len(values)} fields between tabs, not {len(CELLS)}"


def _error(path: Path, line: int, message: str) -> ClickError:
    return ClickError.at(Place(path, line), message)
