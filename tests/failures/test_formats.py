"""Every format of logs: recognised, read, and said; samples that real programs wrote."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cprsim.errors import ParameterError, TraceError
from cprsim.failures.outages import Outages
from cprsim.failures.traces import formats
from cprsim.failures.traces.formats import guess
from cprsim.failures.traces.slurm import expanded
from tests.failures.samples import CAUSES, PERIOD, POINTS, ROWS, RUN, WRITERS, node_event
from tests.failures.tidy import read
from tests.making import call


def kept(folder: Path, content: bytes | str, name: str = "log") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def said(outages: Outages, *, ends: bool = True) -> set[tuple[str, str, str]]:
    """Node, start and end of each outage, written as `ROWS` are."""
    begin = datetime.fromisoformat(outages.origin).replace(tzinfo=None)

    def instant(hours: float) -> str:
        return (begin + timedelta(seconds=round(hours * 3600))).isoformat()

    columns = zip(
        outages.node.tolist(), outages.start_h.tolist(), outages.end_h.tolist(),
        outages.ended.tolist(), strict=True,
    )  # fmt: skip
    return {
        (outages.node_names[node], instant(start), instant(end) if ended and ends else "")
        for node, start, end, ended in columns
    }


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_log_is_recognised_and_read_alike_in_every_format(
    tmp_path: Path, name: str
) -> None:
    path = kept(tmp_path, WRITERS[name](ROWS))
    form, why = guess(path)
    assert form == name, why
    outages = read(path, period=PERIOD)
    expected = {(row.node, row.start, "" if name in POINTS else row.end) for row in ROWS}
    assert said(outages, ends=name not in POINTS) == expected
    assert outages.window_h == 19 * 24
    if name in CAUSES:
        assert outages.cause == tuple(row.cause for row in ROWS)


def test_a_format_is_one_file_of_its_folder() -> None:
    files = list(Path(formats.__file__).parent.glob("[a-z]*.py"))
    assert len(formats.names()) == len(files)


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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu[001-003,020]", ["gpu001", "gpu002", "gpu003", "gpu020"]),
        ("a1,b[8-10],c", ["a1", "b8", "b9", "b10", "c"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("login-1.site", ["login-1.site"]),
    ],
)
def test_node_lists_are_expanded(text: str, names: list[str]) -> None:
    assert expanded(text) == names


@pytest.mark.parametrize(
    "text", ["", "gpu[1-", "gpu[3-1]", "gpu[a-b]", "g[1-999999999]", "a]b", ","]
)
def test_what_is_no_node_list_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        expanded(text)


def test_lists_of_nodes_and_states_that_are_no_failure(tmp_path: Path) -> None:
    text = (
        "NodeName|TimeStart|TimeEnd|State|Reason\n"
        "gpu[001-003]|2024-05-01T00:00:00|2024-05-01T02:00:00|DOWN*|a|b [root@2024-05-01]\n"
        "gpu004|2024-05-02T00:00:00|Unknown|MAINT|planned\n"
    )
    outages = read(kept(tmp_path, text))
    assert outages.node_names == ("gpu001", "gpu002", "gpu003")
    assert set(outages.cause) == {"DOWN / a|b"}
    assert "1 event(s) left out whose state is no failure (MAINT)" in outages.notes


def test_jobs_on_several_nodes_count_where_the_failed_node_is_named(tmp_path: Path) -> None:
    rows = "1|NODE_FAIL|2024-05-01T00:00:00|gpu[1-9]|%s\n2|COMPLETED|2024-05-01T00:00:00|gpu3|\n"
    head = "JobID|State|End|NodeList|FailedNode\n"
    outages = read(kept(tmp_path, head + rows % "gpu4"))
    assert outages.node_names == ("gpu4",)
    with pytest.raises(TraceError, match="holds no failure of a node"):
        read(kept(tmp_path, head + rows % ""))


def test_kubernetes_pairs_leave_out_what_has_no_partner(tmp_path: Path) -> None:
    events = [
        node_event("a", "NodeReady", "2024-05-01T00:00:00"),
        node_event("a", "NodeNotReady", "2024-05-01T01:00:00"),
        node_event("a", "NodeNotReady", "2024-05-01T01:05:00"),
        node_event("a", "NodeReady", "2024-05-01T02:00:00"),
        node_event("b", "Rebooted", "2024-05-01T03:00:00"),
        node_event("b", "Starting", "2024-05-01T03:00:00"),
    ]
    merged = {**node_event("c", "NodeNotReady", "2024-05-01T04:00:00"), "count": 5,
              "lastTimestamp": "2024-05-01T09:00:00Z"}  # fmt: skip
    watched = "\n".join(json.dumps(event) for event in [*events, merged])
    outages = read(kept(tmp_path, watched))
    assert said(outages) == {
        ("a", "2024-05-01T01:00:00", "2024-05-01T02:00:00"),
        ("b", "2024-05-01T03:00:00", "2024-05-01T03:00:00"),
        ("c", "2024-05-01T04:00:00", ""),
    }
    for note in (
        "1 Ready event(s) of nodes that were ready already left out",
        "2 NotReady event(s) of nodes that were not ready already left out",
        "3 repetition(s) of merged events left out: their instants are not kept",
        "1 event(s) of nodes left out that are no failure",
    ):
        assert note in outages.notes


def test_a_node_that_restarts_while_it_is_not_ready_fails_once(tmp_path: Path) -> None:
    events = [
        node_event("a", "NodeNotReady", "2024-05-01T01:00:00"),
        node_event("a", "Rebooted", "2024-05-01T01:30:00"),
        node_event("a", "NodeReady", "2024-05-01T02:00:00"),
        node_event("b", "Rebooted", "2024-05-01T03:00:00"),
    ]
    outages = read(kept(tmp_path, "\n".join(json.dumps(event) for event in events)))
    assert outages.cause == ("NodeNotReady", "Rebooted")
    what = "outage(s) of nodes that were down already, merged into the outage under way"
    assert f"1 {what}" in outages.notes


def test_xids_of_every_kind_of_kernel_log(tmp_path: Path) -> None:
    tail = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    text = (
        f"Dec 31 23:00:00 a {tail}Jan  1 01:00:00 a {tail}"
        "[Mon Jan  1 02:00:00 2024] NVRM: Xid (PCI:0000:3b:00): 95, pid=7\n"
        f"2024-01-01T05:00:00.2+02:00 b {tail}"
        "2024-01-01T06:00:00+02:00 b kernel: NVRM: Xid (PCI:0000:3b:00): 13, pid=7\n"
        "2024-01-01T06:00:01+02:00 b kernel: something else\n"
        "<4>1 2024-01-01T10:00:00.003Z c kernel - - - NVRM: Xid (PCI:0000:1a:00): 79, gone\n"
    )
    outages = read(kept(tmp_path, text), period=("2023-06-01", None))
    assert said(outages, ends=False) == {
        ("a", "2023-12-31T23:00:00", ""), ("a", "2024-01-01T01:00:00", ""),
        ("this machine", "2024-01-01T02:00:00", ""), ("b", "2024-01-01T03:00:00", ""),
        ("c", "2024-01-01T10:00:00", ""),
    }  # fmt: skip
    assert "1 Xid(s) 13 left out, of those that lose no node" in outages.notes
    with pytest.raises(TraceError, match="names no year: --period says it"):
        read(kept(tmp_path, text))


# ---------------------------------------------------------------------------------- any table


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_separator(tmp_path: Path, separator: str) -> None:
    text = separator.join(["node", "start", "end"]) + "\n" + separator.join(["a", "1", "2"]) + "\n"
    assert read(kept(tmp_path, text), time_unit="h").down_h.tolist() == [1]


def test_dates_of_other_forms_have_to_be_said(tmp_path: Path) -> None:
    path = kept(tmp_path, "node,start\na,01/05/2024\nb,03/05/2024\n")
    with pytest.raises(TraceError, match=r"log:2: start: '01/05/2024' is no ISO 8601.*--date-form"):
        read(path)
    assert read(path, date_format="%d/%m/%Y").window_h == 48
    american = kept(tmp_path, "node,start\na,05/01/2024 1:30 PM\nb,05/13/2024 1:30 PM\n")
    outages = read(american, date_format="%m/%d/%Y %I:%M %p")
    assert (outages.origin, outages.window_h) == ("2024-05-01T13:30:00", 288)


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


def test_the_command_says_what_it_guessed_and_can_be_overridden(tmp_path: Path) -> None:
    path = kept(tmp_path, WRITERS["slurm-events"](ROWS))
    shown = call("fit", path, "--bootstrap", 0, "-v")
    assert shown.exit_code == 0, shown.output
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


def test_samples_that_are_no_number_and_states_of_several_words(tmp_path: Path) -> None:
    values = [[1_714_570_200 + 60 * k, text] for k, text in enumerate(["1", "NaN", "0", "1"])]
    series = {"metric": {"instance": "a"}, "values": values}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    outages = read(kept(tmp_path, json.dumps(answer)))
    assert outages.start_h.tolist() == pytest.approx([2 / 60])
    assert "1 sample(s) that are no number left out" in outages.notes
    stamps = ("2024-05-01T10:00:00|2024-05-01T11:00:00", "2024-05-02T10:00:00|2024-05-02T11:00:00")
    states = zip(stamps, ("IDLE+DRAIN", "IDLE+PLANNED"), strict=True)
    rows = [f"a|{stamp}|{state}" for stamp, state in states]
    outages = read(kept(tmp_path, "\n".join(["NodeName|TimeStart|TimeEnd|State", *rows]) + "\n"))
    assert outages.n_outages == 1
    assert "1 event(s) left out whose state is no failure (IDLE+PLANNED)" in outages.notes
