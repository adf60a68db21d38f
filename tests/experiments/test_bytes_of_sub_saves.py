"""Sub-saves cost what the curve counted of their bytes."""

from __future__ import annotations

from math import inf

import pytest

from cprsim.curves import CurveFile
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import simulate
from cprsim.failures.distributions import Constant
from cprsim.records import SubSaves
from cprsim.scenario import load_scenario
from cprsim.selector.deciding import bench_of
from cprsim.selector.limit import Limit, LimitedQuantity
from cprsim.selector.pricing import Bench
from cprsim.selector.search import mean_write_h
from cprsim.staleness import Metric, Response
from tests.making import small_scenario

SAVE_H, N_PARTS = 0.1, 8
SHARES = {"mfu": 1.5, "ssu": 0.5}
CHECKS = {"bytes_written": {"by_strategy": {"partial": 1000, "mfu": 1500, "ssu": 500}}}


def curve_of(checks=CHECKS, **settings):
    responses = [
        Response.linear(name, Metric.AUC, (0.02, 0.002), 0.5, settings=SubSaves(name, **settings))
        for name in SHARES
    ]
    whole = Response.linear("partial", Metric.AUC, (0.02, 0.002), 0.5)
    return CurveFile("counted", (whole, *responses), checks=checks).curve("made here")


@pytest.fixture
def run_with(tmp_path, monkeypatch):
    """Assemble a scenario of whole saves and sub-saves beside a curve."""

    def _run(curve):
        entries = (f"{{strategy: cpr-{name}, target_pls: 0.1, interval: 4 h}}" for name in SHARES)
        path = tmp_path / "small.yaml"
        path.write_text(small_scenario(", ".join(["partial", *entries])))
        monkeypatch.setattr("cprsim.experiments.assemble.chosen_curve", lambda loaded: curve)
        return assemble(
            load_scenario(
                path, ["costs.save=6 min", "job.useful=40 h", "simulation.replications=100"]
            )
        )

    return _run


def stalls_h(experiment):
    """What a save stalls the job, by strategy [h]."""
    made = {one.name: one.captures[0].stall for one in experiment.policies}
    assert all(isinstance(stall, Constant) for stall in made.values())
    return {name: stall.mean_h for name, stall in made.items()}


def test_each_costs_its_part_of_what_was_counted(run_with):
    assert stalls_h(run_with(curve_of())) == pytest.approx(
        {"cpr-mfu": 1.5 * SAVE_H / N_PARTS, "cpr-ssu": 0.5 * SAVE_H / N_PARTS} | {"partial": SAVE_H}
    )


def test_what_is_booked_as_saving_goes_with_it(run_with):
    outcome = simulate(run_with(curve_of()))
    hours = {one.policy.name: one.costs.hours_of("save").min() for one in outcome.strategies}
    # 40 h hold 10 intervals of 4 h; where they cost least, no failure strikes a save
    assert hours["cpr-mfu"] == pytest.approx(10 * 1.5 * SAVE_H)
    assert hours["cpr-ssu"] == pytest.approx(10 * 0.5 * SAVE_H)


@pytest.mark.parametrize(
    "curve",
    [
        None,
        curve_of(checks={}),
        curve_of(checks={"bytes_written": {"by_strategy": {"partial": 0, "mfu": 3}}}),
        curve_of(fraction=0.25),
        curve_of(n_large_tables=3),
    ],
    ids=["no curve", "nothing counted", "nothing written", "other parts", "other tables"],
)
def test_elsewhere_it_is_a_part_of_a_whole_save(run_with, curve):
    stalls = stalls_h(run_with(curve))
    assert stalls["cpr-mfu"] == stalls["cpr-ssu"] == pytest.approx(SAVE_H / N_PARTS)


def test_a_selection_prices_them_alike(run_with):
    curve, experiment = curve_of(), run_with(curve_of())
    ways = {"partial": None, **{f"cpr-{name}": SubSaves(name) for name in SHARES}}
    bench: Bench = bench_of(experiment, curve, Limit(LimitedQuantity.AUC, 0.001), ways)
    for name, share in SHARES.items():
        assert mean_write_h(bench, f"cpr-{name}") == pytest.approx(share * SAVE_H / N_PARTS)
        assert bench.policy(f"cpr-{name}", inf, "x").sub_saves.bytes_share == share
    assert mean_write_h(bench, "partial") == pytest.approx(SAVE_H)
