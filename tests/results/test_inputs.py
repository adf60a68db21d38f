"""In what results differ that went into them."""

from __future__ import annotations

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


def test_every_key_of_the_scenario_that_differs_is_listed_with_both_values(write):
    def inputs(seed, text, digest, **changed):
        about = {"command": [], "seed": seed}
        made = write(identity=Identity(f"r{seed}", text, {"outages.csv": digest * 32}), about=about)
        return inputs_of(stored_scenario(made.path), {**made.manifest, **changed})

    source = {"version": "9.9", "source": "f" * 64, "git": {"commit": "e" * 40}}
    newer = {"replications": {"full": 200}, "cprsim": source, "libraries": {"numpy": "9.0"}}
    old = inputs(1, ONE, "ab")
    frame = different({"1": old, "2": inputs(2, OTHER, "cd", python="3.99", **newer)})
    found = {key: tuple(values) for key, *values in frame.to_numpy().tolist()}
    assert (
        found.items()
        >= {
            "failures.mtbf": ("28 h", "14 h"),
            "recovery.full.interval": ("2 h", "3 h"),
            "recovery.mine.strategy": ("cpr", "–"),
            "recovery.mine.target_pls": ("0.1", "–"),
            "simulation.seed": ("1", "2"),
            "replications.full": ("3", "200"),
            "input.outages.csv": ("ab" * 5, "cd" * 5),
        }.items()
    )
    new = {"cprsim": "9.9", "source of cprsim": "f" * 10, "library.numpy": "9.0", "Python": "3.99"}
    assert {key: found[key][1] for key in new} == new
    assert not different({"1": old, "2": old}).size
