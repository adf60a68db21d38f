"""Which jobs a fleet has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.commands.fleet import axes_of
from cprsim.errors import CprsimError, ScenarioError
from cprsim.scenario.population import drawn_kinds, population_of
from cprsim.scenario.reading import load_scenario
from tests.fleet.making import loaded, prepared
from tests.making import SCENARIOS


def test_the_fleet_of_the_study_has_the_jobs_that_the_study_draws() -> None:
    """Hence, with unlimited capacity, its numbers: a job's failures are those of its kind's run."""
    path = SCENARIOS / "fleet.yaml"
    kinds = population_of(load_scenario(path)).kinds
    assert sum(kind.n_jobs for kind in kinds) == 17_000
    assert drawn_kinds(load_scenario(path), len(kinds)) == kinds


def test_the_mtbf_of_a_job_falls_as_one_over_its_nodes(tmp_path: Path) -> None:
    vary = "{nodes: {family: uniform, low: 3, high: 60}}"
    fleet = prepared(tmp_path, f"{{jobs: 40, kinds: 20, vary: {vary}}}", "failures.nodes=6")
    for kind in fleet.kinds:
        n_nodes, mtbf_h = kind.cluster.n_nodes, kind.failures.lifetime.mean_h  # type: ignore[union-attr]
        assert mtbf_h * n_nodes == pytest.approx(6 * 6, rel=1e-6)
        assert kind.cluster.n_emb_ps / n_nodes == pytest.approx(4 / 6, abs=0.5 / n_nodes + 1e-9)


def test_a_table_says_each_job(tmp_path: Path) -> None:
    lines = "useful_h,arrive_h,nodes,jobs\n10,5,6,1\n20,0.5,12,2\n10,7,6,1\n"
    (tmp_path / "jobs.csv").write_text(lines, "utf-8")
    fleet = prepared(tmp_path, "{table: jobs.csv}")
    assert [kind.n_jobs for kind in fleet.population.kinds] == [2, 2]
    assert [kind.cluster.n_nodes for kind in fleet.kinds] == [6, 12]
    arrivals = fleet.arrivals(0)
    assert arrivals.arrive_h.tolist() == [0.5, 0.5, 5.0, 7.0]
    assert arrivals.kind.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("useful_h,size\n1,2\n", 1, "size: is no column of jobs"),
        ("nodes\n3\n", 1, "useful_h: there is no column 'useful_h'"),
        ("useful_h,nodes\n5,2.5\n", 2, "nodes: '2.5' is not a whole number"),
        ("useful_h\nnan\n", 2, "useful_h: 'nan' is not a number"),
        ("useful_h,arrive_h\n5,-1\n", 2, "arrive_h: '-1' is not a number of at least 0"),
    ],
)
def test_a_table_that_can_not_be_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, message: str
) -> None:
    (tmp_path / "jobs.csv").write_text(text, "utf-8")
    with pytest.raises(ScenarioError, match=message) as error:
        population_of(loaded(tmp_path, "{table: jobs.csv}"))
    assert error.value.problems[0].place.line == line


VARY = "{{jobs: 5, vary: {{{}}}}}".format
BY_NODE = "failures={kind: node, roles: {emb_ps: {family: exponential, mtbf: 60 h}}}"
JOBS = "{jobs: 5}"


@pytest.mark.parametrize(
    ("fleet", "change", "message"),
    [
        ("{}", "", "give either `jobs`"),
        (VARY("useful: {family: lognormal, low: 1 h, high: 2 h}"), "", "median: is missing"),
        (VARY("useful: {family: uniform, low: 3 h, high: 2 h}"), "", "must lie above low"),
        (VARY("nodes: {family: uniform, sigma: 1, low: 3, high: 9}"), "", "no parameter"),
        (VARY("mtbf: {family: uniform, low: 3 h, high: 9 h}"), BY_NODE,
         "goes with failures of kind"),
        ("{jobs: 5, nodes: 4}", "", "it can't start"),
        ("{jobs: 5, spares: 3}", "cluster.repair=null", "when a failed node comes back"),
        (JOBS, "fleet=null", "fleet: is missing"),
        (JOBS, "prices={kwh: cheap}", "is not a price"),
        (JOBS, "prices={kwh: 1 EUR, currency: USD}", "EUR and USD"),
        (JOBS, "unknown={failures.mtbff: {low: 5 h, high: 6 h}}", "failures.mtbff: unknown key"),
    ],
)  # fmt: skip
def test_a_fleet_that_can_not_be_is_refused_before_anything_is_simulated(
    tmp_path: Path, fleet: str, change: str, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        prepared(tmp_path, fleet, *[change] * bool(change))


@pytest.mark.parametrize(
    ("over", "message"), [("spares", "write KEY="), ("spares=", "empty"), ("spares=3,3", "twice")]
)
def test_what_is_no_axis_is_refused(over: str, message: str) -> None:
    with pytest.raises(CprsimError, match=message):
        axes_of([over])


def test_arrivals_are_as_asked_for(tmp_path: Path) -> None:
    for said, at_h in {"together": [0.0] * 4, "even": [0.0, 25.0, 50.0, 75.0]}.items():
        fleet = prepared(tmp_path, f"{{jobs: 4, kinds: 2, arrivals: {said}, window: 100 h}}")
        assert fleet.arrivals(0).arrive_h.tolist() == at_h
    at_h = prepared(tmp_path, "{jobs: 400, kinds: 2, window: 100 h}").arrivals(0).arrive_h
    assert at_h.is_monotonic_increasing
    assert abs(at_h.mean() - 50) <= 4 * 100 / np.sqrt(12 * 400)
