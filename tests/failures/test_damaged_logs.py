"""Fifty damaged variants of a log in each format: the answer where there is one, else one error."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cprsim.errors import CprsimError, TraceError
from tests.failures.samples import PERIOD, POINTS, ROWS, WRITERS, Row
from tests.failures.test_formats import said
from tests.failures.tidy import read

N_VARIANTS = 50
PLACE = re.compile(r":\d+: |\brow \d|\bbyte \d|\[\d+\]|at character \d|can't be read: ")

Rows = tuple[Row, ...]
Variant = tuple[bytes, Rows | None, str]  # content, what it says (None: an error), suffix


def _shuffled(name: str, rng: random.Random) -> Variant:
    rows = tuple(rng.sample(ROWS, len(ROWS)))
    return WRITERS[name](rows), ROWS, ""


def _row_lost(name: str, rng: random.Random) -> Variant:
    lost = rng.randrange(len(ROWS) - 1)  # the last has no end
    rows = ROWS[:lost] + ROWS[lost + 1 :]
    return WRITERS[name](rows), rows, ""


def _row_twice(name: str, rng: random.Random) -> Variant:
    return WRITERS[name]((*ROWS, rng.choice(ROWS[:-1]))), ROWS, ""


def _packed(name: str, rng: random.Random) -> Variant:
    suffix, pack = rng.choice(((".gz", gzip.compress), (".xz", lzma.compress)))
    content = WRITERS[name](ROWS)
    return (content, ROWS, "") if name == "parquet" else (pack(content), ROWS, suffix)


def _of_another_system(name: str, rng: random.Random) -> Variant:
    """CRLF, a byte order mark, blank lines, no end of the last line."""
    content = WRITERS[name](ROWS)
    if name == "parquet":
        return content, ROWS, ""
    content = content.replace(b"\n", b"\r\n") if rng.random() < 0.5 else content
    content = b"\xef\xbb\xbf" + content if rng.random() < 0.5 else content
    content = content.rstrip(b"\r\n") if rng.random() < 0.5 else content + b"\n  \n"
    return content, ROWS, ""


def _cut(name: str, rng: random.Random) -> Variant:
    """The file ends within a row's time stamp, or in the middle of what is one whole."""
    content = WRITERS[name](ROWS)
    if name in ("parquet", "kubernetes", "prometheus"):
        return content[: rng.randrange(len(content) // 4, len(content) * 3 // 4)], None, ""
    row = rng.choice(ROWS[1:])
    if name == "nvidia-xid":  # a line that ends before its Xid is one of those without
        at = content.index(b"): 79", content.index(row.start.encode()))
        return content[: at + 3], None, ""
    return content[: content.index(row.start.encode()) + rng.randrange(5, 13)], None, ""


def _no_time(name: str, rng: random.Random) -> Variant:
    """A time stamp becomes something else."""
    row, bad = rng.choice(ROWS), rng.choice(("soon", "2024-13-45T99:00:00", "2024-05-99T01:00:00"))
    if name == "parquet":
        return (
            WRITERS[name](tuple(r._replace(start=bad) if r == row else r for r in ROWS)),
            None,
            "",
        )
    if name == "prometheus":
        content = json.loads(WRITERS[name](ROWS))
        series = rng.choice(content["data"]["result"])
        rng.choice(series["values"])[rng.randrange(2)] = bad
        return json.dumps(content).encode(), None, ""
    return WRITERS[name](ROWS).replace(row.start.encode(), bad.encode()), None, ""


def _no_text(name: str, rng: random.Random) -> Variant:
    """A byte that no text has, somewhere."""
    content = bytearray(WRITERS[name](ROWS))
    if name == "parquet":
        return bytes(content[:-4]) + b"\xff\xff\xff\xff", None, ""
    content[rng.randrange(len(content) // 3, len(content) - 1)] = 0xFF
    return bytes(content), None, ""


def _backwards(name: str, rng: random.Random) -> Variant:
    """An outage ends before it begins; instants and samples have no end: another byte is bad."""
    if name in POINTS | {"prometheus", "kubernetes"}:
        return _no_text(name, rng)
    row = rng.choice(ROWS[:-1])
    rows = tuple(r._replace(end="2024-04-01T00:00:00") if r == row else r for r in ROWS)
    return WRITERS[name](rows), None, ""


BENIGN = (_shuffled, _row_lost, _row_twice, _packed, _of_another_system)
MALIGN = (_cut, _no_time, _no_text, _backwards)


def variants(name: str) -> list[tuple[str, Variant]]:
    """Half of them can be answered, half can't."""
    rng = random.Random(f"damaged {name}")
    made = []
    for number in range(N_VARIANTS):
        kinds: tuple[Callable[[str, random.Random], Variant], ...] = (BENIGN, MALIGN)[number % 2]
        damage = kinds[number // 2 % len(kinds)]
        made.append((damage.__name__, damage(name, rng)))
    return made


@pytest.mark.long
@pytest.mark.parametrize("name", WRITERS)
def test_damaged_logs_give_the_known_answer_or_one_error_with_its_place(
    tmp_path: Path, name: str
) -> None:
    n_answered = 0
    for number, (damage, (content, rows, suffix)) in enumerate(variants(name)):
        path = tmp_path / f"log{number}{suffix}"
        path.write_bytes(content)
        if rows is None:
            with pytest.raises(CprsimError) as caught:
                read(path, format=name, period=PERIOD)
            assert isinstance(caught.value, TraceError), damage
            assert PLACE.search(str(caught.value)), (damage, str(caught.value))
            assert len(str(caught.value).splitlines()) == 1
            continue
        outages = read(path, format=name, period=PERIOD)
        expected = {(row.node, row.start, "" if name in POINTS else row.end) for row in rows}
        assert said(outages, ends=name not in POINTS) == expected, damage
        n_answered += 1
    assert n_answered >= N_VARIANTS / 2
