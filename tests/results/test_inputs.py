"""In what results differ that went into them."""

from __future__ import annotations

import pytest

from cprsim.results.compare import different, inputs_of
from cprsim.results.identity import Identity

ONE = """\
name: made-up
job: {useful: 10 h}
failures: {kind: job, family: gamma, mtbf: 28 h}
recovery:
- {strategy: full, name: full, interval: 2 h}
- {strategy: cpr, name: mine, target_pls: 0.1}
simulation: {seed: 1, replications: 3}
"""
OTHER = ONE.replace("28 h", "14 h").replace("2 h}", "3 h}").replace("seed: 1", "seed: 2").replace(
    "- {strategy: cpr, name: mine, target_pls: 0.1}\n", ""
)  # fmt: skip


@pytest.fixture
def differing(write):
    """In what two written results differ, by key."""

    def _differing(one=ONE, other=OTHER, about=(("seed", 1), ("seed", 2)), inputs=({}, {})):
        results = [
            write(identity=Identity(f"r{n}", text, files), about={"command": [], **dict([more]),
                  "failures_digest": "same"})
            for n, (text, more, files) in enumerate(zip((one, other), about, inputs, strict=True))
        ]  # fmt: skip
        return different([inputs_of(result.path, result.manifest) for result in results]), results

    return _differing


def test_every_key_of_the_scenario_that_differs_is_listed_with_both_values(differing):
    found, _ = differing()
    assert {one.key: one.values for one in found} == {
        "failures.mtbf": ("28 h", "14 h"),
        "recovery.full.interval": ("2 h", "3 h"),
        "recovery.mine.strategy": ("cpr", "–"),
        "recovery.mine.target_pls": ("0.1", "–"),
        "simulation.seed": ("1", "2"),
    }


def test_replications_files_and_versions_are_inputs_too(differing):
    replications = [("replications", {"full": 100}), ("replications", {"full": 200})]
    files = ({"outages.csv": "ab" * 32}, {"outages.csv": "cd" * 32})
    _, (a, b) = differing(ONE, ONE, replications, files)
    newer = dict(b.manifest)
    newer["cprsim"] = {"version": "9.9", "source": "f" * 64, "git": {"commit": "e" * 40}}
    newer["libraries"] = {**newer["libraries"], "numpy": "9.0"}
    newer["python"] = "3.99"
    found = different([inputs_of(a.path, a.manifest), inputs_of(b.path, newer)])
    by_key = {one.key: one.values for one in found}
    assert by_key["replications.full"] == ("100", "200")
    assert by_key["input.outages.csv"] == ("ab" * 5, "cd" * 5)
    assert by_key["cprsim"][1] == "9.9"
    assert by_key["source of cprsim"][1] == "f" * 10
    assert by_key["library.numpy"][1] == "9.0"
    assert by_key["Python"][1] == "3.99"
    assert "simulation.seed" not in by_key
