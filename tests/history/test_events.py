"""The log that a job writes: what is in it, and that it needs nothing but Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cprsim import events
from cprsim.events import FIELDS, JobLog
from cprsim.logs.jobs.ledger import ledgers
from cprsim.logs.jobs.reading import read_logs

TRAINING = """
import sys
from joblog import JobLog
begin, dies = map(int, sys.argv[1:])
log = JobLog("events.jsonl", job="j1")
log.resume(begin)
for step in range(begin, 40):
    log.progress(step + 1)
    if (step + 1) % 10 == 0:
        with log.save(step + 1):
            pass
    if step == dies:
        sys.exit(9)
log.end(40)
"""


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_file_works_when_it_is_copied_alone(tmp_path) -> None:
    shutil.copy(events.__file__, tmp_path / "joblog.py")
    (tmp_path / "train.py").write_text(TRAINING, "utf-8")
    for begin, dies in ((0, 24), (20, 100)):  # -S: the standard library alone
        command = [sys.executable, "-E", "-S", "train.py", str(begin), str(dies)]
        subprocess.run(command, check=False, cwd=tmp_path)
    log = tmp_path / "events.jsonl"
    assert [one["attempt"] for one in lines_of(log) if one["event"] == "job.start"] == [0, 1]
    (job,) = ledgers(read_logs([log]))
    assert (job.job, job.n_failures, job.n_saves, job.n_steps) == ("j1", 1, 4, 40.0)
    assert job.finished


def test_a_save_that_fails_is_abandoned_and_the_error_goes_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "3")
    log = JobLog(tmp_path / "log.jsonl")
    with pytest.raises(RuntimeError), log.save(7):
        raise RuntimeError
    lines = lines_of(tmp_path / "log.jsonl")
    assert [line["event"] for line in lines] == ["job.start", "save.start", "save.abandon"]
    assert lines[0]["attempt"] == 3  # as the launcher says
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert JobLog(tmp_path / "log.jsonl").attempt == 4  # another launch
    assert set(lines[0]) <= set(FIELDS)


def test_a_log_that_cannot_be_written_does_not_stop_the_training(tmp_path, capsys) -> None:
    log = JobLog(tmp_path / "no such folder" / "log.jsonl", attempt=0)
    log.progress(1)
    log.progress(2)
    assert capsys.readouterr().err.count("events are not written") == 1


@pytest.mark.parametrize("wrong", [{"event": "nonsense"}, {"event": "progress", "stepp": 1}])
def test_what_is_no_event_is_said_at_once(tmp_path, wrong) -> None:
    log = JobLog(tmp_path / "log.jsonl", attempt=0)
    with pytest.raises(ValueError, match=r"no event|no field"):
        log.write(**wrong)


def test_the_document_names_every_event_and_field() -> None:
    text = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")
    assert [name for name in (*events.EVENTS, *FIELDS) if f"`{name}`" not in text] == []
