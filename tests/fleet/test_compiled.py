"""The compiled loop of large fleets against SimPy, which decides: job by job, part by part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.fleets import course
from cprsim.fleets.course import run_history
from cprsim.fleets.records import JobRows
from tests.fleet.making import JOB, prepared
from tests.fleet.test_one_job import SYSTEMS

NUMBERS = ("start_h", "wall_h", "useful_h", "hours", "pls", "n_failures", "n_saves",
           "written_bytes", "finished")  # fmt: skip
LIMITS = ("nodes: 40", "spares: 1", "crews: 2", "queue: backfill", "storage: 40 Gbit/s")

pytestmark = pytest.mark.long  # the loop is compiled


def require_same(one: JobRows, other: JobRows) -> None:
    assert one.parts == other.parts
    for name in NUMBERS:
        found, expected = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("job", [JOB, SYSTEMS], ids=["strategies", "systems"])
def test_jobs_that_meet_are_those_of_simpy(tmp_path: Path, job: str, seed: int) -> None:
    """Random fleets: which limits hold, how long jobs are, how many there are."""
    rng = np.random.default_rng(seed)
    limits = [one for one in LIMITS if rng.random() < 0.6]
    if not {"spares: 1", "storage: 40 Gbit/s"} & set(limits):
        limits.append("storage: 40 Gbit/s")
    if "crews: 2" in limits and "spares: 1" not in limits:
        limits.remove("crews: 2")
    if "queue: backfill" in limits and "nodes: 40" not in limits:
        limits.remove("queue: backfill")
    vary = "vary: {useful: {family: uniform, low: 5 h, high: 60 h}}"
    text = f"{{jobs: {rng.integers(4, 16)}, kinds: 2, window: 60 h, {vary}, {', '.join(limits)}}}"
    fleet = prepared(tmp_path, text, f"simulation.seed={seed}", "cluster.repair=3 h", job=job)
    for strategy in range(len(fleet.strategies)):
        compiled = run_history(fleet, strategy, compiled_alone=True)
        by_events = run_history(fleet, strategy, simpy_alone=True)
        assert (compiled.by_events, by_events.by_events) == (False, True)
        require_same(compiled, by_events)


def test_jobs_of_many_failures_have_more_drawn_for_them(tmp_path: Path) -> None:
    """The loop goes on from where it stood: with more failures, more draws, more places."""
    fleet = prepared(
        tmp_path, "{jobs: 300, kinds: 3, storage: 900 Gbit/s, arrivals: together}",
        "failures.mtbf=0.6 h", "job.useful=12 h",
    )  # fmt: skip
    compiled = run_history(fleet, 0, compiled_alone=True)
    assert compiled.n_failures.max() > 40
    require_same(compiled, run_history(fleet, 0, simpy_alone=True))


def test_work_that_is_lost_at_a_horizon_is_not_done(tmp_path: Path) -> None:
    """Where all start again at a failure, some have no work done at the horizon."""
    fleet = prepared(
        tmp_path, "{jobs: 30, spares: 6}", "job.horizon=9 h", "failures.mtbf=1 h", "recovery=[none]"
    )
    compiled = run_history(fleet, 0, compiled_alone=True)
    require_same(compiled, run_history(fleet, 0, simpy_alone=True))
    assert 0 < np.count_nonzero(compiled.finished) < fleet.n_jobs


def test_what_the_loop_does_not_take_simpy_does_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = "jobs: 4, kinds: 1, storage: 30 Gbit/s"
    fleet = prepared(tmp_path, f"{{{storage}, savers: 1}}")
    with pytest.raises(ValueError, match="take turns"):
        run_history(fleet, 0, compiled_alone=True)
    assert run_history(fleet, 0).by_events
    few = prepared(tmp_path, f"{{{storage}}}")
    assert run_history(few, 0).by_events, "SimPy is sooner done than the compiler"
    monkeypatch.setattr(course, "refusal", lambda *_, **__: None)
    assert not run_history(few, 0).by_events
