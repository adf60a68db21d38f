"""Several results beside each other: on a page and by `compare`; what can't be compared is said."""

from __future__ import annotations

import json

import pytest

from cprsim.curves.choosing import shipped_path
from cprsim.present.comparison import INPUTS
from cprsim.present.document import Table
from cprsim.present.kinds import page_of
from tests.present.conftest import REPRODUCTION, made_selection


def inputs_table(page) -> Table:
    (section,) = [one for one in page.overview.sections if one.heading == INPUTS]
    (block,) = section.blocks
    return block


def rows(table: Table) -> dict[str, list[str]]:
    return {row[0]: list(row[1:]) for row in table.rows}


def test_a_report_of_two_runs_lists_the_inputs_that_differ(results):
    table = inputs_table(page_of([results.first, results.second]))
    assert rows(table) == {"simulation.seed": ["1", "2"]}
    assert [column.heading for column in table.columns] == ["input", "A", "B"]


def test_a_report_of_a_run_and_a_sweep_lists_them_too(results):
    found = rows(inputs_table(page_of([results.first, results.sweep, results.second])))
    assert found["simulation.replications"] == ["60", "20", "60"]
    assert found["simulation.seed"] == ["1", "1", "2"]


def test_reports_of_other_kinds_list_them_too(results, tmp_path):
    curves = [shipped_path(name) for name in ("criteo-kaggle-linear", "criteo-terabyte-linear")]
    found = rows(inputs_table(page_of(curves)))
    assert any(key.startswith("kernel.") for key in found)
    kept = rows(inputs_table(page_of([REPRODUCTION / "systems", results.first])))
    assert "source of cprsim" in kept
    assert "job.useful" not in kept


def test_compare_lists_the_inputs_that_differ(results, cprsim):
    said = cprsim("compare", results.first, results.second)
    assert said.exit_code == 0, said.output
    assert "simulation.seed" in said.stdout
    plain = json.loads(cprsim("compare", results.first, results.second, "--json").stdout)
    assert plain["inputs"] == [{"key": "simulation.seed", "a": "1", "b": "2"}]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["sweep", "selection", "reproduction", "curve"])
def test_compare_of_other_kinds_is_one_clear_error(results, cprsim, tmp_path, kind, turned):
    other = {
        "sweep": lambda: results.sweep,
        "selection": lambda: made_selection(tmp_path),
        "reproduction": lambda: REPRODUCTION / "systems",
        "curve": lambda: shipped_path("criteo-kaggle-linear"),
    }[kind]()
    paths = (other, results.first) if turned else (results.first, other)
    said = cprsim("compare", *paths)
    assert said.exit_code == 2
    what = "a file, no results folder" if kind == "curve" else f"the folder of a {kind}"
    assert said.stderr == (
        f"cprsim: {other} is {what}: this command compares two results of `cprsim run`; `cprsim "
        "report` shows results of every kind, also several side by side\n"
    )


def test_plot_draws_a_selection_and_no_curve(cprsim, tmp_path):
    assert cprsim("plot", made_selection(tmp_path), "--out", tmp_path / "drawn").exit_code == 0
    assert {path.suffix for path in (tmp_path / "drawn").iterdir()} == {".png", ".svg"}
    curve = shipped_path("criteo-kaggle-linear")
    said = cprsim("plot", curve)
    assert said.exit_code == 2
    assert "is a file, no results folder: this command draws every comparison" in said.stderr


def test_compare_of_what_is_not_there_is_one_clear_error(results, cprsim, tmp_path):
    said = cprsim("compare", results.first, tmp_path / "nothing")
    assert said.exit_code == 2
    assert f"{tmp_path / 'nothing'} is no folder" in said.stderr
    said = cprsim("compare", results.first, tmp_path)
    assert said.exit_code == 2
    assert "is no finished result" in said.stderr
