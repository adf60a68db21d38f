"""A scenario without a section `fleet`: how many spares one job needs."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

import cprsim
from tests.making import call

TEXT = """\
name: one
job: {useful: 100 h}
cluster: {workers: 16, repair: 24 h}
failures: {kind: job, family: exponential, mtbf: 10 h, role: worker}
costs: {save: 1 min, load: 1 min, reschedule: 1 min}
recovery: [{strategy: full, interval: 30 min}]
simulation: {seed: 1, replications: 60}
"""


@pytest.fixture(scope="module")
def planned() -> cprsim.Answer:
    return cprsim.fleet(TEXT, {"spares": [0, 1, 12]})


def test_the_waits_are_those_of_a_run_with_as_many_spares(planned: cprsim.Answer) -> None:
    options = planned.frames["options"].set_index("fleet.spares")
    for spares in (0, 1, 12):
        ran = cprsim.run(TEXT, {"cluster.spares": spares, "simulation.replications": 50})
        (row,) = ran.frames["strategies"].to_dict("records")
        assert options.loc[spares, "overhead_fraction"] == pytest.approx(row["overhead_fraction"])
        hours = row["wait_fraction"] * 100
        assert options.loc[spares, "wait_h"] == pytest.approx(hours)
    assert options.loc[12, "wait_h"] == 0.0
    # without spares work stands still while a node is away: 10 busy periods of M/D/infinity
    assert options.loc[0, "wait_h"] == pytest.approx(10 * 10 * (exp(2.4) - 1), rel=0.2)


def test_spares_stand_as_long_as_the_job_and_the_month_is_of_useful_work(
    planned: cprsim.Answer,
) -> None:
    options = planned.frames["options"].set_index("fleet.spares")
    parts = planned.frames["parts"].set_index(["option", "part"])["node_h_per_month"]
    per_month = 730.5 / 100
    wall_h = 100 * (1 + options.loc[12, "overhead_fraction"])
    assert parts["full at spares 12", "spare"] == pytest.approx(12 * wall_h * per_month)
    assert parts["full at spares 12", "useful"] == pytest.approx(16 * 730.5)
    assert options["jobs_per_month"].tolist() == pytest.approx([per_month] * 3)


def test_endless_free_spares_are_no_option_beside_those_that_are_paid(
    planned: cprsim.Answer,
) -> None:
    assert planned.frames["options"]["fleet.spares"].notna().all()
    assert planned.values["best"] == "full at spares 12"
    assert planned.values["recommendation"]["at"] == {"fleet.spares": 12}
    assert {"fleet", "curve"} <= planned.figures.keys()


def test_the_scenario_s_own_spares_are_the_present_option() -> None:
    own = {"cluster.spares": 1}
    assert cprsim.fleet(TEXT, {"spares": [4]}, own).values["present"] == "full"


def test_spares_without_a_repair_are_refused_with_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(TEXT.replace(", repair: 24 h", ""))
    ran = call("fleet", tmp_path / "one.yaml", "--over", "spares=0,4", "--out", tmp_path / "r")
    assert ran.exit_code == 2
    assert "cluster.repair: is missing" in ran.stderr
