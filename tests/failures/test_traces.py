"""Readers: what they make of good logs, and the one clear error for each bad one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import TraceError
from tests.failures.tidy import read_infinitehbd, read_lanl, read_tidy

LANL_FILE = "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"


def written(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# --------------------------------------------------------------------------------------- tidy


def test_hours_as_numbers_unsorted_open_and_twice(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        "node,start,end,cause\nb,30,31.5,disk\na,2,4,\n\nb,30,31.5,disk\nc,40,,power\na,3,3,fan\n",
    )
    outages = read_tidy(log, time_unit="h", n_nodes=5)
    assert outages.node.tolist() == [0, 1, 2]
    assert outages.start_h.tolist() == [0, 28, 38]
    assert outages.end_h.tolist() == [2, 29.5, 38]
    assert outages.ended.tolist() == [True, True, False]
    assert outages.cause == ("", "disk", "power")
    assert (outages.n_nodes, outages.window_h) == (5, 38.0)
    assert outages.node_names == ("a", "b", "c")
    assert outages.notes == (
        "no whole period given: the log's own first start or last instant bounds it",
        "1 outage(s) without an end, still under way at the end of the observation",
        "2 outage(s) of nodes that were down already, merged into the outage under way",
    )
    assert outages.origin == "2 h"


def test_other_column_names_and_a_period(tmp_path: Path) -> None:
    log = written(tmp_path, "t0,host,t1\n5,a,9\n20,b,21\n30,a,31\n50,c,51\n")
    outages = read_tidy(
        log, columns={"node": "host", "start": "t0", "end": "t1"}, time_unit="h", period=(8, 50)
    )
    assert outages.start_h.tolist() == [-3, 12, 22]  # the first was under way
    assert outages.in_window.tolist() == [False, True, True]
    assert outages.window_h == 42
    assert outages.n_nodes == 3


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("node,start,end\na,1,2\na,x,4\n", 3, "start: 'x' is no finite number"),
        ("node,start,end\na,1,2\n\na,3,x\n", 4, "end: 'x' is no finite number"),
        ("node,start,end\na,1,2\na,inf,2\n", 3, "start: 'inf' is no finite number"),
        ("node,start,end\na,1,2\na,5,4\n", 3, "end: the outage of 'a' ends before it begins"),
        ("node,start,end\na,1,2\n,5,6\n", 3, "node: the row names no node"),
        ("node,start,end\na,1,2\na,,6\n", 3, "start: the outage has no start"),
        ("node,start,end\na,1,2\na,5,6,7\n", 3, "can't be read"),
        ("nod,start,end\na,1,2\n", 1, "the 3 of the header; did you mean 'nod'?"),
        ('node,start,end\na,1,2\n"b,3,4\n', 3, "can't be read"),
        ("node start\na 1\n", 1, "there is no column 'node' among the 1 of the header"),
        ("node,start\na,1.7e12\nb,1.71e12\n", 2, "look like ms since 1970 (2023-11-14 to"),
        ("node,start,end\na,1e300,2e300\nb,3e300,\n", None, "are its times in another unit?"),
        ("node,start,end\n", None, "holds no row below the header"),
        ("", None, "is empty"),
        ("node,start\na,2024-05-01T00:00Z\na,2024-05-02T00:00\n", 3, "have a zone or none"),
        ("node,start\na,2024-05-01\na,01/02/2024 03:00\n", 3, "no ISO 8601 time stamp"),
        ("node,start\na,2024-05-01\na,17\na,2024-05-02\n", 3, "no ISO 8601 time stamp"),
        ("node,start\na,2024-02-30\na,2024-03-30\n", 2, "no ISO 8601 time stamp"),
    ],
)
def test_bad_logs(tmp_path: Path, text: str, line: int | None, complaint: str) -> None:
    log = written(tmp_path, text)
    with pytest.raises(TraceError) as caught:
        read_tidy(log, time_unit="h")
    place = f"{log}:{line}: " if line else f"{log}: "
    assert str(caught.value).startswith(place)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("period", [(50, 10), (10, 10), (None, 0.5), (90, None)])
def test_periods_without_an_outage(tmp_path: Path, period: tuple[float, float]) -> None:
    log = written(tmp_path, "node,start\na,1\na,30\n")
    with pytest.raises(TraceError, match="period"):
        read_tidy(log, time_unit="h", period=period)


def test_columns_and_nodes_that_are_not_there(tmp_path: Path) -> None:
    log = written(tmp_path, "node,start\na,1\nb,30\n")
    with pytest.raises(TraceError, match="no column 'stop'"):
        read_tidy(log, columns={"end": "stop"}, time_unit="h")
    with pytest.raises(TraceError, match=r"columns.until: there is no such column"):
        read_tidy(log, columns={"until": "end"}, time_unit="h")
    with pytest.raises(TraceError, match="1 nodes given, but the file names 2"):
        read_tidy(log, time_unit="h", n_nodes=1)


# ------------------------------------------------------------------------------- InfiniteHBD


def event(node: str, day: float, kind: str, fault: str = "GPU") -> dict[str, object]:
    return {
        "node_id": node,
        "event_time": day,
        "event_type": f"fault_{kind}",
        "fault_type": {"Level": "Hardware", "Class": fault, "Desc": "lost"},
    }


def test_starts_are_paired_with_ends_first_in_first_out(tmp_path: Path) -> None:
    events = [
        event("a", 1.0, "start"),
        event("a", 2.0, "start"),
        event("a", 2.0, "start", "NIC"),
        event("a", 4.0, "end"),
        event("a", 5.0, "end"),
        event("b", 6.0, "end"),
        event("b", 6.0, "start"),
        event("c", 7.0, "start"),
    ]
    log = written(tmp_path, json.dumps(events), "log.json")
    outages = read_infinitehbd(log, n_nodes=10)
    assert outages.start_h.tolist() == [24, 144, 168]
    assert outages.end_h.tolist() == [168, 144, 168]
    assert outages.ended.tolist() == [False, True, False]
    assert outages.cause[2] == "Hardware / GPU"
    assert outages.notes == (
        "2 outage(s) without an end, still under way at the end of the observation",
        "2 outage(s) of nodes that were down already, merged into the outage under way",
    )


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ('{"a": 1}', 1, "node_id: is missing"),
        ("[]", None, "is empty"),
        ('[\n{"node_id": 1,\n', 3, "no valid JSON"),
        ("[\n17\n]", 2, "is no JSON object such as"),
        ('[\n\n{"node_id": 1}\n]', 3, "event_time: is missing"),
        (json.dumps([event("a", float("nan"), "start")]), 1, "'NaN' is no number of days"),
        (json.dumps([event("a", -1.0, "start")]), 1, "'-1.0' is no number of days"),
        (json.dumps([event("a", 10**400, "start")]), 1, "is no number of days"),
        (json.dumps([event("a", True, "start")]), 1, "'true' is no number of days"),
        (json.dumps([event("a", 1.0, "end")]), 1, "a fault ends that did not begin"),
        (json.dumps([event("a", 1.0, "stop")]), 1, "neither fault_start nor fault_end"),
    ],
)
def test_bad_events(tmp_path: Path, text: str, line: int | None, complaint: str) -> None:
    log = written(tmp_path, text, "log.json")
    with pytest.raises(TraceError) as caught:
        read_infinitehbd(log)
    place = f"{log}:{line}: " if line else f"{log}: "
    assert str(caught.value).startswith(place)
    assert complaint in str(caught.value)


# ------------------------------------------------------------------------------------- LANL

LANL_HEADER = (
    "System,nodes,nodenumz,Prob Started,Down Time,"
    "Facilities,Hardware,Human Error,Network,Undetermined,Software\n"
)


def test_lanl_in_small(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        LANL_HEADER + "2,5,0,6/21/2005 10:54,6,,Disk,,,,\n"
        "2,5,3,6/21/2005 12:54,0,,,,,,Other\n"
        "3,9,0,6/22/2005 10:54,60,,,,,,\n",
    )
    outages = read_lanl(log, system=2)
    assert outages.start_h.tolist() == [0, 2]
    np.testing.assert_allclose(outages.down_h, [0.1, 0])
    assert outages.cause == ("Hardware", "Software")
    assert (outages.n_nodes, outages.window_h) == (5, 24.0)  # to the file's last record
    assert outages.node_names == ("2/0", "2/3")
    both = read_lanl(log)
    assert (both.n_nodes, both.n_outages, both.cause[2]) == (14, 3, "")
    until = read_lanl(log, system=2, period=("2005-06-21", "2005-06-21T12:00"))
    assert until.start_h.tolist() == [0]
    assert until.window_h == pytest.approx(1.1)
    assert until.facts["ends"] == ("given", "--period")
    how = "what the file holds from 2005-06-21, see --period"
    assert until.facts["begins"] == ("inferred", how)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("2,5,0,2005-06-21 10:54,6,,,,,,", "'2005-06-21 10:54' is no m/d/Y H:M"),
        ("2,5,x,6/21/2005 10:54,6,,,,,,", "nodenumz: 'x' is no whole number"),
        ("2,5,0,6/21/2005 10:54,-6,,,,,,", "Down Time: '-6' is no whole number"),
    ],
)
def test_bad_lanl_records(tmp_path: Path, row: str, complaint: str) -> None:
    log = written(tmp_path, f"{LANL_HEADER}{row}\n")
    with pytest.raises(TraceError) as caught:
        read_lanl(log)
    assert str(caught.value).startswith(f"{log}:2: ")
    assert complaint in str(caught.value)


def test_lanl_selections_that_are_not_there(tmp_path: Path) -> None:
    log = written(tmp_path, LANL_HEADER + "2,5,0,6/21/2005 10:54,6,,,,,,\n")
    with pytest.raises(TraceError, match="no system 7; there are 2"):
        read_lanl(log, system=7)
    with pytest.raises(TraceError, match="the period ends before it begins"):
        read_lanl(log, period=("2010-01-01", None))
    with pytest.raises(TraceError, match="'soon' is no ISO 8601"):
        read_lanl(log, period=("soon", None))
    with pytest.raises(TraceError, match="column of LANL's records is missing"):
        read_lanl(written(tmp_path, "System\n2\n"))
