"""``cprsim run``: what it prints and leaves, in this process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cprsim.results.run import load_result
from tests.making import small_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def folder_of(output: str) -> Path:
    return Path(re.search(r"^results +(\S+)", output, re.MULTILINE)[1])


def strategies(output: str) -> dict[str, dict[str, Any]]:
    return {one["strategy"]: one for one in json.loads(output)["frames"]["strategies"]}


def test_a_run_prints_its_table_and_leaves_its_folder(drawing_cprsim, scenario):
    called = drawing_cprsim("run", scenario)
    assert called.exit_code == 0
    for text in ("20 h of useful work on 6 nodes", "overhead, %", "ETTR", "PLS", "node-h"):
        assert text in called.stdout
    for line in ("full ", "partial ", "cpr "):
        assert re.search(rf"^{line}", called.stdout, re.MULTILINE)
    assert "cpr chose partial recovery" in called.stdout
    folder = folder_of(called.stdout)
    assert {path.name for path in folder.iterdir()} == {
        "job.json",
        "losses.parquet",
        "manifest.json",
        "overhead.png",
        "overhead.svg",
        "percentiles.png",
        "percentiles.svg",
        "replications.parquet",
        "scenario.yaml",
        "summary.csv",
        "timeline.parquet",
        "timeline.png",
        "timeline.svg",
    }
    assert len(load_result(folder).replications) == 3 * 20


def test_the_same_command_finds_its_folder_again(cprsim, scenario):
    first = cprsim("run", scenario)
    stamp = (folder_of(first.stdout) / "manifest.json").stat().st_mtime_ns
    again = cprsim("run", scenario)
    assert "(found again)" in again.stdout
    assert folder_of(again.stdout) == folder_of(first.stdout)
    assert (folder_of(again.stdout) / "manifest.json").stat().st_mtime_ns == stamp
    table = [out.stdout.split("results ")[0] for out in (first, again)]
    assert table[0] == table[1]


def test_a_damaged_folder_is_said_and_made_anew(cprsim, scenario):
    folder = folder_of(cprsim("run", scenario).stdout)
    (folder / "summary.csv").write_text("nonsense")
    again = cprsim("run", scenario)
    assert again.exit_code == 0
    assert "summary.csv differs from its digest; it is made anew" in again.stderr
    assert load_result(folder).name == "small"


def test_the_shortcuts_are_overrides(cprsim, scenario):
    short = cprsim("run", scenario, "--seed", 5, "--replications", 4)
    long = cprsim(
        "run", scenario, "--set", "simulation.seed=5", "--set", "simulation.replications=4"
    )
    assert folder_of(short.stdout) == folder_of(long.stdout)
    assert "(found again)" in long.stdout


def test_a_number_of_replications_takes_the_place_of_a_precision(cprsim, scenario):
    precise = scenario.read_text().replace("replications: 20", "precision: 20 %, at_most: 200")
    scenario.write_text(precise)
    called = cprsim("run", scenario, "--replications", 7, "--json")
    assert called.exit_code == 0
    assert {one["replications"] for one in strategies(called.stdout).values()} == {7}


def test_json_has_what_scripts_need(cprsim, scenario):
    called = cprsim("run", scenario, "--json")
    found = json.loads(called.stdout)
    values = found["values"]
    assert (found["name"], values["useful_h"], values["n_nodes"]) == ("small", 20.0, 6)
    assert Path(found["folder"]).is_dir()
    assert list(strategies(called.stdout)) == ["full", "partial", "cpr"]
    for one in strategies(called.stdout).values():
        assert one["interval_h"] > 0
        parts = ("save", "load", "lost", "detect", "wait", "reschedule")
        total = sum(one[f"{part}_fraction"] for part in parts)
        assert total == pytest.approx(one["overhead_fraction"])
        assert 0 < one["ettr"] < 1
        assert one["failures"] > 0
        assert one["pls"] >= 0


def test_a_job_that_can_never_finish_gets_a_verdict(cprsim, scenario):
    hopeless = ["--set", "failures.mtbf=1 min", "--set", "job.useful=12 min"]
    called = cprsim("run", scenario, "--set", "recovery=[none]", *hopeless)
    assert called.exit_code == 0
    assert "none never finishes" in called.stdout
    found = cprsim("run", scenario, "--set", "recovery=[none]", *hopeless, "--json").stdout
    assert strategies(found)["none"]["finished_fraction"] == 0
    assert strategies(found)["none"]["overhead_fraction"] is None


def test_a_replay_is_the_replication_of_the_whole_run(cprsim, scenario):
    whole = load_result(folder_of(cprsim("run", scenario).stdout)).replications
    called = cprsim("run", scenario, "--replay", 17)
    assert "replication 17 alone" in called.stdout
    folder = folder_of(called.stdout)
    assert folder.name.endswith("-replay-17")
    alone = load_result(folder)
    mine = whole[whole["replication"] == 17].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.replications, mine)
    assert set(alone.timeline["replication"]) == {17}


@pytest.mark.parametrize("name", ["criteo-kaggle", "criteo-terabyte"])
def test_the_papers_scenarios_show_the_loss_by_the_shipped_curve(cprsim, name):
    """Every strategy has its loss: none under full recovery, less where hot rows are fresher."""
    path = SCENARIOS / f"{name}.yaml"
    shown = cprsim("run", path, "--set", "simulation.replications=200", "--json").stdout
    text = cprsim("-v", "run", path, "--set", "simulation.replications=200").stdout
    assert f"AUC loss by the staleness curve {name}-linear (shipped" in text
    lost = {name: one["auc_loss"] for name, one in strategies(shown).items()}
    assert lost["full"] == 0
    assert 0 < lost["partial"] < lost["cpr-mfu"] < lost["cpr"] < 0.01
    assert lost.keys() >= {"cpr-ssu", "cpr-scar"}


def test_accuracy_stands_beside_overhead_and_the_curve_in_the_folder(cprsim, scenario):
    curve = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
    (scenario.parent / "mine.csv").write_text(curve)
    named = ("--set", "accuracy.curve=mine.csv")
    text = cprsim("run", scenario, *named, "-v").stdout
    assert "AUC loss by the staleness curve mine (your own, mine.csv)" in text
    shown = json.loads(cprsim("run", scenario, *named, "--json").stdout)
    assert (Path(shown["folder"]) / "curve.csv").read_text() == curve
    losses = {one["strategy"]: one["auc_loss"] for one in shown["frames"]["strategies"]}
    assert losses["full"] == 0
    assert 0 < losses["partial"] < losses["cpr"]
    bad = cprsim("run", scenario, "--set", "accuracy.curve=other.csv")
    assert bad.exit_code == 2
    assert "--set accuracy.curve: accuracy.curve: `other.csv` is not there" in bad.output


def test_an_assumed_limit_is_called_one_first_with_what_it_costs(cprsim, scenario) -> None:
    assumed = small_scenario().replace("target_pls: 0.1", "target_pls: 0.1, assumed: true")
    scenario.write_text(assumed)
    said = cprsim("run", scenario).stdout
    assert "\n\nThe limit of cpr is assumed, nobody gave it: a portion of 0.1 of" in said
    assert "By the shipped curves, the nearest there are, it costs 0.00" in said
    curve = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
    (scenario.parent / "mine.csv").write_text(curve)
    named = ("--set", "accuracy.curve=mine.csv")
    assert "(PLS). It costs 0.00" in cprsim("run", scenario, *named).stdout
    given = cprsim("run", scenario, "--set", "recovery.cpr.target_pls=0.1").stdout
    assert "is assumed" not in given


@pytest.mark.parametrize("out", ["ring", "ring/sub", "small.yaml/sub"])
def test_a_path_that_leads_to_no_folder_is_refused(cprsim, tmp_path, out) -> None:
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    called = cprsim("run", "small.yaml", "--out", out)
    assert called.exit_code == 2, called.output
    assert len(called.stderr.splitlines()) == 1


@pytest.mark.parametrize("wrong", ["-1", "EUR", "3 EUR a month", "1e30"])
def test_what_is_no_price_is_refused(cprsim, scenario, wrong):
    called = cprsim("run", scenario, "--set", f"prices.node_hour={wrong}")
    assert called.exit_code == 2
    assert "prices.node_hour" in called.stderr


def test_a_replication_is_replayed_by_its_overhead_among_all(cprsim, scenario):
    told = json.loads(cprsim("run", scenario, "--json").stdout)["values"]["worth_seeing"]
    for name, number in told.items():
        replayed = json.loads(cprsim("run", scenario, "--replay", name, "--json").stdout)
        assert replayed["folder"].endswith(f"-replay-{number}")
    assert f"{told['worst']} (worst)" in cprsim("run", scenario, "-v").stdout


@pytest.mark.parametrize("wrong", ["often", "1e3", "1.5", ""])
def test_a_replay_by_another_name_is_refused(cprsim, scenario, wrong, listing):
    called = cprsim("run", scenario, "--replay", wrong)
    assert called.exit_code == 2
    assert "median, p95, worst" in called.stderr
    assert listing() == []
