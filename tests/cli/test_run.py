"""``cprsim run``: what it leaves, finds again, replays and refuses."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.results.run import load_result
from tests.making import call, small_scenario


def folder_of(output: str) -> Path:
    return Path(re.search(r"^results +(\S+)", output, re.MULTILINE)[1])


def strategies(output: str) -> dict[str, dict[str, Any]]:
    return {one["strategy"]: one for one in json.loads(output)["frames"]["strategies"]}


def test_the_same_command_finds_its_folder_again_unless_it_is_damaged(cprsim, scenario):
    first = cprsim("run", scenario)
    assert "cpr chose partial recovery" in first.stdout
    folder = folder_of(first.stdout)
    assert len(load_result(folder).replications) == 3 * 20
    stamp = (folder / "manifest.json").stat().st_mtime_ns
    again = cprsim("run", scenario)
    assert "(found again)" in again.stdout
    assert folder_of(again.stdout) == folder
    assert (folder / "manifest.json").stat().st_mtime_ns == stamp
    assert first.stdout.split("results ")[0] == again.stdout.split("results ")[0]
    (folder / "summary.csv").write_text("nonsense")
    anew = cprsim("run", scenario)
    assert anew.exit_code == 0
    assert "summary.csv differs from its digest; it is made anew" in anew.stderr
    assert load_result(folder).name == "small"


def test_the_shortcuts_are_overrides_and_replications_take_the_place_of_a_precision(
    cprsim, scenario
):
    short = cprsim("run", scenario, "--seed", 5, "--replications", 4)
    sets = ("--set", "simulation.seed=5", "--set", "simulation.replications=4")
    assert folder_of(short.stdout) == folder_of(cprsim("run", scenario, *sets).stdout)
    precise = scenario.read_text().replace("replications: 20", "precision: 20 %, at_most: 200")
    scenario.write_text(precise)
    called = cprsim("run", scenario, "--replications", 7, "--json")
    assert {one["replications"] for one in strategies(called.stdout).values()} == {7}


def test_a_replay_is_a_replication_of_the_whole_run_by_its_number_or_its_overhead(cprsim, scenario):
    told = json.loads(cprsim("run", scenario, "--json").stdout)
    whole = load_result(told["folder"]).replications
    for name, number in ({"17": 17} | told["values"]["worth_seeing"]).items():
        replayed = json.loads(cprsim("run", scenario, "--replay", name, "--json").stdout)
        assert replayed["folder"].endswith(f"-replay-{number}")
        alone = load_result(replayed["folder"])
        mine = whole[whole["replication"] == number].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone.replications, mine)
        assert set(alone.timeline["replication"]) == {number}
        assert len(pd.read_csv(alone.path / "events.csv")) == len(alone.timeline)
    assert not (Path(told["folder"]) / "events.csv").exists()


def test_accuracy_stands_beside_overhead_and_an_assumed_limit_is_called_one(cprsim, scenario):
    curve = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
    (scenario.parent / "mine.csv").write_text(curve)
    shown = cprsim("run", scenario, "--set", "accuracy.curve=mine.csv", "--json").stdout
    assert (Path(json.loads(shown)["folder"]) / "curve.csv").read_text() == curve
    losses = {name: one["auc_loss"] for name, one in strategies(shown).items()}
    assert losses["full"] == 0 < losses["partial"] < losses["cpr"]
    scenario.write_text(
        small_scenario().replace("target_pls: 0.1", "target_pls: 0.1, assumed: true")
    )
    said = cprsim("run", scenario).stdout
    assert "\n\ncpr has a default limit that you have not confirmed" in said
    assert said.count("but it leaves shards stale, and no confirmed limit allows it") == 1
    assert "Use full" in said
    given = cprsim("run", scenario, "--set", "recovery.cpr.target_pls=0.1").stdout
    assert "default limit" not in given
    assert "Use cpr" in given


def test_what_is_replayed_of_a_log_is_said_and_what_was_closed(scenario):
    rows = "a,10,11,disk\nb,30,,gpu\na,45,46,disk\nb,60,61,disk\na,85,86,gpu\nb,85,87,gpu\n"
    scenario.with_name("log.csv").write_text(f"node,start,end,cause\n{rows}a,10,11,disk\n")

    def run(keys, *options):
        log = f"kind: trace, file: log.csv, format: tidy, time_unit: h, nodes: 7, {keys}"
        sets = ("--set", f"failures={{{log}}}", "--set", "recovery=[full]")
        return call("run", scenario, *sets, *options).stdout

    replayed, *notes = json.loads(run("period: {from: 0, to: 100}", "--json"))["values"][
        "log_notes"
    ]
    assert replayed == "6 node failures of 7 nodes in 100 h from 0 h on"
    closed = "1 outage without an end, closed by the next failure of the node"
    assert closed in notes
    assert f"Log: {closed}." in run("period: {from: 0, to: 100}")  # which finds it again
    some = json.loads(run("period: {to: 500}, cause: Disk, repair: 90 min", "--json"))
    assert some["values"]["log_notes"][0] == "3 node failures of 7 nodes in 490 h from 10 h on"
