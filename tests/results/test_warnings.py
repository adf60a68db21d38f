"""A save that goes on for longer than the interval is warned of, wherever its cost is shown."""

from __future__ import annotations

import pytest

import cprsim
from cprsim.results.run import warnings_of
from tests.making import call, maker, small_scenario

SLOW = ["costs.save={stall: 1 s, background: 5 min}"]
EVERY_2_MIN = "recovery=[{strategy: full, interval: 2 min}]"
SAID = (
    "full: a save goes on in the background for 5 min, longer than the interval of 2 min: each "
    "save waits for the one before it, and the job with it. Take an interval of at least 5 min."
)


@pytest.mark.parametrize(
    ("overrides", "warned"),
    [
        ([*SLOW, EVERY_2_MIN], 1),
        ([*SLOW, "recovery=[{strategy: full, interval: 5 min}]"], 0),
        ([*SLOW, "recovery=[{strategy: full, interval: 6 min}]"], 0),
        (["costs.save=5 min", EVERY_2_MIN], 0),  # it stalls the job: nothing waits for it
        ([*SLOW, "recovery=[none, {strategy: partial, interval: never}]"], 0),
        ([*SLOW, "job.useful=3 min", EVERY_2_MIN], 0),  # one save alone waits for none
        ([*SLOW, "recovery=[{strategy: cpr-mfu, interval: 4 min}]"], 1),
        ([*SLOW, "recovery=[{strategy: cpr-mfu, interval: 10 min}]"], 0),  # r of both times
        (
            ["costs.save={stall: 1 s, background: {family: gamma, mean: 5 min, shape: 2}}",
             EVERY_2_MIN], 1,
        ),
        (
            ["costs.save={stall: 1 s, background: transfer}", "cluster.shard_size=100 GB",
             "storage={bandwidth: 1 Gbit/s}", EVERY_2_MIN], 1,
        ),
    ],
)  # fmt: skip
def test_a_background_that_is_longer_than_the_interval_is_warned_of(tmp_path, overrides, warned):
    assert len(warnings_of(maker(tmp_path, small_scenario())(*overrides))) == warned


@pytest.mark.parametrize(("remote_every", "warned"), [("2 min", 1), ("5 min", 0)])
def test_a_system_is_warned_of_for_each_tier_that_is_too_slow(tmp_path, remote_every, warned):
    every = f"[1 min, 2 h, {remote_every}]"  # on the disk, with a partner, far away
    text = small_scenario(f"{{strategy: scr, options: {{disk: 1 GB/s, every: {every}}}}}")
    job = ["cluster.shard_size=10 GB", "cluster.link=10 Gbit/s", "storage={bandwidth: 1 GB/s}"]
    said = warnings_of(maker(tmp_path, text)(*SLOW, *job))
    assert len(said) == warned
    slow = "scr: a save to `remote` goes on in the background for 5 min, longer than the 2 min in"
    assert all(one.startswith(slow) for one in said)


@pytest.mark.parametrize(("when_busy", "warned"), [("wait", 1), ("skip", 0)])
def test_saves_that_are_left_out_while_one_is_under_way_hold_up_nobody(tmp_path, when_busy, warned):
    options = (
        "tiers: [{name: far, medium: remote}], captures: [{tier: far, every: 2 min, "
        f"when_busy: {when_busy}}}], rules: [{{reverts: all, sources: [far], stages: [load]}}]"
    )
    text = small_scenario(f"{{strategy: policy, options: {{{options}}}}}")
    assert len(warnings_of(maker(tmp_path, text)(*SLOW))) == warned


def test_it_is_said_by_validate_and_run_for_people_for_scripts_and_on_the_page(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cprsim.plots.save.save_figures", lambda *_, **__: [])
    path = tmp_path / "small.yaml"
    path.write_text(small_scenario("{strategy: full, interval: 2 min}", replications=3), "utf-8")
    changed = ["--set", SLOW[0]]
    checked = call("validate", path, *changed)
    assert checked.exit_code == 0
    assert checked.stdout.splitlines() == [f"{path}: ok (small: full)", "", f"Warning: {SAID}"]
    assert "Warning" not in call("validate", path).stdout
    assert f"Warning: {SAID}" in call("run", path, *changed).stdout
    answer = cprsim.run(path, changed[1:], folder=tmp_path)
    assert answer.values["warnings"] == (SAID,)
    assert answer.document.remarks[0] == f"Warning: {SAID}"
    (row,) = answer.frames["strategies"].to_dict("records")
    assert row["overhead_fraction"] > 1.4  # 5 min in place of 2
