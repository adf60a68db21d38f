"""Logs as other programs write them: read rightly, or refused with what would be right.

Each sample is made here in the form that its program is documented to write; none is a real log.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cprsim.errors import TraceError
from tests.failures.test_other_columns import (
    CHANGES,
    ENDS,
    LASTED_H,
    NODES,
    STARTS,
    read,
    require_the_three,
)
from tests.making import call

Row = Callable[[str, pd.Timestamp, pd.Timestamp], str]


def table(header: str, row: Row) -> str:
    rows = [row(n, s, e) for n, s, e in zip(NODES, STARTS, ENDS, strict=True)]
    return "\n".join([header, *rows] if header else rows) + "\n"


def dated(form: str) -> str:
    """Starts and ends in a form of strftime, in quotes."""
    return table("node,start,end", lambda n, s, e: f'{n},"{s.strftime(form)}","{e.strftime(form)}"')


def objects(row: Callable[[str, pd.Timestamp, pd.Timestamp], dict[str, Any]]) -> str:
    return table("", lambda n, s, e: json.dumps(row(n, s, e)))


def named(**names: str) -> dict[str, object]:
    return {"columns": names}


def hours(at: pd.Timestamp) -> float:
    return (at - STARTS[0]) / pd.Timedelta(1, "h")


READ: dict[str, tuple[str, dict[str, object]]] = {
    "mail": (dated("%a, %d %b %Y %H:%M:%S +0000"), {}),
    "HTTP": (dated("%a, %d %b %Y %H:%M:%S GMT"), {}),
    "a web server": (dated("%d/%b/%Y:%H:%M:%S +0000"), {}),
    "US with months": (dated("%B %d, %Y %I:%M:%S %p"), {}),
    "short US": (dated("%b %d, %Y %I:%M %p"), {}),
    "macOS": (dated("%b %d, %Y at %I:%M:%S\u202f%p"), {}),
    "Jira": (dated("%d/%b/%y %I:%M %p"), {}),
    "no signs": (dated("%Y%m%d%H%M%S"), {"date_format": "%Y%m%d%H%M%S"}),
    "two zones": (
        table(
            "node,start,end",
            lambda n, s, e: (
                f"{n},{s + pd.Timedelta('2h'):%Y-%m-%dT%H:%M:%S+02:00},"
                f"{e - pd.Timedelta('4h'):%Y-%m-%dT%H:%M:%S-0400}"
            ),
        ),
        {},
    ),
    "fractions of seconds since 1970": (
        table("node,start,end", lambda n, s, e: f"{n},{s.timestamp():.3f},{e.timestamp():.3f}"),
        {},
    ),
    "days of a spreadsheet": (
        table(
            "node;start;end",
            lambda n, s, e: f"{n};{45292 + hours(s) / 24};{45292 + hours(e) / 24}".replace(
                ".", ","
            ),
        ),
        {"time_unit": "d"},
    ),
    "a unit in the name": (
        table("node,start [h],end [h]", lambda n, s, e: f"{n},{hours(s)},{hours(e)}"),
        named(start="start [h]", end="end [h]"),
    ),
    "Slurm's lengths": (
        table(
            "node,start,elapsed",
            lambda n, s, e: f"{n},{s - pd.Timedelta('1D')},1-{str(e - s)[-8:]}",
        ),
        {},
    ),
    "Zabbix": (
        table(
            '"Severity","Time","Recovery time","Status","Host","Problem","Duration"',
            lambda n, s, e: f'"High","{s}","{e}","RESOLVED","{n}","unreachable","1h 30m"',
        ),
        named(node="Host", start="Time", end="Recovery time", cause="Problem"),
    ),
    "Zabbix by its lengths": (
        "Host,Time,Duration\na,2024-01-01 00:00:00,0d 1h 30m\nb,2024-01-01 06:00:00,4h\n"
        "a,2024-01-02 12:00:00,15m 0s\n",
        named(node="Host", start="Time"),
    ),
    "PagerDuty": (
        table(
            "id,description,service_name,created_on,resolved_on",
            lambda n, s, e: f"P1,down,{n},{s:%Y-%m-%dT%H:%M:%S+00:00},{e:%Y-%m-%dT%H:%M:%S+00:00}",
        ),
        named(node="service_name", start="created_on", end="resolved_on"),
    ),
    "Azure": (
        objects(
            lambda n, s, e: {
                "EventType": "Reboot",
                "Resources": [n],
                "NotBefore": s.strftime("%a, %d %b %Y %H:%M:%S GMT"),
                "DurationInSeconds": int((e - s).total_seconds()),
            }
        ),
        named(node="Resources", start="NotBefore", duration="DurationInSeconds"),
    ),
    "Alertmanager, an array": (
        json.dumps(
            [
                {
                    "startsAt": f"{s:%Y-%m-%dT%H:%M:%SZ}",
                    "endsAt": f"{e:%Y-%m-%dT%H:%M:%SZ}",
                    "receivers": [{"name": "ops"}],
                    "labels": {"instance": n},
                }
                for n, s, e in zip(NODES, STARTS, ENDS, strict=True)
            ],
            indent=2,
        ),
        named(node="labels.instance", start="startsAt", end="endsAt"),
    ),
    "MongoDB": (
        objects(
            lambda n, s, e: {"node": n, "start": {"$date": f"{s}Z"}, "end": {"$date": f"{e}Z"}}
        ),
        named(start="start.$date", end="end.$date"),
    ),
    "lines that end as on an old Mac": (dated("%Y-%m-%d %H:%M").replace("\n", "\r"), {}),
    "empty columns": (table("node,start,end,,", lambda n, s, e: f"{n},{s},{e},,"), {}),
}


@pytest.mark.parametrize("form", READ)
def test_foreign_logs_are_read(tmp_path: Path, form: str) -> None:
    text, options = READ[form]
    log = read(tmp_path / "log", text, **options)
    if form == "Slurm's lengths":  # each begins a day earlier, and lasts a day longer
        np.testing.assert_allclose(log.down_h, LASTED_H + 24)
    else:
        require_the_three(log)


AWS = {"detail-type": "EC2 Spot Instance Interruption Warning", "time": "2024-05-01T10:00:00Z"}
GCP = {"resource": {"labels": {"instance_id": "1"}}, "timestamp": "2024-05-01T10:00:00Z"}
ELASTIC = {"_source": {"@timestamp": "2024-05-01T10:00:00Z", "host": {"name": "a"}}}
TAR = io.BytesIO()
with tarfile.open(fileobj=TAR, mode="w") as archive:
    archive.addfile(tarfile.TarInfo("log.csv"))

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "PBS": ("05/01/2024 10:00:00;E;12.srv;exec_host=n01/0\n" * 2, ":1: node: .* no header?"),
    "LSF's jobs": ("Job <1>, User <u>, Project <p>\nWed May  1 10:00:00: x\n", "node=NAME, or w"),
    "LSF's hosts": ("Wed May  1 10:00:00: Host <n01> closed by <root>\n", "separated by blanks"),
    "GCP": (json.dumps([GCP]), "node=resource.labels.instance_id --column start=timestamp"),
    "EventBridge": (
        json.dumps({**AWS, "detail": {"instance-id": "i-1"}}) + "\n",
        "--column node=detail.instance-id --column start=time",
    ),
    "journald": (
        '{"__REALTIME_TIMESTAMP": "1714557600000000", "_HOSTNAME": "a", "MESSAGE": "x"}\n',
        "--column node=_HOSTNAME --column start=__REALTIME_TIMESTAMP",
    ),
    "Splunk": (
        '{"result": {"_time": "2024-05-01T10:00:00Z", "host": "a"}}\n',
        "--column node=result.host --column start=result._time",
    ),
    "Elasticsearch": (json.dumps({"hits": {"hits": [ELASTIC]}}) + "\n", r"'.hits.hits\[\]' FILE"),
    "Icinga": ("host_name;state_time;state\na;1;DOWN\n", "node=host_name --column start=sta"),
    "Slurm by commas": ("NodeName,TimeStart,TimeEnd\na,1,2\n", "start=TimeStart --column end=Tim"),
    "Windows": ("Level,Date and Time,Computer\nError,1,a\n", "--column 'start=Date and Time'"),
    "zones in the header": ("Node,Start time (UTC)\na,1\n", r"--column 'start=Start time \(UTC\)'"),
    "a time beside its date": (
        "node,date,time\na,2024-05-01,10:00:00\n", "--column start=time",
    ),
    "Nagios": ("[1714557600] HOST ALERT: n01;DOWN;HARD;10;x\n", ":1: is lines or sections in br"),
    "slurmctld": ("[2024-05-01T10:00:00.123] error: Nodes n01 not responding\n", ":1: is lines"),
    "TOML": ('[[outage]]\nnode = "a"\n', ":1: is lines or sections in brackets"),
    "an exporter": ("# HELP up x\n# TYPE up gauge\nup 1\n", "/api/v1/query_range of `up`"),
    "InfluxDB": ("node_up,host=a value=0 1714557600000000000\n", "line protocol: query it as CSV"),
    "InfluxDB's CSV": ("#datatype,string\n,result\n", "delete the lines that begin with #"),
    "psql": (" node | start \n------+-------\n a    | 2024\n", r"psql --csv\), or delete its line"),
    "Markdown": ("| node | start |\n|------|------|\n| a | 2024 |\n", "drawn for people"),
    "mysql": ("+------+\n| node |\n+------+\n", "a table in a frame: print it without one"),
    "SQL": ("INSERT INTO outages VALUES\n('a', '2024-05-01')\n", "is SQL: export the table as CSV"),
    "kubectl": ("LAST SEEN   TYPE\n5m   Normal\n", "kubectl -o json"),
    "kubectl's YAML": ("apiVersion: v1\nitems:\n", "is YAML"),
    "a title": ("Outages of May\n\nnode,start,end\na,1,2\n", "delete what stands above node,start"),
    "RTF": ("{\\rtf1\\ansi node}\n", "save it as plain text"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(range(256)), "data of a program, no text"),
    "NumPy": (b"\x93NUMPY\x01\x00v\x00" + bytes(300), "data of a program, no text"),
    "pickle": (b"\x80\x05\x95\x10" + bytes(range(200)), "data of a program, no text"),
    "tar": (TAR.getvalue(), r"is an archive \(tar\): unpack it"),
    "UTF-16 without a mark": ("node,start\na,1\n".encode("utf-16-le"), "iconv -f UTF-16LE"),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_foreign_logs_are_refused_with_what_to_do(tmp_path: Path, form: str) -> None:
    text, advice = REFUSED[form]
    path = tmp_path / "log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TraceError, match=advice) as caught:
        read(path)
    assert caught.value.problems[0].place.line == 1
    assert "\n" not in str(caught.value)


CELLS: dict[str, tuple[str, dict[str, object], int, str]] = {
    "two times in one": (
        "node,start\na,2024-05-01 10:00 - 2024-05-01 12:00\n", {}, 2, "holds two times: make a col",
    ),
    "a time of day": (
        "node,start\na,10:00:00\n", {}, 2, "'10:00:00' is a time of day: join it with its date",
    ),
    "days, times elsewhere": (
        "node,date,time\na,2024-05-01,10:00\nb,2024-05-02,11:30\n", named(start="date"), 1,
        "date: holds days, and 'time' times of day: join them in one column",
    ),
    "dates without signs": (
        "node,start\na,20240501\nb,20240502\n", {}, 2, "look like dates .20240501.: say --date-f",
    ),
    "the same in a unit": (
        "node,start\na,20240501100000\nb,20240502100000\n", {"time_unit": "s"}, 2,
        "--date-format '%Y%m%d%H%M%S'",
    ),
    "commas before thousands": (
        'node,start\na,950\nb,"1,250"\na,"12,000"\n', {"time_unit": "s"}, 3,
        "'1,250' may have a decimal comma or one before the thousands",
    ),
    "points before thousands": (
        "node;start\na;950\nb;1.250\na;12.000\nb;13.500\n", {"time_unit": "s"}, 3,
        "'1.250' seems to have a point before the thousands",
    ),
    "months": (
        "node,start,duration\na,2024-05-01,P1M\n", {}, 2, "'P1M' is no length of time",
    ),
    "a unit by the name and another": (
        "node,start_min\na,10\nb,20\n", {"columns": {"start": "start_min"}, "time_unit": "s"}, 1,
        "read in s, but are in min by the name of the column 'start_min'",
    ),
    "two units": (
        "node,start_min,end_h\na,10,2\nb,20,3\n", named(start="start_min", end="end_h"), 1,
        "in h by the name of the column 'end_h'",
    ),
    "no instant": (
        "node,start\na,2024-05-01 10:00\nb,now\n", {}, 3, "'now' is no ISO 8601 time stamp",
    ),
    "a comma before thousands of seconds": (
        'node,start,duration\na,2024-05-01,"1,500 s"\n', {}, 2, "'1,500 s' is no length of time",
    ),
    "an unknown form": (
        "node,start\na,first of May\n", {}, 2, "nor a date known here: say --date-format",
    ),
    "an array with a number": ('[{"node": "a", "start": "2024-05-01"},\n 3]', {}, 2, "no JSON obj"),
    "an array that ends early": ('[{"node": "a", "start": "2024-05-01"}', {}, 1, "no valid JSON"),
}  # fmt: skip


@pytest.mark.parametrize("case", CELLS)
def test_cells_that_would_be_read_wrongly_are_refused(tmp_path: Path, case: str) -> None:
    text, options, line, complaint = CELLS[case]
    with pytest.raises(TraceError, match=complaint) as caught:
        read(tmp_path / "log", text, **options)
    assert caught.value.problems[0].place.line == line


@pytest.mark.parametrize(
    ("cell", "hours_down"),
    [
        ("PT1.5H", 1.5), ("P1DT2H3M36S", 26.06), ("P1W", 168.0), ("PT0,5H", 0.5), ("1,5 h", 1.5),
        ("1 day, 2:30:00", 26.5), ("5H", 5.0), ("2w", 336.0), ("90S", 0.025), ("1d", 24.0),
        ("1-02:30", 26.5), ("0-00:00:36", 0.01), ("1 h 30 min", 1.5),
    ],
)  # fmt: skip
def test_lengths_in_other_forms(tmp_path: Path, cell: str, hours_down: float) -> None:
    log = read(tmp_path / "log", f'node,start,duration\na,2024-05-01,"{cell}"\nb,2024-05-02,1 h\n')
    assert log.down_h.tolist() == pytest.approx([hours_down, 1.0])


def test_decimals_are_not_taken_for_thousands(tmp_path: Path) -> None:
    log = read(tmp_path / "a", "node;start\na;0,125\nb;1,250\na;12,000\n", time_unit="h")
    assert log.start_h.tolist() == pytest.approx([0.0, 1.125, 11.875])
    log = read(tmp_path / "b", "node;start\na;1\nb;1.250\na;12.5\nb;13\n", time_unit="h")
    assert log.start_h.tolist() == pytest.approx([0.0, 0.25, 11.5, 12.0])


@pytest.mark.parametrize("words", [("1", "0"), ("UP", "DOWN"), ("1.0", "0.0")])
def test_a_column_for_each_node_is_told_how_to_become_rows(
    tmp_path: Path, words: tuple[str, str]
) -> None:
    up = {"a": True, "b": True}
    rows = []
    for at, node, is_up in CHANGES:
        up[node] = is_up
        rows.append(f"{at},{words[not up['a']]},{words[not up['b']]}")
    path = tmp_path / "grafana.csv"
    with pytest.raises(TraceError, match="a column of states for each node") as caught:
        read(path, "\n".join(["Time,a,b", *rows]) + "\n")
    assert "melt('Time', var_name='node', value_name='up')" in str(caught.value)
    molten = pd.read_csv(path).melt("Time", var_name="node", value_name="up")  # as it says
    molten.to_csv(tmp_path / "log.csv", index=False)
    require_the_three(read(tmp_path / "log.csv", columns={"start": "Time"}))


@pytest.mark.parametrize("none", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"])
def test_the_zero_of_a_clock_is_no_end(tmp_path: Path, none: str) -> None:
    text = (
        "node,start,end\na,2024-05-01T00:00:00Z,{}\na,2024-05-03T00:00:00Z,2024-05-04T00:00:00Z\n"
    )
    log = read(tmp_path / "log", text.format(none))
    assert log.guessed.tolist() == [True, False]
    assert "1 end(s) such as 0, 1970-01-01 or the year 1 taken for none" in log.notes
    log = read(tmp_path / "log", "node,start,end\na,1714557600,0\na,1714730400,1714734000\n")
    assert log.guessed.tolist() == [True, False]
    hours_alone = "node,start,end\na,1,2\na,9,12\n"  # counted from the file's own zero
    assert read(tmp_path / "log", hours_alone, time_unit="h").end_h.tolist() == [1.0, 11.0]


def test_lists_of_nodes_in_json_are_an_outage_of_each(tmp_path: Path) -> None:
    rows = '{"node": ["a", "b"], "start": "2024-05-01"}\n{"node": ["a"], "start": "2024-05-03"}\n'
    log = read(tmp_path / "log", rows)
    assert log.node_names == ("a", "b")
    assert log.n_outages == 3


@pytest.mark.parametrize(
    ("names", "pair"),
    [(("n1", "N1"), "N1 and n1"), (("n1", "n1.example.org"), "n1 and n1.example.org")],
)
def test_names_that_are_nearly_one_are_pointed_at(
    tmp_path: Path, names: tuple[str, str], pair: str
) -> None:
    text = f"node,start\n{names[0]},2024-05-01\n{names[1]},2024-05-02\n10.0.0.1,2024-05-03\n"
    log = read(tmp_path / "log", text + "10.0.0.2,2024-05-04\n")
    (said,) = (note for note in log.notes if "differ from another's" in note)
    assert said.startswith("1 name(s)")
    assert pair in said


def test_states_in_a_column_of_another_name_are_pointed_at(tmp_path: Path) -> None:
    text = "Series,Time,Value\na,2024-05-01 10:00,0\na,2024-05-01 12:00,1\n"
    log = read(tmp_path / "log", text, columns={"node": "Series", "start": "Time"})
    assert any("'Value' holds 0 and 1: called up, or down, it would" in one for one in log.notes)


def test_a_unit_in_a_name_is_said(tmp_path: Path) -> None:
    log = read(tmp_path / "log", "node,start_min\na,0\nb,90\n", columns={"start": "start_min"})
    assert log.start_h.tolist() == [0.0, 1.5]
    assert "times taken in min, as the column 'start_min' says" in log.notes


def test_xids_of_syslogs_newer_form(tmp_path: Path) -> None:
    line = (
        "<4>1 2024-05-0{}T10:00:00.003Z gpu{} kernel - - - NVRM: Xid (PCI:0000:1a:00): 79, gone\n"
    )
    log = read(tmp_path / "log", line.format(1, 7) + line.format(2, 8))
    assert log.node_names == ("gpu7", "gpu8")
    assert log.start_h.tolist() == [0.0, 24.0]


def test_a_packed_archive_of_several_logs_is_told_to_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "log.tar.gz"
    path.write_bytes(gzip.compress(TAR.getvalue()))
    shown = call("fit", path)
    assert shown.exit_code == 2
    assert "is an archive (tar)" in shown.stderr
    assert "Traceback" not in shown.stderr
