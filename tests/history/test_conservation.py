"""The account of a job closes, whatever its log says: or the log is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cprsim.errors import CprsimError
from cprsim.events import EVENTS
from cprsim.logs.jobs.ledger import LEDGER_PARTS, ledgers
from cprsim.logs.jobs.reading import read_logs
from tests.history.making import told, write_events

USUAL = (
    "job.start", "train.resume", "progress", "progress", "save.start", "save.commit", "failure",
    "failure.detected", "reschedule.start", "load.start", "job.end",
)  # fmt: skip


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events of a job in any order, most of them at likely distances, with likely fields."""
    names = draw(
        st.lists(st.sampled_from(USUAL) | st.sampled_from(EVENTS), min_size=1, max_size=40)
    )
    at_s, step, attempt, events = 0.0, 0.0, 0, []
    says = draw(st.sampled_from((0.0, 0.5, 1.0)))  # how often an event says its step
    counts = draw(st.booleans())
    for name in names:
        at_s += draw(st.sampled_from((0.0, 0.001, 1.0, 30.0, 600.0, 7200.0)))
        step = max(0.0, step + draw(st.sampled_from((0.0, 0.0, 1.0, 50.0, 700.0, -100.0))))
        attempt += name == "job.start" and draw(st.booleans())
        fields: dict[str, Any] = {"attempt": attempt} if counts else {}
        if draw(st.floats(0, 1)) <= says:
            fields["step"] = step
        if name == "job.start" and draw(st.booleans()):
            fields["step_seconds"] = draw(st.sampled_from((0.01, 1.0, 12.0, 900.0)))
        if name in ("job.end", "failure"):
            fields["outcome"] = draw(
                st.sampled_from(("", "finished", "stopped", "failed", "missed"))
            )
            fields["cause"] = draw(st.sampled_from(("", "TIMEOUT", "ecc")))
        if name.startswith("save") and draw(st.booleans()):
            fields["save_id"] = draw(st.sampled_from("ab"))
        events.append((at_s, name, fields))
    return told(*events)


def check_it_closes(path: Path, events: list[dict[str, Any]]) -> None:
    write_events(path, events)
    try:
        (job,) = ledgers(read_logs([path]), n_draws=5)
    except CprsimError:
        return
    of_parts = np.array([job.draws[name] for name in ("useful", *LEDGER_PARTS)])
    assert np.isfinite(of_parts).all()
    assert (of_parts >= -1e-9).all(), job.draws
    np.testing.assert_allclose(of_parts.sum(axis=0), job.wall_h, rtol=1e-9, atol=1e-9)
    assert job.n_failures >= sum(one.n_failures for one in job.incidents) >= 0


def test_work_below_the_step_of_a_rollback_closes(tmp_path: Path) -> None:
    step = {"step": 1.0}
    events = [
        (0.0, "progress", {"step": 0.0}), (0.001, "progress", step), (0.002, "rollback", step),
        (0.002, "warm-up.start", step), (0.003, "train.resume", step),
        (0.003, "progress", {"step": 0.0}), (0.004, "train.resume", {"step": 0.0}),
    ]  # fmt: skip
    check_it_closes(tmp_path / "log", told(*events))


@pytest.mark.parametrize("n", [200, pytest.param(2000, marks=pytest.mark.long)])
def test_parts_sum_to_the_wall_time_whatever_the_log_says(tmp_path, n) -> None:
    @settings(max_examples=n, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(events=logs())
    def close(events: list[dict[str, Any]]) -> None:
        check_it_closes(tmp_path / "log", events)

    close()
