"""Damaged scenarios and logs are taken or refused: exit code 0 or 2, no traceback, no hang."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.making import SCENARIOS, call

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
TEXTS = sorted(SCENARIOS.glob("*.yaml"))
LOGS = [EXAMPLES / name for name in ("failures.csv", "saves.csv", "attempts.csv", "spot.csv")]
JUNK = st.sampled_from(
    ["", "null", "-1", "1e400", "nan", "[", "{}", "\0", "\t", "2026-13-42", "ü", "&a", "*a", "!!x"]
)
SETTINGS = settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, files: list[Path]) -> tuple[str, str]:
    """A file name, and its text with a few lines dropped, repeated, cut or with junk in them."""
    path = draw(st.sampled_from(files))
    lines = path.read_text("utf-8").splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        how = draw(st.sampled_from(["drop", "twice", "junk", "cut"]))
        line = lines[at] if lines else ""
        cut = draw(st.integers(0, len(line)))
        lines[at : at + 1] = {
            "drop": [], "twice": [line, line], "cut": [line[:cut]],
            "junk": [line[:cut] + draw(JUNK) + line[cut + draw(st.integers(0, 5)) :]],
        }[how]  # fmt: skip
    return path.name, "\n".join(lines)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("validate", TEXTS),
        ("fit --time-unit h", LOGS),
        ("fit --format costs", LOGS),
        ("calibrate", LOGS),
        ("ledger", LOGS),
    ],
)
@SETTINGS
@given(st.data())
def test_a_damaged_file_is_taken_or_refused(
    command: str, files: list[Path], data: st.DataObject
) -> None:
    name, text = data.draw(damaged(files))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text, "utf-8")
        done = call(*command.split(), path)
    assert done.exit_code in (0, 2), done.output
    assert "Traceback" not in done.output
