"""``validate``, and scenarios by their names."""

import os

import pytest

from tests.making import small_scenario


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
    assert f"\n{scenario}:{line}: {key}: `nowhere.txt` is not there" in called.stdout


def test_a_shipped_scenario_is_found_by_its_name_unless_the_user_has_such_a_file(cprsim, scenario):
    shipped = cprsim("validate", "quickstart")
    assert shipped.stdout == "quickstart: ok (quickstart: none, full, partial, cpr)\n"
    scenario.rename("quickstart")
    assert cprsim("validate", "quickstart").stdout == "quickstart: ok (small: full, partial, cpr)\n"
    unknown = cprsim("run", "quikstart")
    assert unknown.exit_code == 2
    assert "`cprsim init --list` lists the names" in unknown.stderr
    assert "--list" not in cprsim("run", "nowhere/quickstart.yaml").stderr


@pytest.mark.parametrize("command", ["run", "systems", "select"])
def test_all_entries_that_can_not_serve_the_job_are_told_at_once(cprsim, scenario, command):
    recovery = "full, gemini, {strategy: hsdp, options: {group: 3}}, varuna"
    text = small_scenario(recovery).replace("kind: job", "kind: job, role: worker")
    scenario.write_text(text.replace("trainers: 2, emb_ps: 4", "workers: 16"))
    called = cprsim(command, scenario)
    assert called.exit_code == 2
    keys = [line.split(": ")[1] for line in called.stderr.splitlines()]
    assert keys == ["recovery.1", "recovery.2", "recovery.3"]


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("nope.x: [1]", "nope: unknown key"),
        ("failures.mtbf: [7 h, soon]", "`soon` is not a time"),
        ("recovery.target_pls: [0.1, 7]", "target_pls: `7` should be less than or equal to 1"),
    ],
)
def test_validate_tries_the_ends_of_each_axis_of_a_sweep(cprsim, scenario, axis, said):
    called = cprsim("validate", scenario, "--set", f"sweep={{over: {{{axis}}}}}")
    assert called.exit_code == 2
    assert said in called.stdout


def test_files_that_are_none_are_refused_at_once(cprsim, tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")  # nobody writes into it: to open it would wait for ever
    assert "it is no regular file" in cprsim("validate", tmp_path / "pipe.yaml").stdout
    (tmp_path / "empty.yaml").touch()  # as those of the kernel, some of which wait as well
    assert "is empty: a scenario has keys" in cprsim("validate", tmp_path / "empty.yaml").stdout
