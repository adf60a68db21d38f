"""Columns beside node, start, end and cause: lengths, states, lists of nodes, and the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ParameterError, TraceError
from cprsim.experiments.assemble import replay_of
from cprsim.failures.outages import Outages
from cprsim.scenario.failures import TraceFailures
from tests.failures import tidy


def read(path: Path, text: str = "", **options: object) -> Outages:
    if text:
        path.write_text(text)
    return tidy.read(path, **options)


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("90", "duration: '90': in which unit? Say --time-unit, or name the column so"),
        ("long", "duration: 'long' is no length of time such as 35 min"),
        ("P1M", "duration: 'P1M' is no length of time such as 35 min"),  # a month
        ("PT1.5H", "duration: 'PT1.5H' is no length of time such as 35 min"),
        ('"1,500 s"', "duration: '1,500 s' is no length of time such as 35 min"),
        ("-2 h", "the outage of 'b' ends before it begins"),
    ],
)
def test_a_length_that_is_none(tmp_path: Path, cell: str, complaint: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(tmp_path / "log.csv", f"node,start,duration\na,2024-01-01,1 h\nb,2024-01-02,{cell}\n")
    assert complaint in str(caught.value)
    assert caught.value.problems[0].place.line == 3


def test_changes_that_change_nothing_are_counted(tmp_path: Path) -> None:
    text = (
        "start,node,event\n2024-01-01 00:00,a,up\n2024-01-01 01:00,a,down\n2024-01-01 02:00,a,down"
        "\n2024-01-01 03:00,a,fenced\n2024-01-01 04:00,a,up\n2024-01-01 05:00,b,down\n"
    )
    log = read(tmp_path / "log.csv", text, columns={"state": "event"})
    assert log.down_h[:1] == pytest.approx(3.0)
    assert log.ended.tolist() == [True, False]
    assert "1 row(s) left out that say neither that a node is down nor that it is up" in log.notes
    assert "2 row(s) left out as the node was down, or up, already" in log.notes
    with pytest.raises(TraceError, match="no column 'evnt'"):
        read(tmp_path / "log.csv", columns={"state": "evnt"})


def test_a_list_of_nodes_is_an_outage_of_each(tmp_path: Path) -> None:
    text = (
        'node,start,end\n"g[01-03,7]",2024-01-01,2024-01-02\n"x,y",2024-01-03,2024-01-04\n'
        '"Rack 5, left",2024-01-05,2024-01-06\n'
    )
    log = read(tmp_path / "log.csv", text)
    assert log.node_names == ("Rack 5, left", "g01", "g02", "g03", "g7", "x", "y")
    assert log.n_outages == 7
    assert "2 row(s) that name several nodes, an outage of each" in log.notes
    with pytest.raises(TraceError, match="is no range of numbers") as caught:
        read(tmp_path / "log.csv", text.replace("01-03", "03-01"))
    assert caught.value.problems[0].place.line == 2


def test_lists_of_nodes_in_json_are_an_outage_of_each(tmp_path: Path) -> None:
    rows = '{"node": ["a", "b"], "start": "2024-05-01"}\n{"node": ["a"], "start": "2024-05-03"}\n'
    log = read(tmp_path / "log", rows)
    assert log.node_names == ("a", "b")
    assert log.n_outages == 3


LIVES = (
    "node,start,end,installed,entry,exit\n"
    "a,2024-01-10,2024-01-11,2023-12-22,2024-01-01,\n"
    "a,2024-01-20,2024-01-21,2023-12-22,2024-01-01,\n"
    "b,2024-01-15,2024-01-16,,2024-01-13,2024-01-18\n"
    "c,2024-01-28,2024-01-30,2023-12-22,2024-01-01,\n"
)


def test_a_table_that_names_the_dates_of_its_nodes(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(LIVES)
    dated = {"nodes": "dates", "period": ("2024-01-01", "2024-02-01")}
    log = read(path, **dated)
    assert log.node_names == ("a", "b", "c")
    assert log.lives is not None
    born_h, enters_h, leaves_h = (at_h / 24 for at_h in log.lives)
    np.testing.assert_allclose(born_h, [-10, 12, -10])
    np.testing.assert_allclose(enters_h, [0, 12, 0])
    np.testing.assert_allclose(leaves_h, [31, 17, 31])
    path.write_text(LIVES.replace("2023-12-22,2024-01-01,\nb", "2023-12-23,2024-01-01,\nb"))
    with pytest.raises(TraceError, match="'a' has other dates in another row") as caught:
        read(path, **dated)
    assert caught.value.problems[0].place.line == 3
    path.write_text("node,start,end\na,2024-01-01,2024-01-02\nb,2024-01-03,2024-01-04\n")
    with pytest.raises(ParameterError, match="the log has no column installed, entry or exit"):
        read(path, nodes="dates")


def test_a_replay_of_such_a_table_has_only_nodes_that_are_there(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(LIVES)
    said = {
        "kind": "trace", "file": str(path), "format": "tidy", "nodes": "dates",
        "period": {"from": "2024-01-01", "to": "2024-02-01"},
    }  # fmt: skip
    dated = replay_of(TraceFailures.model_validate(said), path).outages
    assert dated.lives is not None
    assert dated.lives[2].tolist() == [31 * 24, 17 * 24, 31 * 24]
    whole = replay_of(TraceFailures.model_validate(said | {"nodes": 4}), path).outages
    assert whole.lives is None
