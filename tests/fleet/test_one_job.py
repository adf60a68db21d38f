"""Jobs that nobody holds up are what `cprsim run` makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.commands.fleet.histories import prepare, run_history
from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import assemble
from cprsim.scenario.population import scenario_of
from cprsim.scenario.reading import load_scenario
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
            jobs, hours = run_history(fleet, strategy, replication)
            found = [jobs.wall_h[0], *hours.loc[0]]
            np.testing.assert_allclose(found, of_strategy[replication], rtol=1e-9, atol=1e-9)


def test_jobs_that_come_late_on_a_fleets_clock_are_the_same(tmp_path: Path) -> None:
    """Those of a kind are the replications of its scenario, whenever they start."""
    vary = "vary: {useful: {family: uniform, low: 5 h, high: 90 h}}"
    scenario = loaded(tmp_path, f"{{jobs: 30, kinds: 3, {vary}, window: 700 h}}")
    fleet = prepare(scenario)
    for strategy in range(2):
        jobs, hours = run_history(fleet, strategy)
        for number, kind in enumerate(fleet.population.kinds):
            alone = scenario_of(scenario, kind, number)
            alone = alone.varied({"simulation.replications": kind.n_jobs}, alone.place)
            costs = simulate(assemble(alone)).strategies[strategy].costs
            mine = jobs[jobs.kind == number].sort_values("nth")
            for name in ("wall_h", "n_failures", "n_saves"):
                np.testing.assert_allclose(mine[name], getattr(costs, name), rtol=1e-9)
            found = hours.loc[mine.index, list(costs.parts)]
            np.testing.assert_allclose(found, costs.hours, rtol=1e-9, atol=1e-9)


def test_every_hour_belongs_to_one_part_and_no_more_nodes_are_in_use_than_there_are(
    tmp_path: Path,
) -> None:
    fleet = prepared(tmp_path, "{jobs: 20, kinds: 4, nodes: 30, spares: 0, "
                     "storage: 30 Gbit/s, window: 50 h}", "cluster.repair=3 h")  # fmt: skip
    for strategy in range(2):
        jobs, hours = run_history(fleet, strategy)
        assert jobs.finished.all()
        np.testing.assert_allclose(jobs.useful_h + hours.sum(axis=1), jobs.wall_h, rtol=1e-9)
        assert hours["wait"].sum() > 0
        assert (jobs.queued_h >= 0).all()
        at_h = np.concatenate([jobs.start_h, jobs.start_h + jobs.wall_h]).round(9)
        change = np.concatenate([jobs.n_nodes, -jobs.n_nodes])
        order = np.lexsort((change, at_h))  # ends before starts
        assert np.cumsum(change[order]).max() == 30
