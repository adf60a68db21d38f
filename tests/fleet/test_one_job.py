"""Jobs that nobody holds up are what `cprsim run` makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import simulate
from cprsim.fleets.course import run_history
from cprsim.scenario import load_scenario
from tests.fleet.making import JOB, loaded, prepared

N = 4  # replications, each alone on its fleet
SYSTEMS = (
    JOB.replace(
        "recovery: [full, {strategy: cpr, target_pls: 0.1}]",
        "recovery: [full, partial, {strategy: gemini, options: {remote_every: 2 h}}]",
    )
    .replace("repair:", "link: 100 Gbit/s, repair:")
    .replace("useful: 40 h", "useful: 40 h, step: 10 s")
)


def alone(path: Path, spares: str, job: str = JOB) -> list[np.ndarray]:
    """Wall hours and parts of each replication of the one job, by strategy."""
    path.write_text(job, "utf-8")
    overrides = [f"cluster.spares={spares}", f"simulation.replications={N}"]
    outcome = simulate(assemble(load_scenario(path, overrides)))
    return [np.column_stack([one.costs.wall_h, one.costs.hours]) for one in outcome.strategies]


@pytest.mark.parametrize(
    ("job", "spares", "storage"),
    [
        (JOB, "null", "null"),
        (JOB, "1", "null"),
        (JOB, "0", "25 Gbit/s"),
        (JOB, "null", "25 Gbit/s"),
        (SYSTEMS, "1", "null"),
        pytest.param(SYSTEMS, "1", "25 Gbit/s", marks=pytest.mark.long),
    ],
)
def test_one_job_alone_is_a_run_of_it(tmp_path: Path, spares: str, storage: str, job: str) -> None:
    fleet = prepared(
        tmp_path, "{jobs: 1, arrivals: even}", f"fleet.spares={spares}", f"fleet.storage={storage}",
        job=job,
    )  # fmt: skip
    expected = alone(tmp_path / "alone.yaml", spares, job)
    for strategy, of_strategy in enumerate(expected):
        for replication in range(N):
            rows = run_history(fleet, strategy, replication, simpy_alone=True)
            found = [rows.wall_h[0], *rows.hours[0]]
            np.testing.assert_allclose(found, of_strategy[replication], rtol=1e-9, atol=1e-9)


def test_jobs_that_come_late_on_a_fleets_clock_are_the_same(tmp_path: Path) -> None:
    fleet = prepared(tmp_path, "{jobs: 30, kinds: 3, vary: {useful: {family: uniform, "
                     "low: 5 h, high: 90 h}}, window: 700 h}")  # fmt: skip
    for strategy in range(2):
        engine, events = (run_history(fleet, strategy, simpy_alone=one) for one in (False, True))
        assert (engine.by_events, events.by_events) == (False, True)
        for name in ("wall_h", "hours", "pls", "n_failures", "n_saves", "written_bytes"):
            np.testing.assert_allclose(getattr(events, name), getattr(engine, name), rtol=1e-9,
                                       atol=1e-9)  # fmt: skip


def test_spares_that_never_run_out_are_found_without_simulating_each_event(tmp_path: Path) -> None:
    fleet = "{jobs: 20, kinds: 2, nodes: 40, spares: %d, window: 100 h}"
    some, many = (prepared(tmp_path, fleet % n) for n in (1, 300))
    assert run_history(some, 0).by_events
    found, by_events = run_history(many, 0), run_history(many, 0, simpy_alone=True)
    assert not found.by_events
    np.testing.assert_allclose(found.end_h, by_events.end_h, rtol=1e-9)


def test_every_hour_of_every_job_belongs_to_one_part(tmp_path: Path) -> None:
    fleet = prepared(tmp_path, "{jobs: 20, kinds: 4, nodes: 30, spares: 1, crews: 1, savers: 1, "
                     "storage: 30 Gbit/s, window: 50 h}", "cluster.repair=3 h")  # fmt: skip
    for strategy in range(2):
        rows = run_history(fleet, strategy)
        assert rows.finished.all()
        np.testing.assert_allclose(rows.useful_h + rows.hours.sum(axis=1), rows.wall_h, rtol=1e-9)
        assert rows.hours_of("wait").sum() > 0
        assert (rows.queued_h >= 0).all()


def test_nodes_in_use_never_exceed_those_there_are(tmp_path: Path) -> None:
    fleet = prepared(tmp_path, "{jobs: 40, kinds: 4, nodes: 30, window: 20 h}")
    rows = run_history(fleet, 0)
    at_h = np.concatenate([rows.start_h, rows.end_h])
    change = np.concatenate([rows.n_nodes, -rows.n_nodes])
    order = np.lexsort((change, at_h))  # ends before starts
    assert np.cumsum(change[order]).max() == 30


def test_what_a_history_meets_does_not_depend_on_the_ones_before(tmp_path: Path) -> None:
    fleet = prepared(tmp_path, "{jobs: 6, kinds: 2}")
    again = prepared(tmp_path, "{jobs: 6, kinds: 2}")
    run_history(fleet, 0, 0)
    one, other = run_history(fleet, 0, 1), run_history(again, 0, 1)
    np.testing.assert_array_equal(one.wall_h, other.wall_h)
    assert not np.array_equal(one.wall_h, run_history(fleet, 0, 0).wall_h)


def test_a_fleet_needs_its_section(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="fleet: is missing"):
        loaded(tmp_path, "null") and prepared(tmp_path, "null")
