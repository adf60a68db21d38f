"""In what results differ that went into them."""

from __future__ import annotations

import pytest

from cprsim.present.comparison import different
from cprsim.results.folder import stored_scenario
from cprsim.results.identity import Identity, inputs_of

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


def by_key(*results):
    """The inputs that differ."""
    frame = different({str(n): inputs_of(*one) for n, one in enumerate(results)})
    return {key: tuple(values) for key, *values in frame.to_numpy().tolist()}


@pytest.fixture
def differing(write):
    """In what two written results differ, by key."""

    def _differing(one=ONE, other=OTHER, about=(("seed", 1), ("seed", 2)), inputs=({}, {})):
        results = [
            write(identity=Identity(f"r{n}", text, files), about={"command": [], **dict([more])})
            for n, (text, more, files) in enumerate(zip((one, other), about, inputs, strict=True))
        ]  # fmt: skip
        return by_key(*((stored_scenario(one.path), one.manifest) for one in results)), results

    return _differing


def test_every_key_of_the_scenario_that_differs_is_listed_with_both_values(differing):
    found, _ = differing()
    assert found == {
        "failures.mtbf": ("28 h", "14 h"),
        "recovery.full.interval": ("2 h", "3 h"),
        "recovery.mine.strategy": ("cpr", "–"),
        "recovery.mine.target_pls": ("0.1", "–"),
        "simulation.seed": ("1", "2"),
    }


def test_replications_files_and_versions_are_inputs_too(differing):
    files = ({"outages.csv": "ab" * 32}, {"outages.csv": "cd" * 32})
    _, (a, b) = differing(ONE, ONE, (("seed", 1),) * 2, files)
    newer = {**b.manifest, "replications": {"full": 200}}
    newer["cprsim"] = {"version": "9.9", "source": "f" * 64, "git": {"commit": "e" * 40}}
    newer["libraries"] = {**newer["libraries"], "numpy": "9.0"}
    newer["python"] = "3.99"
    found = by_key((stored_scenario(a.path), a.manifest), (stored_scenario(b.path), newer))
    assert found["replications.full"] == ("3", "200")
    assert found["input.outages.csv"] == ("ab" * 5, "cd" * 5)
    assert found["cprsim"][1] == "9.9"
    assert found["source of cprsim"][1] == "f" * 10
    assert found["library.numpy"][1] == "9.0"
    assert found["Python"][1] == "3.99"
    assert "simulation.seed" not in found
