"""How many contents `compare-systems` says to keep against silent errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.closed_forms import p_none_clean
from tests.making import call

SCENARIO = """\
name: errors
job: {useful: 100 h}
cluster: {workers: 4}
failures: {kind: job, role: any, family: exponential, mtbf: 40 h}
silent: {mtbf: 40 h, latency: {family: exponential, mean: 45 min}}
costs: {save: {stall: 3 min, kept: 2}, load: 3 min}
recovery: [{strategy: full, interval: 57 min}]
simulation: {replications: 60}
"""


@pytest.fixture
def compared(tmp_path: Path) -> Any:
    """The answer in words and as JSON, which the second call finds."""
    path = tmp_path / "errors.yaml"

    def run(text: str = SCENARIO) -> tuple[str, Any]:
        path.write_text(text, "utf-8")
        asked = ("compare-systems", path, "--fixed", "--only", "full", "--out", tmp_path)
        words = call(*asked).stdout
        return words, json.loads(call(*asked, "--json").stdout)

    return run


def test_contents_kept_against_silent_errors(compared: Any) -> None:
    words, answer = compared()
    contents = answer["contents"]
    assert [one["n_kept"] for one in contents] == [*range(1, 9)]
    for one in contents:
        p = p_none_clean(one["n_kept"], 1.0, 0.75)
        assert one["none_clean"] == pytest.approx(p, abs=2e-3)
    now = answer["systems"][0]["overhead_fraction"]
    assert contents[1]["overhead"] == pytest.approx(now, abs=1e-9)  # on the same failures
    enough = next(one["n_kept"] for one in contents if not one["costs_more"])
    assert 2 <= enough <= 7
    assert f"Keep {enough} contents (`costs.save.kept`): with more" in words
    assert answer["said"][1] in words.replace("\n", " ")


def test_with_a_check_before_each_save_one_content_is_enough(compared: Any) -> None:
    words, answer = compared(
        SCENARIO.replace("mtbf: 40 h, latency", "check: {takes: 1 min}, mtbf: 40 h, latency")
    )
    assert {one["none_clean"] for one in answer["contents"]} == {0.0}
    assert "Keep 1 content (" in words


def test_without_silent_errors_nothing_is_said(compared: Any) -> None:
    lines = [line for line in SCENARIO.splitlines() if not line.startswith("silent")]
    words, answer = compared("\n".join(lines))
    assert answer["contents"] == []
    assert "content" not in words
