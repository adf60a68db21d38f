"""The section `silent` of a scenario: what it makes of a job, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.experiments.pipeline import simulate
from tests.engines import assert_same
from tests.making import Make, call, maker, small_scenario

SILENT = "silent: {mtbf: 8 h, latency: {family: exponential, mean: 1 h}}\n"


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return maker(tmp_path, small_scenario() + SILENT)


@pytest.mark.parametrize(
    "overrides",
    [(), ("silent.check={takes: 1 min}",), ("silent.check={takes: 1 min, every: 40 min}",)],
)
@pytest.mark.parametrize("clock", ["wall", "progress"])
def test_both_engines_give_the_same_rows(
    make: Make, clock: str, overrides: tuple[str, ...]
) -> None:
    given = (*overrides, f"failures.clock={clock}")
    ours, theirs = (simulate(make(*given, f"simulation.engine={e}")) for e in ("auto", "simpy"))
    for one, other in zip(ours.strategies, theirs.strategies, strict=True):
        assert_same(one.costs, other.costs)


def test_other_failures_stay_where_they_are(make: Make) -> None:
    """Each source has streams of its own; expected failures count the errors."""
    without, with_errors = make("silent=null"), make()
    sources = dict(with_errors.failures.sources)  # type: ignore[attr-defined]
    assert sources[""] == without.failures
    expected = with_errors.failures.expected(with_errors.cluster, with_errors.useful_h)
    assert 1 / expected.mtbf_h == pytest.approx(1 / 10 + 1 / 8)
    assert with_errors.expected_shares == pytest.approx((8 / 18, 10 / 18))


@pytest.mark.parametrize("command", ["train", "rehearse"])
def test_commands_that_know_no_silent_errors_refuse_them(command: str, tmp_path: Path) -> None:
    path = tmp_path / "errors.yaml"
    path.write_text(small_scenario("full") + SILENT, "utf-8")
    done = call(command, path, "--out", tmp_path)
    assert done.exit_code == 2
    assert "errors.yaml:8: silent: is left out of what is trained or rehearsed" in done.output
