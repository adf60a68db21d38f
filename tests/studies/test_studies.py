"""What the studies compute, on small cases with known answers; and by which rules they judge."""

import re
from math import isnan, log
from pathlib import Path

import numpy as np
import pytest

from cprsim.accuracy.curve import Response
from cprsim.commands.reproduce import accuracy, failure_analysis, fleet, shadowsync
from cprsim.commands.reproduce.estimates import StudyEstimate
from cprsim.commands.reproduce.study import STUDIES, Summary, Work
from cprsim.commands.reproduce.verdicts import Finding
from cprsim.job.distributions import Exponential
from cprsim.job.losses import Metric
from cprsim.logs.fit.lifetimes import lifetimes_of
from cprsim.scenario.population import drawn_kinds, scenario_of
from cprsim.scenario.reading import load_scenario
from cprsim.training.in_step.load_model import saturates_at
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.shared_run import Baseline
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial
from cprsim.training.measuring.runs import SeedResult
from tests.making import SCENARIOS, call

FLEET = SCENARIOS / "fleet.yaml"


def quick(name: str, folder: Path) -> Work:
    return Work(STUDIES[name], "quick", SCENARIOS, folder)


# --------------------------------------------------------------------------- the fleet


def test_the_population_is_drawn_as_its_file_says() -> None:
    drawn = load_scenario(FLEET)
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
    scenario = scenario_of(drawn, kinds[0], 0).scenario
    assert scenario.job.useful_h == useful[0]
    assert scenario.cluster.emb_ps + scenario.cluster.trainers == nodes[0]
    assert scenario.cluster.emb_ps == round(18 / 38 * nodes[0])


def test_every_line_marked_as_assumed_is_a_free_input_and_every_assumption_a_scenario() -> None:
    marked = re.compile(r"[\s-]*(\w[\w ]*):[^#]*#.*\bassumed\b")
    found = map(marked.match, FLEET.read_text("utf-8").splitlines())
    assumed = tuple(f"fleet.yaml: {line[1]}" for line in found if line)
    assert STUDIES["fleet"].claims["machine-years lost"].free == assumed
    assert len(assumed) >= 14
    for overrides in STUDIES["fleet"].cases.values():
        assert load_scenario(FLEET, overrides).scenario.fleet is not None


def test_the_statistics_of_a_fleet() -> None:
    jobs = np.arange(1.0, 101.0)[None, :]  # 1 to 100 %
    assert (fleet.mean(jobs)[0], fleet.worst(jobs)[0]) == (50.5, 98.0)
    assert fleet.P90(jobs)[0] == pytest.approx(90.1)
    part = {name: jobs.reshape(10, 10) / 4 for name in fleet.MADE_PARTS}
    costs = {"overhead": sum(part.values()), "machine_years": 10 * jobs.reshape(10, 10), **part}
    whole = {"full": costs}
    assert sum(fleet.split(whole, "full", 0.0, 1.0).values()) == pytest.approx(50.5)
    assert sum(fleet.split(whole, "full", 0.95, 1.0).values()) == pytest.approx(98.0)
    assert fleet.number(whole, of="machine_years").mean == pytest.approx(505.0)
    ours = fleet.number(whole)
    assert ours.low < ours.mean < ours.high
    *below, top = (one for one in fleet.bars(whole).series if one.kind == "stack")
    total = sum(one.y[top.x.index("worst 5 %")] for one in (*below, top))
    assert total == pytest.approx(98.0)
    assert [one.low for one in below] == [()] * len(below)
    assert all(low < high for low, high in zip(top.low, top.high, strict=True))
    assert top.low[top.x.index("mean")] == ours.low


# --------------------------------------------------------------------------- failures, accuracy


def test_the_hazard_of_exponential_times_is_flat() -> None:
    hours = Exponential(20.0).sample(np.random.default_rng(3), 20_000)
    times = lifetimes_of(np.minimum(hours, 50.0), hours < 50.0)
    rate, error = failure_analysis.hazards(times, np.array([0.0, 2.0, 10.0, 50.0]))
    assert (np.abs(rate - 0.05) <= 4 * error).all()


@pytest.mark.parametrize(
    ("bend", "noisier", "met"), [(0.0, 1, True), (0.02, 1, False), (0.0, 200, None)]
)
def test_a_bend_is_seen_and_a_line_is_none(bend: float, noisier: float, met: bool | None) -> None:
    rng = np.random.default_rng(6)
    pls = rng.uniform(0.01, 0.4, 60)
    noise = noisier * 1e-5 * rng.normal(size=60)
    assert accuracy.linear(pls, 0.01 * pls + bend * pls**2 + noise).met is met


def test_failures_measured_anew_are_set_beside_the_shipped_slope_with_both_errors() -> None:
    trial = Trial(Saving("partial", 0.5), (ShardFailure(0.4, (0, 1)),))  # loses 0.1 of the samples
    twin = Baseline(Quality(0.8, 0.5), {})
    seeds = [
        SeedResult(seed, twin, {trial: Quality(0.8 - 0.1 * slope, 0.5)}, 1.0)
        for seed, slope in enumerate((0.020, 0.024, 0.022))
    ]
    shipped = Response.linear("partial", Metric.AUC, (0.02, 0.001), 0.3)
    ours = accuracy.over_shipped(seeds, "partial", shipped)
    relative = np.hypot(0.002 / 3**0.5 / 0.022, 0.05)
    assert ours.mean == pytest.approx(1.1)
    assert ours.high - ours.mean == pytest.approx(4.302653 * 1.1 * relative)  # t, 2 degrees


def test_a_trial_loses_what_was_done_since_its_save(tmp_path: Path) -> None:
    setting = accuracy.setting_of(quick("accuracy", tmp_path), 1, 2560)
    trial = Trial(Saving("partial", 0.5), (ShardFailure(0.4, (0, 1)),))
    found = accuracy.lost_by(setting, [trial])
    (one,) = found["trials"]
    assert one["pls"] == one["pls_net"] == pytest.approx(2 * 0.4 / 8)
    assert one["stale"] == [[0.4, 0.4, 0.4]] * 2
    assert 0.4 < found["twin"]["auc"] < 1.0
    assert np.isfinite([one["auc"], one["log_loss"]]).all()


# --------------------------------------------------------------------------- trainers in step


def test_a_detectable_difference_is_wider_than_the_interval_and_one_seed_has_none() -> None:
    loss = StudyEstimate.of_mean([3e-4, 1e-4, 5e-4, -1e-4, 2e-4])
    assert loss.half_width < shadowsync.detectable(loss) < 2 * loss.half_width
    one_seed = StudyEstimate.of_mean([1e-4])
    assert isnan(shadowsync.detectable(one_seed))
    assert shadowsync.in_1e4(one_seed) == "1.0, one seed"
    fine, wide, bad = (
        StudyEstimate.around(*one) for one in ((1e-4, 3e-4), (1e-4, 9e-4), (9e-4, 3e-4))
    )
    for losses, met in (
        ([one_seed], None), ([fine, fine], True), ([fine, wide], None), ([fine, bad, wide], False),
    ):  # fmt: skip
        assert shadowsync.no_worse(losses) is met


def test_steps_are_of_about_equal_length_and_one_number_is_fitted(tmp_path: Path) -> None:
    work = quick("shadowsync", tmp_path)
    for pair in shadowsync.PAIRS:
        in_background, held_up = (shadowsync.setting_of(work, name).step_gain for name in pair[:2])
        assert held_up == pytest.approx(in_background, rel=0.12)
        assert in_background <= held_up, "never longer in the background"
    longer = shadowsync.setting_of(work, shadowsync.LONGER_STEPS)
    assert longer.step_gain == pytest.approx(2.0)
    setting = shadowsync.setting_of(work, "FR-EASGD-5", 2)
    assert shadowsync.calibrated_h(work) == pytest.approx(setting.iteration.mean_h, rel=1e-3)
    saturates = {
        form: saturates_at(shadowsync.setting_of(work, *form))
        for form in (("FR-EASGD-5", 4), ("FR-EASGD-30", 2))
    }
    assert saturates["FR-EASGD-5", 4] == pytest.approx(28, rel=1e-3)
    assert saturates["FR-EASGD-30", 2] > 80


# --------------------------------------------------------------------------- the literature's


def test_a_quick_run_fills_every_target_and_misses_none(tmp_path: Path) -> None:
    study = STUDIES["systems"]
    summary: Summary = study.make(quick("systems", tmp_path))
    targets = [
        name
        for name in study.claims
        if study.data_files() or not name.startswith(("oobleck", "varuna"))
    ]
    assert len(summary.rows) == len(targets)
    for name, row in zip(targets, summary.rows, strict=True):
        finding = row.verdict.finding
        if name == "spare mu 3":  # the limit of many groups: about 4 % off at 200, by quick draws
            assert row.value == pytest.approx(1.043, abs=0.03)
        else:
            assert finding not in (Finding.NOT_REPRODUCED, Finding.NOT_CONSISTENT), name
        noisy = ("gemini wasted simulated", "levels simulated", "spare mu 3", "goodput")
        if not name.startswith(noisy):
            assert (finding is Finding.OPEN) == bool(row.free), name
    left_out = "Oobleck and Varuna are left out" in summary.notes[-1]
    assert left_out == (not study.data_files())


def test_each_result_names_the_part_of_a_paper_that_it_makes_again() -> None:
    ran = call("reproduce", "--list")
    for study in STUDIES.values():
        assert study.paper
        assert study.paper in ran.stdout
