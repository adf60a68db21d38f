"""What the numbers are, compared with what is kept beside this file: records, not theory.

Where a change moves them on purpose, write them anew (`make.py`), look at the difference, and say
in the commit why they moved and by how much.
"""

import json

import pytest

from tests.golden.make import KINDS, file, found, moved, short
from tests.golden.plain import NO_DATA

SHOWN = 12
MAY_GO = ("text ", "data ") if NO_DATA else ("text ", "data text ")
"""Names of what goes with a document or a test, or is not there without the real logs."""


@pytest.mark.parametrize(
    ("kind", "pace"),
    [pytest.param(*one, marks=[pytest.mark.long] * (one[1] == "slow")) for one in KINDS],
)
@pytest.mark.filterwarnings("ignore")
def test_nothing_moved(kind: str, pace: str) -> None:
    before = json.loads(file(kind, pace).read_text("utf-8"))
    now = {name: short(kind, name, value) for name, value in found(kind, pace).items()}
    before = {n: one for n, one in before.items() if n in now or not n.startswith(MAY_GO)}
    wrong = moved(kind, before, now)
    assert not wrong, f"{len(wrong)} moved\n" + "\n".join(wrong[:SHOWN])
