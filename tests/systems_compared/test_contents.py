"""How many contents a comparison says to keep against silent errors."""

from __future__ import annotations

import pytest

import cprsim
from cprsim.present.answer import Answer
from tests.closed_forms import p_none_clean

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


def compared(text: str = SCENARIO) -> tuple[str, Answer]:
    """The answer in words, and as frames."""
    answer = cprsim.systems(text, fixed=True, only=["full"])
    return str(answer), answer


def test_contents_kept_against_silent_errors() -> None:
    words, answer = compared()
    contents = answer.frames["contents"]
    assert [*contents["n_kept"]] == [*range(1, 9)]
    for one in contents.itertuples():
        p = p_none_clean(one.n_kept, 1.0, 0.75)
        assert one.none_clean_fraction == pytest.approx(p, abs=2e-3)
    (now,) = answer.frames["systems"]["overhead_fraction"]
    assert contents["overhead_fraction"][1] == pytest.approx(now, abs=1e-9)  # same failures
    enough = contents["n_kept"][~contents["costs_more"]].min()
    assert 2 <= enough <= 7
    assert f"Keep {enough} contents ('costs.save.kept'): with more" in words


def test_with_a_check_before_each_save_one_content_is_enough() -> None:
    words, answer = compared(
        SCENARIO.replace("mtbf: 40 h, latency", "check: {takes: 1 min}, mtbf: 40 h, latency")
    )
    assert {*answer.frames["contents"]["none_clean_fraction"]} == {0.0}
    assert "Keep 1 content (" in words
