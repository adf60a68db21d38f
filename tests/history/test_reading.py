"""Readers: what torchrun printed, tables of attempts, damaged lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from cprsim.errors import TraceError
from cprsim.logs.jobs.ledger import ledgers
from cprsim.logs.jobs.reading import read_logs
from tests.history.making import told, write_events

SAMPLE = Path(__file__).parent / "samples" / "torchrun.log"


def test_a_run_of_torchrun_with_a_killed_worker() -> None:
    """Instants by hand from the sample: its stamps, and the nanoseconds of its checkpoints."""
    (job,) = ledgers(read_logs([SAMPLE]))
    assert (job.n_failures, job.n_saves, job.finished) == (1, 3, True)
    (incident,) = job.incidents
    assert 3600 * incident.parts_h["load"] == pytest.approx(55.010658522 - 45.231721, abs=1e-3)
    # the first rank's first save, as the log itself says it took
    assert 3600 * job.save_stalls_h[0] == pytest.approx(0.116968093, abs=1e-3)
    assert job.inferred["deaths"] == 0  # the launcher sees at once that a process was killed


def test_an_abort_of_torchrun_is_a_death_of_which_nobody_knows_the_instant(tmp_path) -> None:
    (log := tmp_path / "t.log").write_text(
        SAMPLE.read_text("utf-8").replace("code: -9", "code: -6")
    )
    (job,) = ledgers(read_logs([log]))
    assert 0 <= job.parts["detect"].low < job.parts["detect"].high < 0.5 / 3600
    assert job.inferred["deaths"] == 1


def test_a_packed_log_is_read_as_it_was(tmp_path) -> None:
    events = told((0, "job.start"), (0, "train.resume", {"step": 0}), (9, "job.end", {"step": 9}))
    write_events(tmp_path / "j.jsonl", events)
    for path in (SAMPLE, tmp_path / "j.jsonl"):
        packed = tmp_path / f"{path.name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        pd.testing.assert_frame_equal(
            read_logs([packed]).others.drop(columns="job"),
            read_logs([path]).others.drop(columns="job"),
        )


@pytest.mark.parametrize("name", ["iter_0000020/mp_rank_00", "epoch=1-step=20.ckpt"])
def test_the_step_of_a_checkpoint_stands_in_its_name(tmp_path, name) -> None:
    text = SAMPLE.read_text("utf-8").replace("ck/step-20", name)
    (log := tmp_path / "t.log").write_text(text, "utf-8")
    assert read_logs([log]).others["step"].equals(read_logs([SAMPLE]).others["step"])


AT = "2026-11-22T20:11:59.5+00:00"
START = '{"name": "torchelastic.worker.status.START", "source": "AGENT", "metadata": %s}'
SAVE = "{'checkpoint_id': '/c/7', 'event': 'start', 'time': %s, 'func_name': 'save'}"


@pytest.mark.parametrize(
    "line",
    [
        f"{AT} {START[:60]}",
        f"{AT} {START % 'null'}",
        AT + " " + START % '{"agent_restarts": Infinity}',
        "2026-02-30T20:11:59 Sending process 7 closing signal",
        SAVE.replace("'time': %s, ", ""),
        SAVE.replace("'start'", "start") % 1,
    ],
)
def test_a_damaged_line_of_torchrun_is_counted_and_the_others_read(tmp_path, line) -> None:
    path = tmp_path / "damaged.log"
    path.write_text(f"{SAMPLE.read_text('utf-8')}{line}\n", "utf-8")
    events, whole = read_logs([path]), read_logs([SAMPLE])
    n_lines = len(SAMPLE.read_text("utf-8").splitlines())
    note = f"1 line that are no event left out: damaged.log:{n_lines + 1}"
    assert [str(one) for one in events.notes] == [*map(str, whole.notes), note]
    assert len(events.steps) == len(whole.steps)
    assert len(events.others) == len(whole.others)


def test_two_events_of_torchrun_in_one_line_are_both_read(tmp_path) -> None:
    path = tmp_path / "two.log"
    ends = START.replace("START", "FAILED") % "{}"
    path.write_text(f"{AT} {START % '{}'} {ends}\n", "utf-8")
    assert len(read_logs([path]).others) == 2


def test_logs_of_one_name_that_name_no_job_are_jobs_of_their_own(tmp_path) -> None:
    files = [tmp_path / run / "events.jsonl" for run in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        said = {"step": 9, "node": file.parent.name}
        events = told((0, "job.start", said), (9, "progress", said), (9, "job.end", said))
        nameless = [{key: one[key] for key in one if key != "job"} for one in events]
        write_events(file, nameless)
    (tmp_path / "a" / "other.jsonl").write_bytes(files[0].read_bytes() + b"\n")
    (tmp_path / "b" / "copy.jsonl").write_bytes(files[1].read_bytes())
    jobs = read_logs([*files, tmp_path / "a" / "other.jsonl", files[0], tmp_path / "b"]).jobs
    assert jobs == (*map(str, files),)


ATTEMPTS = """\
job,start,end,last_step,last_saved_step,cause
a,2026-01-01T00:00:00,2026-01-01T10:00:00,1000,900,ecc
a,2026-01-01T10:30:00,2026-01-01T20:30:00,1900,1800,
"""


def test_neither_a_rotated_log_nor_the_jobs_of_one_table_lack_attempts(tmp_path) -> None:
    at = told((0, "job.start"), (9, "progress", {"step": 9}), (99, "progress", {"step": 99}))
    nameless = [{key: one[key] for key in one if key != "job"} for one in at]
    write_events(tmp_path / "a.log.1", nameless[:2])
    write_events(tmp_path / "a.log", nameless[2:])
    (tmp_path / "b.csv").write_text(ATTEMPTS + ATTEMPTS.partition("\n")[2].replace("a,", "b,"))
    notes = read_logs([tmp_path]).notes
    assert "a goes on where a.log ends: one log" in map(str, notes)
    assert not any("no first attempts" in str(note) for note in notes)


def test_damaged_lines_are_counted_and_the_others_read(tmp_path) -> None:
    said = {"step": 5, "loss": {"a": [1]}}  # a field that is not ours does no harm
    good = [json.dumps(one) for one in told((0, "job.start"), (5, "progress", said))]
    bad = ['{"time_unix_nano": 1', "null", '{"event": "progress"}', '{"time_unix_nano": true}']
    bad.append(good[1].replace('"step": 5', '"step": "five"'))
    odd = '{"time_unix_nano": 1700000007000000000, "event": "coffee", "job": "j"}'
    path = tmp_path / "log.jsonl"
    whole = good[1].replace('"step": 5', '"step": 5, "attempt": 0.0')  # as pandas writes it
    lines = [
        good[0],
        *bad,
        odd,
        good[1],
        whole,
        '{"cut off',
        good[1].replace("progress", "pr\xfdgress"),
    ]
    path.write_text("\n".join(lines), "latin-1")
    events = read_logs([path])
    assert (len(events.steps), len(events.others)) == (2, 1)
    assert str(events.notes[0]).startswith("7 lines that are no event left out: log.jsonl:2")
    assert "1 event 'coffee' left out" in str(events.notes[1])


EVENT = '{"time_unix_nano": 1700000000000000000, "event": "save.start", "step": 5}\n'
NO_LOG = "no log that can be read"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("node,start,end\na,1,2\n", NO_LOG),
        (ATTEMPTS.replace("01T20:30", "01T09:30"), r":3: end: .*before the start"),
        (ATTEMPTS.replace("T00:00:00", ""), r":2: start: '2026-01-01' is a date: write its time"),
        (ATTEMPTS.replace("1000,900", "-5,900"), r":2: last_step: .*no number"),
        (ATTEMPTS.replace("1000,900", "1000,1200"), r":2: last_saved_step: '1200' lies beyond"),
        (ATTEMPTS.replace("01T10:30", "01T09:00"), r":3: start: .*before the end of an attempt"),
        (ATTEMPTS.replace("cause", "step_seconds").replace("ecc", "0"), r":2: step_seconds: '0'"),
        (f"{START % '{}'}\n", r":1: .*without a time stamp"),
        (EVENT + EVENT.replace('"step": 5', '"step_seconds": 0'), r":2: step_seconds: 0 is not "),
        (EVENT + EVENT.replace("17", "-17"), r":2: time_unix_nano: -17.* is not "),
    ],
)  # fmt: skip
def test_what_is_no_log_or_says_what_no_job_does_is_refused(tmp_path, text, said) -> None:
    (tmp_path / "a.log").write_text(text, "utf-8")
    with pytest.raises(TraceError, match=f"a.log.*{said}"):
        read_logs([tmp_path / "a.log"])


def test_names_that_are_numbers_are_read_all_at_once(tmp_path, monkeypatch) -> None:
    """As what they say as words, and not line by line, which takes 10 times as long."""
    events = told((0, "job.start"), (60, "save.start", {"save_id": 3, "node": 7}))
    paths = tmp_path / "log.jsonl", tmp_path / "words.jsonl"
    write_events(paths[0], events)
    write_events(paths[1], [events[0], events[1] | {"save_id": "3", "node": "7"}])
    monkeypatch.setattr("cprsim.logs.jobs.reading._line_by_line", None)
    read, as_words = (read_logs([path]) for path in paths)
    pd.testing.assert_frame_equal(read.others, as_words.others)
