"""Throughput from a CSV file: the numbers of the job's nodes, and what makes no table."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.errors import ScenarioError
from cprsim.scenario import dump_scenario, load_scenario
from cprsim.scenario.system_options import options_of

SCENARIO = """\
name: elastic
job: {useful: 10 h, step: 30 s}
cluster: {workers: 8, spares: 0, repair: 1 h}
failures: {kind: job, family: exponential, mtbf: 5 h, role: worker}
costs: {save: 10 s, load: 30 s}
recovery:
  - strategy: oobleck
    options: OPTIONS
"""
TABLE = "nodes,samples_per_s\n6,70\n9,110\n8,100\n7,85\n5,50\n"


@pytest.fixture
def load(tmp_path: Path):
    def loaded(options: str, table: str = TABLE, *overrides: str):
        (tmp_path / "table.csv").write_text(table, "utf-8")
        path = tmp_path / "scenario.yaml"
        path.write_text(SCENARIO.replace("OPTIONS", options), "utf-8")
        return load_scenario(path, list(overrides))

    return loaded


def throughput(loaded) -> list[float]:
    return list(loaded.scenario.recovery[0].options["throughput"])


def test_the_numbers_begin_with_all_nodes_of_the_job(load) -> None:
    assert throughput(load("{throughput: table.csv}")) == [100, 85, 70, 50]
    nine = load("{throughput: table.csv}", TABLE, "cluster.workers=9")
    assert throughput(nine) == [110, 100, 85, 70, 50]


def test_a_unit_is_several_nodes(load) -> None:
    assert throughput(load("{throughput: table.csv, unit_nodes: 2}")) == [100, 70]


def test_one_of_several_columns_is_named(load) -> None:
    table = "nodes,mine,theirs\n8,2,20\n7,1,10\n"
    assert throughput(load("{throughput: {file: table.csv, column: theirs}}", table)) == [20, 10]


def test_a_table_of_others_may_call_the_nodes_something_else(load) -> None:
    said = "{throughput: {file: table.csv, column: a, nodes: GPU nodes}}"
    assert throughput(load(said, "a,GPU nodes\n5,8\n4,7\n")) == [5, 4]


def test_an_axis_over_the_nodes_reads_the_table_anew(load) -> None:
    loaded = load("{throughput: table.csv}")
    varied = loaded.varied({"cluster.workers": 7}, loaded.place)
    assert throughput(varied) == [85, 70, 50]


def test_what_is_dumped_needs_no_file(load, tmp_path) -> None:
    text = dump_scenario(load("{throughput: table.csv}").scenario)
    assert "table.csv" not in text
    (tmp_path / "table.csv").unlink()
    path = tmp_path / "dumped.yaml"
    path.write_text(text, "utf-8")
    assert throughput(load_scenario(path)) == [100, 85, 70, 50]


POLICY = (
    "{elastic: {speed: table.csv, unit_nodes: UNIT}, rules: [{reverts: nobody, stages: [wait]}]}"
)


@pytest.mark.parametrize(("unit", "speed"), [(1, [1, 0.85, 0.7, 0.5]), (2, [1, 0.7])])
def test_a_policy_of_ones_own_takes_the_table_as_relative_speeds(load, unit, speed) -> None:
    loaded = load(POLICY.replace("UNIT", str(unit)), TABLE, "recovery.0.strategy=policy")
    assert list(loaded.scenario.recovery[0].options["elastic"]["speed"]) == pytest.approx(speed)


@pytest.mark.parametrize(
    ("said", "instead", "problem"),
    [
        ("speed:", "role: servers, speed:", "has no role `servers`"),
        ("table.csv", "no.csv", "is not there"),
    ],
)
def test_a_table_of_a_policy_that_does_not_fit_is_one_error(load, said, instead, problem) -> None:
    options = POLICY.replace("UNIT", "1").replace(said, instead)
    with pytest.raises(ScenarioError, match=problem):
        load(options, TABLE, "recovery.0.strategy=policy")


@pytest.mark.parametrize(
    ("options", "table", "problem"),
    [
        ("{throughput: none.csv}", TABLE, "is not there"),
        ("{throughput: table.txt}", TABLE, "give a list, a .csv file"),
        ("{throughput: {file: table.csv, colum: a}}", TABLE, "is no table"),
        ("{throughput: table.csv}", "node,a\n8,1\n", "has no column `nodes`; it has: node, a"),
        (
            "{throughput: table.csv}",
            "nodes,a,b\n8,1,2\n",
            "say which `column`; it has: nodes, a, b",
        ),
        ("{throughput: {file: table.csv, column: c}}", "nodes,a\n8,1\n", "has no column `c`"),
        ("{throughput: table.csv}", "nodes,a\n8,fast\n", "table.csv:2: `8, fast`"),
        ("{throughput: table.csv}", "nodes,a\n8,1\n7,-1\n", "table.csv:3: 7 nodes, -1.0"),
        ("{throughput: table.csv}", "nodes,a\n8,1\n8,2\n", "table.csv:3: 8 nodes again"),
        ("{throughput: table.csv}", "nodes,a\n7,1\n", "has no row for the job's 8 nodes"),
        ("{throughput: table.csv}", "nodes,a\n8,2\n6,1\n", "no row for 7 nodes, but one for 6"),
        ("{throughput: table.csv}", "", "has no column `nodes`; it has: none"),
    ],
)
def test_what_is_no_table_is_one_clear_error(load, options, table, problem) -> None:
    with pytest.raises(ScenarioError) as error:
        load(options, table)
    assert problem in str(error.value)
    assert "scenario.yaml:8" in str(error.value)
    assert "recovery.0.options.throughput" in str(error.value)


STALLS = "nodes,rate,restart_min\n8,100,1\n7,85,2.5\n6,70,2\n4,40,9\n"


def test_stalls_by_nodes_are_read_from_one_unit_missing_on(load) -> None:
    said = "{restarts: {file: table.csv, column: restart_min}, unit_nodes: 2}"
    loaded = load(said, STALLS, "recovery.0.strategy=varuna")
    restarts = options_of("varuna", loaded.scenario.recovery[0].options).restarts
    assert restarts == pytest.approx((2 / 60, 9 / 60))


@pytest.mark.parametrize(
    ("column", "table", "problem"),
    [
        ("rate", STALLS.replace("4,40,9\n", ""), "column `rate` says no unit of its times"),
        ("restart_min", "nodes,restart_min\n8,1\n", "has no row for 7 nodes"),
        ("restart_min", STALLS, "no row for 5 nodes, but one for 4"),
        ("restart_min", "nodes,restart_min\n7,soon\n", "table.csv:2: `7, soon`"),
    ],
)
def test_a_damaged_table_of_stalls_is_one_clear_error(load, column, table, problem) -> None:
    with pytest.raises(ScenarioError) as error:
        load(f"{{restarts: {{file: table.csv, column: {column}}}}}", table,
             "recovery.0.strategy=varuna")  # fmt: skip
    assert problem in str(error.value)
    assert "recovery.0.options.restarts" in str(error.value)


def test_other_errors_are_told_too(load) -> None:
    with pytest.raises(ScenarioError, match=r"cluster\.workrs"):
        load("{throughput: table.csv}", TABLE, "cluster.workrs=3")
