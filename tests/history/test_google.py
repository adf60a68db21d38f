"""The log of Google's resiliency library: the goodput of a published job, and damaged lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import cprsim
from cprsim.logs.jobs.reading import read_logs
from tests.accounts.cases_costs import GOOGLE

PUBLISHED_GOODPUT = 0.434337  # (1960 - 40) steps of 8 s in 35,364.3 s, by the library's own test
DATA = os.environ.get("CPRSIM_DATA")


@pytest.mark.skipif(DATA is None, reason="CPRSIM_DATA names no folder with real data")
def test_the_published_job_has_its_published_goodput() -> None:
    log = Path(DATA or "", "jobs/google-a3mega-70b/event_log.log.xz")
    job = cprsim.ledger(log).frames["jobs"].iloc[0]
    assert abs(job["ettr"] - PUBLISHED_GOODPUT) < 0.01
    assert job["wall_h"] * 3600 == pytest.approx(35_364.3, abs=0.1)
    assert (job["n_saves"], job["n_failures"]) == (96, 47)
    assert job["step_s"] == pytest.approx(160.2 / 20, rel=2e-3)


@pytest.mark.skipif(DATA is None, reason="CPRSIM_DATA names no folder with real data")
def test_the_earlier_half_of_the_published_job_predicts_the_later_one() -> None:
    answer = cprsim.calibrate(Path(DATA or "", "jobs/google-a3mega-70b/event_log.log.xz"))
    predicted, observed = answer.frames["prediction"].itertuples()
    assert predicted.ettr_low < 0.42 < 0.44 < predicted.ettr_high
    assert 0.42 < observed.ettr < 0.44
    origins = answer.frames["origins"].set_index("number")
    warm_up_s = float(origins.loc["warmup", "value"].split()[0])
    assert warm_up_s == pytest.approx(130, abs=3)  # by reading the log: 130 s after each load


def test_lines_that_are_damaged_or_of_other_events_are_counted(tmp_path: Path) -> None:
    (log := tmp_path / "events.log").write_text(
        GOOGLE
        + '{"event_type": "checkpoint_saved", "timestamp": "2025-06-01T00:40:00"}\n'
        + '{"event_type": "checkpoint_saved", "timestamp": "soon", "step": 3}\n'
        + '{"event_type": "checkpoint_saved", "timestamp": "2025-06-01T00:40:00", "step": -3}\n'
        + '{"event_type": "node_drained", "timestamp": "2025-06-01T00:40:00"}\n'
        + '{"event_type": "job_sta\n'
    )
    notes = " / ".join(map(str, read_logs([log]).notes))
    assert "4 lines that are no event left out: events.log:80" in notes
    assert "1 event 'node_drained' left out" in notes


def test_jobs_in_one_log_are_told_apart(tmp_path: Path) -> None:
    (log := tmp_path / "events.log").write_text(GOOGLE + GOOGLE.replace("llama", "other"))
    jobs = cprsim.ledger(log).frames["jobs"]
    assert jobs["job"].tolist() == ["llama", "other"]
    assert jobs["ettr"].iloc[0] == pytest.approx(jobs["ettr"].iloc[1], rel=0.01)
    assert jobs["n_failures"].tolist() == [3, 3]
