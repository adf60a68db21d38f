"""Several results beside each other: on a page and by `compare`; what can't be compared is said."""

from __future__ import annotations

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
