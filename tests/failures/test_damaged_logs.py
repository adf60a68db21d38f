"""Damaged logs in each format: the answer of the whole one, or one error with its place."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import TraceError
from tests.failures.test_forms import FORMS, OUTAGES, PERIOD, STEP_S, german, plain, short_iso, utc
from tests.failures.tidy import read

PLACE = re.compile(r":\d+: |\brow \d|\bbyte \d|\[\d+\]|can't be read: ")
AT = OUTAGES[100]
WHOLE = ("kubectl get events", "up", "Parquet of texts")  # one value, no lines
INSTANTS = {  # how each form writes the start and the end of an outage
    "ISO 8601": utc, "spreadsheet": german, "JSON lines": utc, "Parquet of texts": str,
    "sacctmgr show event": plain, "sacct": plain, "kubectl get events": utc,
    "up": lambda at: str(round(at.timestamp() / STEP_S) * STEP_S),
    "journalctl -k": lambda at: short_iso(at, ""),
}  # fmt: skip


def shuffled(content: bytes, name: str) -> bytes:
    head, *rows = content.splitlines(keepends=True)
    random.Random(1).shuffle(rows)
    return b"".join([head, *rows])


def cut(content: bytes, name: str) -> bytes:
    """Within an instant of a row, or in the middle of what is one whole."""
    at = len(content) // 2
    if name == "journalctl -k":  # a line that ends before its Xid is one of those without
        return content[: content.index(b"): 79", at) + 3]
    if name in WHOLE:
        return content[:at]
    return content[: content.index(INSTANTS[name](AT.start).encode()) + 5]


def no_instant(content: bytes, name: str) -> bytes:
    return content.replace(
        INSTANTS[name](AT.start).encode(), b"soon" if name != "up" else b'"soon"', 1
    )


def no_text(content: bytes, name: str) -> bytes:
    damaged = bytearray(content)
    damaged[len(content) // 2] = 0xFF
    return bytes(damaged)


def ends_before(content: bytes, name: str) -> bytes:
    end = INSTANTS[name](AT.end).encode()
    return content.replace(end, end.replace(b"2024", b"2023"))


LINES = [name for name in INSTANTS if name not in WHOLE]
TEXTS = [name for name in INSTANTS if name != "Parquet of texts"]
DAMAGES: list[tuple[Callable[[bytes, str], bytes], list[str], bool]] = [
    (shuffled, LINES, True), (lambda log, _: log + log.splitlines(keepends=True)[-1], LINES, True),
    (lambda log, _: log.rstrip(b"\r\n"), LINES, True),
    (lambda log, _: b"\xef\xbb\xbf" + log.replace(b"\n", b"\r\n") + b"\n  \n", [
        name for name in TEXTS if name != "spreadsheet"], True),
    (cut, list(INSTANTS), False), (no_text, TEXTS, False),
    (no_instant, TEXTS, False),
    (ends_before, ["ISO 8601", "spreadsheet", "JSON lines", "sacctmgr show event"], False),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", INSTANTS)
def test_a_damaged_log_gives_the_same_answer_or_one_error(tmp_path: Path, name: str) -> None:
    form = FORMS[name]
    content = form.in_bytes()
    options = {key: value for key, value in form.options.items() if key != "period"}
    first, last = PERIOD.split("..")

    def answer(damaged: bytes) -> np.ndarray:
        (path := tmp_path / form.name).write_bytes(damaged)
        found = read(path, period=(first, last), **options)
        return np.array([found.node, found.start_h, found.end_h])

    whole = answer(content)
    for damage, names, answered in DAMAGES:
        if name not in names:
            continue
        damaged = damage(content, name)
        assert damaged != content, damage
        if answered:
            np.testing.assert_array_equal(answer(damaged), whole)
            continue
        with pytest.raises(TraceError) as caught:
            answer(damaged)
        assert PLACE.search(str(caught.value)), (damage, str(caught.value))
        assert len(str(caught.value).splitlines()) == 1
