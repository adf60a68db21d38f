"""What of each format counts; samples that real programs wrote; files that are no logs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cprsim.errors import ParameterError, TraceError
from cprsim.failures.outages import Outages
from cprsim.failures.traces import formats
from cprsim.failures.traces.slurm import expanded
from tests.failures.test_forms import GONE, node_event
from tests.failures.tidy import read
from tests.making import call

RUN = Path(__file__).with_name("samples_run")  # as Slurm 22.05.8 and Prometheus 2.42 wrote them


def kept(folder: Path, content: bytes | str, name: str = "log") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def said(outages: Outages) -> set[tuple[str, str, str]]:
    """Node, start and end of each outage, the end empty where none was seen."""
    begin = datetime.fromisoformat(outages.origin).replace(tzinfo=None)

    def instant(hours: float) -> str:
        return (begin + timedelta(seconds=round(hours * 3600))).isoformat()

    return {
        (outages.node_names[node], instant(start), instant(end) if ended else "")
        for node, start, end, ended in zip(
            outages.node, outages.start_h, outages.end_h, outages.ended, strict=True
        )
    }


# ------------------------------------------------------------------------------- Slurm


def test_slurms_own_events_are_read() -> None:
    path = RUN / "sacctmgr-events.txt"
    outages = read(path, period=("2026-11-22T19:50", "2026-11-22T20:00"))
    assert len(outages.node_names) == 17  # gpu001 to gpu016 and login1
    ended = [row for row in said(outages) if row[2]]
    assert ended == [("gpu003", "2026-11-22T19:56:25", "2026-11-22T19:56:29")]
    assert outages.n_outages == 18  # gpu003 twice; gpu010's two events are one
    causes = dict(zip(outages.node.tolist(), outages.cause, strict=True))
    assert causes[outages.node_names.index("gpu010")] == "DRAIN / bad DIMM"
    assert causes[outages.node_names.index("gpu007")] == "DOWN / Xid 79"
    assert "1 event(s) of the whole cluster left out" in outages.notes
    jobs = read(RUN / "sacct-jobs.txt")
    assert {row[0] for row in said(jobs)} == {"gpu005", "gpu006", "gpu008"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu[001-003,020]", ["gpu001", "gpu002", "gpu003", "gpu020"]),
        ("a1,b[8-10],c", ["a1", "b8", "b9", "b10", "c"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("login-1.site", ["login-1.site"]),
        *(
            (text, [])
            for text in ("", "gpu[1-", "gpu[3-1]", "g[a-b]", "g[1-999999999]", "a]b", ",")
        ),
    ],
)
def test_node_lists_are_expanded_or_refused(text: str, names: list[str]) -> None:
    if names:
        assert expanded(text) == names
    else:
        with pytest.raises(ParameterError):
            expanded(text)


def test_lists_of_nodes_and_states_of_several_words(tmp_path: Path) -> None:
    text = (
        "NodeName|TimeStart|TimeEnd|State|Reason\n"
        "gpu[001-003]|2024-05-01T00:00:00|2024-05-01T02:00:00|DOWN*|a|b [root@2024-05-01]\n"
        "gpu004|2024-05-02T00:00:00|Unknown|MAINT|planned\n"
        "gpu005|2024-05-02T00:00:00|2024-05-02T10:00:00|IDLE+DRAIN|\n"
        "gpu005|2024-05-03T00:00:00|2024-05-03T10:00:00|IDLE+PLANNED|\n"
    )
    outages = read(kept(tmp_path, text))
    assert outages.node_names == ("gpu001", "gpu002", "gpu003", "gpu005")
    assert set(outages.cause) == {"DOWN / a|b", "IDLE+DRAIN"}
    for state in ("MAINT", "IDLE+PLANNED"):
        assert f"1 event(s) left out whose state is no failure ({state})" in outages.notes


def test_jobs_on_several_nodes_count_where_the_failed_node_is_named(tmp_path: Path) -> None:
    rows = "1|NODE_FAIL|2024-05-01T00:00:00|gpu[1-9]|%s\n2|COMPLETED|2024-05-01T00:00:00|gpu3|\n"
    head = "JobID|State|End|NodeList|FailedNode\n"
    outages = read(kept(tmp_path, head + rows % "gpu4"))
    assert outages.node_names == ("gpu4",)
    with pytest.raises(TraceError, match="holds no failure of a node"):
        read(kept(tmp_path, head + rows % ""))


# -------------------------------------------------------------- Kubernetes, Xids, Prometheus


def test_kubernetes_pairs_leave_out_what_has_no_partner(tmp_path: Path) -> None:
    hours = datetime(2024, 5, 1)
    events = [
        node_event(node, reason, hours + timedelta(minutes=at_min))
        for node, reason, at_min in (
            ("a", "NodeReady", 0), ("a", "NodeNotReady", 60), ("a", "NodeNotReady", 65),
            ("a", "Rebooted", 90), ("a", "NodeReady", 120), ("b", "Rebooted", 180),
            ("b", "Starting", 180),
        )
    ]  # fmt: skip
    merged = node_event("c", "NodeNotReady", hours + timedelta(hours=4))
    merged |= {"count": 5, "lastTimestamp": "2024-05-01T09:00:00Z"}
    outages = read(kept(tmp_path, "\n".join(map(json.dumps, [*events, merged]))))
    assert said(outages) == {
        ("a", "2024-05-01T01:00:00", "2024-05-01T02:00:00"),
        ("b", "2024-05-01T03:00:00", "2024-05-01T03:00:00"),
        ("c", "2024-05-01T04:00:00", ""),
    }
    assert outages.cause == ("NodeNotReady", "Rebooted", "NodeNotReady")
    for note in (
        "1 Ready event(s) of nodes that were ready already left out",
        "2 NotReady event(s) of nodes that were not ready already left out",
        "3 repetition(s) of merged events left out: their instants are not kept",
        "1 event(s) Starting left out: the node goes on",
    ):
        assert note in outages.notes


def test_xids_of_every_kind_of_kernel_log(tmp_path: Path) -> None:
    text = (
        f"Dec 31 23:00:00 a kernel: {GONE}\nJan  1 01:00:00 a kernel: {GONE}\n"
        "[Mon Jan  1 02:00:00 2024] NVRM: Xid (PCI:0000:3b:00): 95, pid=7\n"
        f"2024-01-01T05:00:00.2+02:00 b kernel: {GONE}\n"
        "2024-01-01T06:00:00+02:00 b kernel: NVRM: Xid (PCI:0000:3b:00): 13, pid=7\n"
        "2024-01-01T06:00:01+02:00 b kernel: something else\n"
        "<4>1 2024-01-01T10:00:00.003Z c kernel - - - NVRM: Xid (PCI:0000:1a:00): 79, gone\n"
    )
    outages = read(kept(tmp_path, text), period=("2023-06-01", None))
    assert {row[:2] for row in said(outages)} == {
        ("a", "2023-12-31T23:00:00"), ("a", "2024-01-01T01:00:00"),
        ("this machine", "2024-01-01T02:00:00"), ("b", "2024-01-01T03:00:00"),
        ("c", "2024-01-01T10:00:00"),
    }  # fmt: skip
    assert "1 Xid(s) 13 left out, of those that lose no node" in outages.notes
    with pytest.raises(TraceError, match="no Xid at all"):
        read(kept(tmp_path, "2024-01-01T06:00:01+02:00 b kernel: something else\n"))


def test_prometheus_own_answer_is_read() -> None:
    outages = read(RUN / "prometheus-up.json")
    assert said(outages) == {
        ("127.0.0.1:39991", "2026-11-22T20:06:21", ""),
        ("127.0.0.1:39992", "2026-11-22T20:05:57", "2026-11-22T20:06:09"),
        ("127.0.0.1:39993", "2026-11-22T20:05:41", ""),
    }
    assert outages.n_nodes == 3
    assert outages.window_given == (True, True)
    assert "2 s is the query's step: shorter outages are not seen" in outages.notes


def test_samples_that_are_no_number(tmp_path: Path) -> None:
    values = [[1_714_570_200 + 60 * k, text] for k, text in enumerate(["1", "NaN", "0", "1"])]
    series = {"metric": {"instance": "a"}, "values": values}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    outages = read(kept(tmp_path, json.dumps(answer)))
    assert outages.start_h.tolist() == pytest.approx([2 / 60])
    assert "1 sample(s) that are no number left out" in outages.notes


# ---------------------------------------------------------------------------------- any table


def test_numbers_that_look_like_1970_need_no_unit_and_no_wrong_one(tmp_path: Path) -> None:
    path = kept(tmp_path, "node,start,end\na,1714570200,1714573800\nb,1714656600,1714660200\n")
    outages = read(path)
    assert (outages.origin, outages.window_h) == ("2024-05-01T13:30:00+00:00", 25)
    assert "times taken as s since 1970, as no unit was given" in outages.notes
    with pytest.raises(TraceError, match=r"log:2: time_unit: the times look like s since 1970 "):
        read(path, time_unit="ms")
    assert read(path, period=("2024-05-01", "2024-05-03")).window_h == 48
    ms = kept(tmp_path, path.read_text().replace("00\n", "00000\n").replace("00,", "00000,"))
    with pytest.raises(TraceError, match="look like ms since 1970"):
        read(ms, time_unit="s")


def test_the_hour_that_occurs_twice_and_the_one_that_is_skipped(tmp_path: Path) -> None:
    # Berlin 2024: 31 March 02:00 to 03:00 is skipped, 27 October 02:00 to 03:00 occurs twice
    text = (
        "node,start,end\na,2024-03-31 01:30,2024-03-31 03:30\nb,2024-03-31 02:30,\n"
        "c,2024-10-27 01:30,2024-10-27 02:30\nd,2024-10-27 02:40,2024-10-27 02:20\n"
    )
    outages = read(kept(tmp_path, text), tz="Europe/Berlin", period=("2024-03-31", None))
    assert outages.origin == "2024-03-31T00:00:00+01:00"
    starts = dict(zip(outages.node_names, outages.start_h.tolist(), strict=True))
    downs = dict(zip(outages.node_names, outages.down_h.tolist(), strict=True))
    assert starts["a"] == 1.5
    assert downs["a"] == 1  # not 2
    assert starts["b"] == 2
    assert downs["c"] == 1
    assert downs["d"] == pytest.approx(40 / 60)  # its end is in the second of the two hours
    assert any(note.startswith("3 local time(s) in an hour that occurs twice") for note in
               outages.notes)  # fmt: skip
    assert any(note.startswith("1 local time(s) that summer time skips") for note in outages.notes)
    with pytest.raises(ParameterError, match="no time zone 'Europe/Nowhere'"):
        read(kept(tmp_path, text), tz="Europe/Nowhere")


def test_the_command_says_what_it_guessed_and_can_be_overridden() -> None:
    path = RUN / "sacctmgr-events.txt"
    shown = call("fit", path, "--bootstrap", 0, "-v")
    assert (
        "Read as format slurm-events: the columns of `sacctmgr show event` (--format overrides)."
        in shown.stdout
    )
    other = call("fit", path, "--format", "tidy")
    assert other.exit_code == 2
    assert "there is no column 'node'" in other.stderr


@pytest.mark.parametrize(
    ("begins", "advice"),
    [
        (b"PK\3\4\0 and more", "is no text: write the log as CSV"),
        ("node,start,end\n".encode("utf-16"), "is no text"),
        (b"[1, 2]\n", "there is no column 'node'"),
        (b'{"events": [{"node": "a"}]}\n', "there is no column 'node'"),
        (b'{"a": 1\n', ":2: is no valid JSON"),
        (b'[{"node": "a", "start": "2024-05-01"},\n 3]', ":2: is no JSON object such as"),
        (b'[{"node": "a", "start": "2024-05-01"}', ":1: is no valid JSON: the array does not end"),
        (b"a,2024-05-01,2024-05-02\nb,2024-05-03,2024-05-04\n", "is the first line no header?"),
        (b"Host,Begin,Finish\na,1,2\n", "--column node=Host --column start=Begin --column end=F"),
        (b'{"meta": {"host": "a"}, "time": 1}\n', "--column node=meta.host --column start=time"),
        (b"NodeName,Start time\na,1\n", "--column node=NodeName --column 'start=Start time'"),
        (b"node,start,start\na,1,2\n", "start: two columns have this name: rename one of them"),
        (b"node,start\na,2024-05-01 10:00 CET\n", "is no ISO 8601 time stamp"),
        (b'node,start\na,"1,250"\n', "'1,250' is no ISO 8601 time stamp"),
        (b"node,start\na,20240501\n", "the times are numbers: say in which unit"),
        (b"node,start\na,2024-05-01\nb,now\n", ":3: start: 'now' is no ISO 8601 time stamp"),
        (b"node,start,end\na,1,2\nb,3", ":3: the file ends within this row"),
        ("node,start,Grund\na,1,St\xf6rung\n".encode("latin-1"), ":2: can't be read: byte 7"),
        (b'{"kind": "List", "items": []}\n', "holds no event of a node that is not ready"),
        (b'{"status": "error", "error": "too many points"}\n', "of Prometheus: too many points"),
    ],
)
def test_what_no_format_reads_is_one_clear_error(
    tmp_path: Path, begins: bytes, advice: str
) -> None:
    path = tmp_path / "log"
    path.write_bytes(begins)
    shown = call("fit", path, "--bootstrap", 0, *(["--time-unit", "h"] if b",3" in begins else []))
    assert shown.exit_code == 2
    assert advice in " ".join(shown.stderr.split())


# -------------------------------------------------------------------- a format of one's own

PAGER = '''
from collections import Counter

import pandas as pd

from cprsim.failures.traces.files import numbered_lines
from cprsim.failures.traces.log import Log, LogFormat
from cprsim.failures.traces.reading import FIRST_ROW
from cprsim.failures.traces.times import read_times


def read_pager(log, spec):
    """Pages such as `2024-05-01T10:00Z gpu001 is down`."""
    lines = {line - FIRST_ROW: text.split() for line, text in numbered_lines(log)}
    rows = pd.DataFrame.from_dict(lines, "index").iloc[:, :2].set_axis(["start", "node"], axis=1)
    rows["start"] = read_times(rows["start"], None, log).hours
    return Log(rows.assign(end=float("nan"), cause=""), Counter(), points=True)


FORMAT = LogFormat(lambda head: "pages" if "is down" in head.text else "", read_pager)
'''


def test_a_format_is_one_file_that_is_named_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pager.py").write_text(PAGER)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    log = kept(tmp_path, "2024-05-01T10:00Z a is down\n2024-05-02T10:00Z b is down\n")
    shown = call("fit", log, "--bootstrap", 0, "-v")
    assert "Read as format pager: pages" in shown.stdout
    assert read(log).start_h.tolist() == [0, 24]
    bad = kept(tmp_path, "2024-05-01T10:00Z a is down\nsoon b is down\n")
    assert ":2: start: 'soon' is no ISO 8601 time stamp" in call("fit", bad).stderr
