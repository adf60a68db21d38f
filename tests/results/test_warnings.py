"""A save that goes on for longer than the interval is warned of, wherever its cost is shown."""

from __future__ import annotations

import pytest

import cprsim
from cprsim.results.run import warnings_of
from tests.making import call, maker, small_scenario

SLOW = ["costs.save={stall: 1 s, background: 5 min}"]
SAID = (
    "full: a save goes on in the background for 5 min, longer than the interval of 2 min: each "
    "save waits for the one before it, and the job with it. Take an interval of at least 5 min."
)


JOB = ["cluster.shard_size=10 GB", "cluster.link=10 Gbit/s", "storage={bandwidth: 1 GB/s}"]
TIERS = "{{strategy: scr, options: {{disk: 1 GB/s, every: [1 min, 2 h, {}]}}}}"  # the last far away
OWN = (
    "{{strategy: policy, options: {{tiers: [{{name: far, medium: remote}}], captures: [{{tier: "
    "far, every: 2 min, when_busy: {}}}], rules: [{{reverts: all, sources: [far], stages: [load]}}"
    "]}}}}"
)
FULL = "{strategy: full, interval: 2 min}"


@pytest.mark.parametrize(
    ("recovery", "overrides", "warned"),
    [
        (FULL, SLOW, SAID),
        ("{strategy: full, interval: 5 min}", SLOW, None),
        (FULL, ["costs.save=5 min"], None),  # it stalls the job: nothing waits for it
        (FULL, [*SLOW, "job.useful=3 min"], None),  # one save alone waits for none
        ("{strategy: cpr-mfu, interval: 4 min}", SLOW, "cpr-mfu: a save"),
        ("{strategy: cpr-mfu, interval: 10 min}", SLOW, None),  # r of both times
        (FULL, ["costs.save={stall: 1 s, background: {family: gamma, mean: 5 min, shape: 2}}"],
         SAID),
        # a system is warned of for each tier that is too slow
        (TIERS.format("2 min"), [*SLOW, *JOB], "scr: a save to `remote` goes on in the background "
         "for 5 min, longer than the 2 min in"),
        (TIERS.format("5 min"), [*SLOW, *JOB], None),
        # saves that are left out while one is under way hold up nobody
        (OWN.format("wait"), SLOW, "policy: a save to `far`"),
        (OWN.format("skip"), SLOW, None),
    ],
)  # fmt: skip
def test_a_background_that_is_longer_than_the_interval_is_warned_of(
    tmp_path, recovery, overrides, warned
):
    said = warnings_of(maker(tmp_path, small_scenario(recovery))(*overrides))
    assert len(said) == (warned is not None)
    assert all(one.startswith(warned) for one in said)


def test_it_is_said_by_validate_and_run(scenario):
    scenario.write_text(small_scenario(FULL, replications=3), "utf-8")
    checked = call("validate", scenario, "--set", *SLOW)
    assert checked.stdout.splitlines() == [f"{scenario}: ok (small: full)", "", f"Warning: {SAID}"]
    answer = cprsim.run(scenario, SLOW)
    assert answer.values["warnings"] == (SAID,)
    assert answer.document.remarks[0] == f"Warning: {SAID}"
