"""What the studies compute, on small cases with known answers."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from cprsim.failures.distributions import Exponential
from cprsim.fitting.lifetimes import lifetimes_of
from cprsim.fleets.population import drawn_kinds, scenario_of
from cprsim.kernel.metrics import Quality
from cprsim.kernel.shared_run import Baseline
from cprsim.kernel.trials import Saving, ShardFailure, Trial
from cprsim.measuring.runs import SeedResult
from cprsim.scenario.reading import LoadedScenario
from cprsim.staleness.names import Metric
from cprsim.staleness.response import Response
from cprsim.studies import accuracy, failure_analysis, fleet, pls_accuracy, trained
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.fleet import (
    AS_FIXED,
    P90,
    assumed_in,
    fleet_of,
    machine_years,
    mean,
    percent,
    split,
    worst,
)
from cprsim.studies.study import Effort, Work
from tests.making import SCENARIOS

# --------------------------------------------------------------------------- the fleet


def as_assumed(title: str = AS_FIXED) -> LoadedScenario:
    return fleet_of(SCENARIOS / "fleet.yaml", title)


def test_the_population_is_drawn_as_its_file_says() -> None:
    drawn = as_assumed()
    kinds = drawn_kinds(drawn, 4000)
    useful, mtbf, nodes = (
        np.array([kind.values[key] for kind in kinds]) for key in ("useful_h", "mtbf_h", "nodes")
    )
    assert 5.0 <= useful.min() < useful.max() <= 720.0
    assert np.median(useful) == pytest.approx(50.0, rel=4 * 0.8 * 1.25 / 4000**0.5)
    assert 14.0 <= mtbf.min() < mtbf.max() <= 30.0
    assert np.log(mtbf).mean() == pytest.approx(log(14 * 30) / 2, abs=4 * log(30 / 14) / 48000**0.5)
    assert abs(nodes - 38 * 20.49 / mtbf).max() <= 0.5
    assert sum(kind.n_jobs for kind in kinds) == 17_000
    assert drawn_kinds(drawn, 100) == drawn_kinds(drawn, 100)


def test_a_job_of_the_population_is_a_scenario() -> None:
    drawn = as_assumed()
    kind = drawn_kinds(drawn, 1)[0]
    scenario = scenario_of(drawn, kind, 0).scenario
    assert scenario.job.useful_h == kind.values["useful_h"]
    assert scenario.cluster.emb_ps + scenario.cluster.trainers == kind.values["nodes"]
    assert scenario.cluster.emb_ps == round(18 / 38 * kind.values["nodes"])


def test_every_line_marked_as_assumed_is_a_free_input() -> None:
    path = SCENARIOS / "fleet.yaml"
    marked = [
        line
        for line in path.read_text("utf-8").splitlines()
        if "assumed" in line and not line.lstrip().startswith("#") and "full  " not in line
    ]
    assert len(assumed_in(path)) == len(marked) >= 14


def test_the_statistics_of_a_fleet() -> None:
    jobs = np.arange(1.0, 101.0)[None, :]  # 1 to 100 %
    assert mean(jobs)[0] == 50.5
    assert worst(jobs)[0] == 98.0
    assert P90(jobs)[0] == pytest.approx(90.1)
    part = {name: jobs.reshape(10, 10) / 400 for name in fleet.PARTS}
    costs = {"overhead": sum(part.values()), "machine_years": 10 * jobs.reshape(10, 10), **part}
    whole = {"full": costs}
    assert sum(split(whole, "full", 0.0, 1.0).values()) == pytest.approx(50.5)
    assert sum(split(whole, "full", 0.95, 1.0).values()) == pytest.approx(98.0)
    assert machine_years(whole).mean == pytest.approx(505.0)
    ours = percent(whole, "full", mean)
    assert ours.low < ours.mean < ours.high
    *below, top = (one for one in fleet.bars(whole).series if one.kind == "stack")
    total = sum(one.y[top.x.index("worst 5 %")] for one in (*below, top))
    assert total == pytest.approx(98.0)
    assert [one.low for one in below] == [()] * len(below)
    assert all(low < high for low, high in zip(top.low, top.high, strict=True))
    assert top.low[top.x.index("mean")] == ours.low


# --------------------------------------------------------------------------- the others


def test_the_hazard_of_exponential_times_is_flat() -> None:
    hours = Exponential(20.0).sample(np.random.default_rng(3), 20_000)
    times = lifetimes_of(np.minimum(hours, 50.0), hours < 50.0)
    rate, error = failure_analysis.hazards(times, np.array([0.0, 2.0, 10.0, 50.0]))
    assert (np.abs(rate - 0.05) <= 4 * error).all()


def test_a_bend_is_seen_and_a_line_is_none() -> None:
    rng = np.random.default_rng(6)
    pls = rng.uniform(0.01, 0.4, 60)
    noise = 1e-5 * rng.normal(size=60)
    straight = pls_accuracy.linear(pls, 0.01 * pls + noise)
    bent = pls_accuracy.linear(pls, 0.01 * pls + 0.02 * pls**2 + noise)
    assert straight.met is True
    assert bent.met is False
    unclear = pls_accuracy.linear(pls, 0.01 * pls + 200 * noise)
    assert unclear.met is None


def test_failures_measured_anew_are_set_beside_the_shipped_slope_with_both_errors() -> None:
    trial = Trial(Saving("partial", 0.5), (ShardFailure(0.4, (0, 1)),))  # loses 0.1 of the samples
    twin = Baseline(Quality(0.8, 0.5), {})
    seeds = [
        SeedResult(seed, twin, {trial: Quality(0.8 - 0.1 * slope, 0.5)}, 1.0)
        for seed, slope in enumerate((0.020, 0.024, 0.022))
    ]
    shipped = Response.linear("partial", Metric.AUC, (0.02, 0.001), 0.3)
    ours = pls_accuracy.over_shipped(seeds, "partial", shipped)
    relative = np.hypot(0.002 / 3**0.5 / 0.022, 0.05)
    assert ours.mean == pytest.approx(1.1)
    assert ours.high - ours.mean == pytest.approx(4.302653 * 1.1 * relative)  # t, 2 degrees


def test_a_trial_loses_what_was_done_since_its_save(tmp_path: Path) -> None:
    work = Work(accuracy.STUDY, Effort.QUICK, SCENARIOS, tmp_path)
    setting = trained.setting_of(work, "criteo-kaggle.yaml", 1, 2560)
    trial = Trial(Saving("partial", 0.5), (ShardFailure(0.4, (0, 1)),))
    found = trained.lost_by(setting, [trial])
    (one,) = found["trials"]
    assert one["pls"] == one["pls_net"] == pytest.approx(2 * 0.4 / 8)
    assert one["stale"] == [[0.4, 0.4, 0.4]] * 2
    assert 0.4 < found["twin"]["auc"] < 1.0
    assert np.isfinite([one["auc"], one["log_loss"]]).all()


@pytest.mark.parametrize(
    ("ours", "shown"),
    [
        (StudyEstimate(8.358, 8.308, 8.408), "8.36 ± 0.05 h"),
        (StudyEstimate(0.08461, 0.08333, 0.08589), "0.0846 ± 0.0013 h"),
        (StudyEstimate(0.0000433, -0.000042, 0.0001286), "0.000043 ± 0.000085 h"),
        (StudyEstimate(0.1006, 0.10019, 0.10101), "0.101 ± 0.0004 h"),
        (StudyEstimate(0.92, 0.68, 0.98), "0.92 (0.68 to 0.98) h"),
        (StudyEstimate(exp(1)), "2.72 h"),
        (StudyEstimate(0.1), "0.100 h"),
    ],
)
def test_numbers_have_the_digits_that_their_interval_leaves(
    ours: StudyEstimate, shown: str
) -> None:
    assert ours.shown("h") == shown
