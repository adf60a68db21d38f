"""Traces of how many nodes there were: who is away when, and what makes no such trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cprsim.errors import ParameterError, TraceError
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.failures.traces import read_counts
from cprsim.records import Cluster, Holds, Role

Read = Callable[..., Outages]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def outages(text: str, **options: Any) -> Outages:
        path = tmp_path / "counts.csv"
        path.write_text(text.replace(" ", "\n") + "\n", "utf-8")
        return read_counts(path, time_unit="h", **options)

    return outages


def absences(outages: Outages) -> list[tuple[float, float, bool]]:
    rows = zip(outages.start_h, outages.end_h, outages.ended, strict=True)
    return sorted((float(start), float(end), bool(ended)) for start, end, ended in rows)


NUMBERS = "time,nodes 0,3 2,4 5,1 6,2 9,4 10,4"


def test_those_that_left_first_come_back_first_and_who_joins_later_is_away_before(
    read: Read,
) -> None:
    found = read(NUMBERS)
    assert (found.n_nodes, found.window_h) == (4, 10)
    # one joins at 2; three leave at 5, of which one is back at 6 and two at 9
    assert absences(found) == [(-1, 2, True), (5, 6, True), (5, 9, True), (5, 9, True)]


def test_changes_say_the_same_as_numbers(read: Read) -> None:
    changes = "time,change 0,+2 0,1 2,+1 5,-3 6,1 9,+2 10,0"
    assert absences(read(changes)) == absences(read(NUMBERS))


def test_a_node_that_does_not_come_back_is_away_to_the_end(read: Read) -> None:
    assert absences(read("time,nodes 0,2 4,1 9,1")) == [(4, 9, False)]


def test_a_period_begins_and_ends_between_rows(read: Read) -> None:
    found = read(NUMBERS, period=(3.0, 8.0))
    assert found.window_h == 5
    assert absences(found) == [(2, 3, True), (2, 5, False), (2, 5, False)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,nodes 0,3 2,x", r"counts.csv:3: nodes: 'x' is no number of nodes"),
        ("time,nodes 0,3 2,1.5", "'1.5' is no number of nodes"),
        ("time,nodes 0,3 2,-1", "'-1' leaves fewer than no node"),
        ("time,change 0,3 2,-4 3,1", "'-4' leaves fewer than no node"),
        ("time,nodes 2,3 1,2", "'1' lies before the row above"),
        ("time,nodes 0,3 1,2 1,3", "'1' is said twice"),
        ("time,nodes 0,3 5,3", "there are 3 nodes all the time"),
        ("time,nodes 0,3 0,3", "said twice"),
        ("time,nodes 0,3", "takes 0 h"),
        ("when,nodes 0,3 1,2", "no column 'time'"),
        ("time,number 0,3 1,2", "no column 'change'"),
    ],
)
def test_what_is_no_trace_of_numbers_is_said_with_its_line(
    read: Read, text: str, words: str
) -> None:
    with pytest.raises(TraceError, match=words):
        read(text)


def test_a_period_before_the_first_row_is_refused(read: Read) -> None:
    with pytest.raises(TraceError, match="before the first row"):
        read(NUMBERS, period=(-1.0, None))


CLUSTER = Cluster((Role("worker", 4, Holds.SHARD),))


def test_a_replay_from_the_first_instant_is_the_trace_itself(read: Read) -> None:
    whole = next(Replay(read(NUMBERS), from_first=True).draw(CLUSTER, 1, 0, 20, [10.0]))
    for failures in map(whole.of, range(20)):
        assert [one.at_h for one in failures] == [0.0, 5.0]
        assert [sorted(one.repair_h) for one in failures] == [[2.0], [1.0, 4.0, 4.0]]
    assert len({failures[0].slots for failures in map(whole.of, range(20))}) == 4  # who, is random


def test_nodes_that_only_join_can_be_replayed_from_the_first_instant_alone(read: Read) -> None:
    joining = read("time,nodes 0,2 3,4 9,4")
    whole = next(Replay(joining, from_first=True).draw(CLUSTER, 1, 0, 1, [9.0]))
    assert [(one.at_h, one.repair_h) for one in whole.of(0)] == [(0.0, (3.0, 3.0))]
    with pytest.raises(ParameterError, match="no failure"):
        Replay(joining)
