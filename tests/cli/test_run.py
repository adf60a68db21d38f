"""``cprsim run``: what it leaves, finds again, replays and refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cprsim.results.run import load_result
from tests.making import SCENARIOS, small_scenario


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


def test_a_job_that_can_never_finish_has_no_overhead(cprsim, scenario):
    hopeless = ["--set", "failures.mtbf=1 min", "--set", "job.useful=12 min", "--replications", 2]
    called = cprsim("run", scenario, "--set", "recovery=[none]", *hopeless, "--json")
    assert called.exit_code == 0
    none = strategies(called.stdout)["none"]
    assert (none["finished_fraction"], none["overhead_fraction"]) == (0, None)


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


@pytest.mark.parametrize("name", ["criteo-kaggle", "criteo-terabyte"])
def test_the_papers_scenarios_show_the_loss_by_the_shipped_curve(cprsim, name):
    """Every strategy has its loss: none under full recovery, less where hot rows are fresher."""
    called = cprsim("run", SCENARIOS / f"{name}.yaml", "--replications", 200, "--json")
    lost = {name: one["auc_loss"] for name, one in strategies(called.stdout).items()}
    assert lost["full"] == 0
    assert 0 < lost["partial"] < lost["cpr-mfu"] < lost["cpr"] < 0.01
    assert lost.keys() >= {"cpr-ssu", "cpr-scar"}


def test_accuracy_stands_beside_overhead_and_an_assumed_limit_is_called_one_first(cprsim, scenario):
    curve = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
    (scenario.parent / "mine.csv").write_text(curve)
    named = ("--set", "accuracy.curve=mine.csv")
    shown = cprsim("run", scenario, *named, "--json").stdout
    assert (Path(json.loads(shown)["folder"]) / "curve.csv").read_text() == curve
    losses = {name: one["auc_loss"] for name, one in strategies(shown).items()}
    assert losses["full"] == 0 < losses["partial"] < losses["cpr"]
    scenario.write_text(
        small_scenario().replace("target_pls: 0.1", "target_pls: 0.1, assumed: true")
    )
    said = cprsim("run", scenario).stdout
    assert "\n\nThe limit of cpr is assumed, nobody gave it: a portion of 0.1 of" in said
    assert "By the shipped curves, the nearest there are, it costs 0.00" in said
    assert "(PLS). It costs 0.00" in cprsim("run", scenario, *named).stdout
    given = cprsim("run", scenario, "--set", "recovery.cpr.target_pls=0.1").stdout
    assert "is assumed" not in given


@pytest.mark.parametrize(
    ("option", "wrong", "said"),
    [
        *(("--out", out, "") for out in ("ring", "ring/sub", "small.yaml/sub")),
        *(("--set", f"prices.node_hour={price}", "prices.node_hour")
          for price in ("-1", "EUR", "3 EUR a month", "1e30")),
        ("--set", "accuracy.curve=other.csv", "accuracy.curve: `other.csv` is not there"),
        *(("--replay", name, "median, p95, worst") for name in ("often", "1e3", "1.5", "")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_nothing_written(
    cprsim, tmp_path, listing, option, wrong, said
) -> None:
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    called = cprsim("run", "small.yaml", option, wrong)
    assert called.exit_code == 2, called.output
    assert said in called.stderr
    assert len(called.stderr.splitlines()) == 1
    assert listing() == ["ring"]
