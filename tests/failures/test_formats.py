"""Logs that real programs wrote, the guess of a format, and a format of one's own."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cprsim.failures.outages import Outages
from cprsim.failures.traces import formats
from tests.failures.tidy import read
from tests.making import call

RUN = Path(__file__).with_name("samples_run")  # as Slurm 22.05.8 and Prometheus 2.42 wrote them


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
    (log := tmp_path / "log").write_text(
        "2024-05-01T10:00Z a is down\n2024-05-02T10:00Z b is down\n"
    )
    shown = call("fit", log, "--bootstrap", 0, "-v")
    assert "Read as format pager: pages" in shown.stdout
    assert read(log).start_h.tolist() == [0, 24]
    log.write_text("2024-05-01T10:00Z a is down\nsoon b is down\n")
    assert ":2: start: 'soon' is no ISO 8601 time stamp" in call("fit", log).stderr
