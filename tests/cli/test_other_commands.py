"""``validate``, ``schema``, ``compare`` and ``plot``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.making import SCENARIOS, small_scenario


@pytest.fixture
def folder(cprsim, scenario):
    """Run the small scenario with overrides and return its results folder."""

    def run(*overrides):
        arguments = [part for override in overrides for part in ("--set", override)]
        return json.loads(cprsim("run", scenario, "--json", *arguments).stdout)["results"]

    return run


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("kernel: {clicks: {file: nowhere.txt}}", "kernel.clicks.file"),
        ("fleet: {table: nowhere.txt}", "fleet.table"),
    ],
)
def test_validate_says_which_file_is_not_there(cprsim, scenario, section, key):
    text = f"{scenario.read_text()}{section}\n"
    scenario.write_text(text)
    called = cprsim("validate", scenario)
    assert called.exit_code == 2
    line = len(text.splitlines())
    assert called.stderr.startswith(f"{scenario}:{line}: {key}: `nowhere.txt` is not there")


@pytest.mark.parametrize("changed", ["simulation.seed=2", "failures.mtbf=20 h", "job.useful=30 h"])
def test_results_of_another_seed_or_other_failures_are_not_paired(cprsim, folder, changed):
    called = cprsim("compare", folder(), folder(changed), "--json")
    assert json.loads(called.stdout)["method"] == "welch"


def test_plot_draws_the_figures_of_the_run_again(drawing_cprsim, scenario, tmp_path):
    result = Path(json.loads(drawing_cprsim("run", scenario, "--json").stdout)["results"])
    called = drawing_cprsim("plot", result, "--out", tmp_path / "figures")
    assert called.exit_code == 0
    drawn = [Path(line) for line in called.stdout.splitlines()]
    assert len(drawn) == 4
    for path in drawn:
        original = result / path.name.removeprefix(f"{result.name}-")
        assert path.read_bytes() == original.read_bytes()
    other = drawing_cprsim("plot", result, "--out", tmp_path, "--format", "pdf")
    assert [Path(line).suffix for line in other.stdout.splitlines()] == [".pdf", ".pdf"]


def test_plot_refuses_unknown_formats(cprsim, folder):
    called = cprsim("plot", folder(), "--format", "gif")
    assert called.exit_code == 2
    assert "'gif' is none of png, svg, pdf" in called.stderr


# --------------------------------------------------------------------------- shipped scenarios


def test_a_shipped_scenario_is_found_by_its_name_from_anywhere(cprsim, tmp_path):
    there = json.loads(cprsim("scenarios", "--json").stdout)
    assert "quickstart" in [one["name"] for one in there]
    assert all(Path(one["path"]).is_file() and one["about"] for one in there)
    called = cprsim("validate", "quickstart")
    assert called.exit_code == 0
    assert "ok (quickstart: none, full, partial, cpr)" in called.stdout


def test_a_file_of_the_users_goes_before_a_shipped_scenario_of_its_name(cprsim, scenario):
    scenario.rename("quickstart")
    assert cprsim("validate", "quickstart").stdout == "quickstart: ok (small: full, partial, cpr)\n"


def test_a_name_that_no_scenario_has_says_where_the_names_are_listed(cprsim):
    called = cprsim("run", "quikstart")
    assert called.exit_code == 2
    assert "`cprsim scenarios` lists the names" in called.stderr
    assert "cprsim scenarios" not in cprsim("run", "nowhere/quickstart.yaml").stderr


def test_a_scenario_copied_home_is_the_same_and_editors_find_its_schema(cprsim, tmp_path):
    called = cprsim("scenarios", "--copy", "quickstart", tmp_path)
    copy = tmp_path / "quickstart.yaml"
    assert called.stdout == f"{copy}\n"
    assert copy.read_bytes() == (SCENARIOS / "quickstart.yaml").read_bytes()
    assert (tmp_path / "scenario.schema.json").is_file()
    copy.write_text("mine")
    assert cprsim("scenarios", "--copy", "quickstart", tmp_path).exit_code == 2
    assert copy.read_text() == "mine"


@pytest.mark.parametrize("wrong", [["--copy", "quikstart"], ["somewhere"]])
def test_what_is_no_copy_of_a_scenario_is_refused(cprsim, listing, wrong):
    called = cprsim("scenarios", *wrong)
    assert called.exit_code == 2
    assert wrong[-1] in called.stderr
    assert listing() == []


def test_validate_tells_scripts_what_is_wrong_and_where(cprsim, scenario):
    found = json.loads(cprsim("validate", scenario, "--json").stdout)
    assert found == {
        "valid": True, "problems": [], "name": "small", "strategies": ["full", "partial", "cpr"],
        "warnings": [],
    }  # fmt: skip
    scenario.write_text(scenario.read_text().replace("20 h", "20").replace("5 min", "-5 min"))
    called = cprsim("validate", scenario, "--json")
    assert called.exit_code == 2
    told = json.loads(called.stdout)
    assert not told["valid"]
    assert [(one["line"], one["key"]) for one in told["problems"]] == [
        (2, "job.useful"),
        (5, "costs.save"),
    ]


@pytest.mark.parametrize("command", ["run", "systems", "select"])
def test_all_entries_that_can_not_serve_the_job_are_told_at_once(cprsim, scenario, command):
    recovery = "full, gemini, {strategy: hsdp, options: {group: 3}}, varuna"
    text = small_scenario(recovery).replace("kind: job", "kind: job, role: worker")
    scenario.write_text(text.replace("trainers: 2, emb_ps: 4", "workers: 16"))
    called = cprsim(command, scenario)
    assert called.exit_code == 2
    keys = [line.split(": ")[1] for line in called.stderr.splitlines()]
    assert keys == ["recovery.1", "recovery.2", "recovery.3"]
