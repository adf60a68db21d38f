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
AT = OUTAGES[30].start
WHOLE = ("kubectl get events", "up", "Parquet of texts")  # one value, no lines
INSTANTS = {  # how each form writes an instant
    "ISO 8601": utc, "spreadsheet": german, "JSON lines": utc, "Parquet of texts": str,
    "sacctmgr show event": plain, "sacct": plain, "kubectl get events": utc,
    "up": lambda at: str(round(at.timestamp() / STEP_S) * STEP_S),
    "journalctl -k": lambda at: short_iso(at, ""),
}  # fmt: skip


def shuffled(log: bytes, name: str) -> bytes:
    """And one row twice, the last without an end of line."""
    head, *rows = log.splitlines(keepends=True)
    random.Random(1).shuffle(rows)
    return b"".join([head, *rows, rows[-1]]).rstrip(b"\r\n")


def from_windows(log: bytes, name: str) -> bytes:
    return b"\xef\xbb\xbf" + log.removeprefix(b"\xef\xbb\xbf").replace(b"\n", b"\r\n") + b"\n  \n"


def cut(log: bytes, name: str) -> bytes:
    """Within an instant of a row, or in the middle of what is one whole."""
    middle = len(log) // 2
    if name == "journalctl -k":  # a line that ends before its Xid is one of those without
        return log[: log.index(b"): 79", middle) + 3]
    return log[:middle] if name in WHOLE else log[: log.index(INSTANTS[name](AT).encode()) + 5]


def no_instant(log: bytes, name: str) -> bytes:
    return log.replace(INSTANTS[name](AT).encode(), b"soon" if name != "up" else b'"soon"', 1)


def no_text(log: bytes, name: str) -> bytes:
    return log[: len(log) // 2] + b"\xff" + log[len(log) // 2 + 1 :]


LINES = [name for name in INSTANTS if name not in WHOLE]
TEXTS = [name for name in INSTANTS if name != "Parquet of texts"]
DAMAGES: list[tuple[Callable[[bytes, str], bytes], list[str], bool]] = [
    (shuffled, LINES, True),
    (from_windows, TEXTS, True),
    (cut, list(INSTANTS), False),
    (no_text, TEXTS, False),
    (no_instant, TEXTS, False),
]


@pytest.mark.long
@pytest.mark.parametrize("name", INSTANTS)
def test_a_damaged_log_gives_the_same_answer_or_one_error(tmp_path: Path, name: str) -> None:
    form, path = FORMS[name], tmp_path / "log"

    def answer(log: bytes) -> np.ndarray:
        path.write_bytes(log)
        outages = read(path, **{"period": PERIOD, **form.options})
        return np.array([outages.node, outages.start_h, outages.end_h])

    whole = answer(form.in_bytes())
    for damage, names, is_answered in DAMAGES:
        if name not in names:
            continue
        damaged = damage(form.in_bytes(), name)
        if is_answered:
            np.testing.assert_array_equal(answer(damaged), whole)
            continue
        with pytest.raises(TraceError) as caught:
            answer(damaged)
        assert PLACE.search(str(caught.value)), (damage, str(caught.value))
        assert len(str(caught.value).splitlines()) == 1
