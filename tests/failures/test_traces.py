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


@pytest.mark.parametrize(
    ("unit", "factor"), [("ms", 3.6e6), ("s", 3600.0), ("min", 60.0), ("d", 1 / 24)]
)
def test_units_of_numbers(tmp_path: Path, unit: str, factor: float) -> None:
    rows = "".join(f"a,{hour * factor},{(hour + 1) * factor}\n" for hour in (480_000, 480_010))
    outages = read_tidy(written(tmp_path, f"node,start,end\n{rows}"), time_unit=unit)
    np.testing.assert_allclose(outages.start_h, [0, 10])
    np.testing.assert_allclose(outages.down_h, [1, 1])


def test_time_stamps_without_zones_and_dates(tmp_path: Path) -> None:
    outages = read_tidy(written(tmp_path, "node,start\na,2024-05-01\nb,2024-05-01 06:30\n"))
    assert outages.start_h.tolist() == [0, 6.5]
    assert not outages.ended.any()


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


def test_numbers_need_a_unit(tmp_path: Path) -> None:
    log = written(tmp_path, "node,start\na,1\n")
    for unit in (None, "hours"):
        with pytest.raises(TraceError, match=r"say in which unit \(ms, s, min, h, d\)"):
            read_tidy(log, time_unit=unit)


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
        (json.dumps([event("a", 10**400, "start")]), 1, "a whole number of 401 digits"),
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


def test_infinitehbd_as_it_is_known(failure_logs: Path) -> None:
    outages = read_infinitehbd(failure_logs / "infinitehbd/fault_trace.json", n_nodes=400)
    gaps_h = np.diff(outages.start_h)
    assert (outages.n_outages, len(outages.node_names)) == (582, 231)
    assert outages.notes[-1].startswith("2 outage(s) of nodes that were down already")  # of 584
    assert outages.window_h == pytest.approx(348.9798 * 24)
    assert f"{gaps_h.mean():.2f}" == "14.25"
    assert f"{(gaps_h == 0).mean():.1%}" == "9.3%"
    assert f"{outages.down_h.mean() / 24:.2f}" == "5.55"
    assert f"{np.median(outages.down_h) / 24:.2f}" == "0.85"


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


@pytest.mark.parametrize(
    ("period", "n_gaps", "zero"),
    [
        ((None, None), 7072, "24.0%"),
        (("2000-01-01", "2006-01-01"), 3108, "0.9%"),
        ((None, "2000-01-01"), 3963, "42.0%"),
    ],
)
def test_lanl_system_2_as_it_is_known(
    failure_logs: Path, period: tuple[str | None, str | None], n_gaps: int, zero: str
) -> None:
    outages = read_lanl(failure_logs / LANL_FILE, system=2, period=period)
    gaps_h = np.diff(outages.start_h[outages.in_window])
    assert len(gaps_h) == n_gaps
    assert f"{(gaps_h == 0).mean():.1%}" == zero
    assert outages.n_nodes == 49


def test_lanl_repairs_as_they_are_known(failure_logs: Path) -> None:
    outages = read_lanl(failure_logs / LANL_FILE)
    minutes = np.round(outages.down_h * 60)
    merged = [note for note in outages.notes if "merged" in note]
    assert merged[0].startswith("160 outage(s) of nodes that were down already")
    assert outages.n_outages == 23_739 - 160  # records, as published
    assert (round(minutes.mean()), np.median(minutes)) == (351, 59)
    assert (round(minutes[minutes > 0].mean()), np.median(minutes[minutes > 0])) == (354, 60)
    assert outages.cause.count("") == 451
