"""How ShadowSync's result judges: by rules that a made-up outcome can fail."""

from __future__ import annotations

from math import isnan

import pytest

from cprsim.in_step.load_model import load_model
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.shadowsync import (
    LONGER_STEPS,
    PAIRS,
    calibrated_h,
    detectable,
    no_worse,
    setting_of,
    shown,
)
from cprsim.studies.study import Effort, Work
from tests.making import SCENARIOS


@pytest.fixture
def work(tmp_path) -> Work:
    from cprsim.studies.shadowsync import STUDY

    return Work(STUDY, Effort.QUICK, SCENARIOS, tmp_path)


def test_a_detectable_difference_is_wider_than_the_interval_and_one_seed_has_none() -> None:
    loss = StudyEstimate.of_mean([3e-4, 1e-4, 5e-4, -1e-4, 2e-4])
    assert loss.half_width < detectable(loss) < 2 * loss.half_width
    one_seed = StudyEstimate.of_mean([1e-4])
    assert isnan(detectable(one_seed))
    assert shown(one_seed) == "1.0, one seed"
    assert no_worse([one_seed]) is None


def test_no_worse_needs_the_whole_interval_below_the_bound() -> None:
    fine, wide, bad = (
        StudyEstimate.around(*one) for one in ((1e-4, 3e-4), (1e-4, 9e-4), (9e-4, 3e-4))
    )
    assert no_worse([fine, fine]) is True
    assert no_worse([fine, wide]) is None
    assert no_worse([fine, bad, wide]) is False


def test_shadow_and_foreground_make_steps_of_about_equal_length(work) -> None:
    for shadow, other, _ in PAIRS:
        in_background, held_up = (setting_of(work, name).step_gain for name in (shadow, other))
        assert held_up == pytest.approx(in_background, rel=0.12)
        assert in_background <= held_up, "never longer in the background"
    assert setting_of(work, LONGER_STEPS).step_gain == pytest.approx(2.0)


def test_one_number_is_fitted_and_the_shipped_scenario_has_it(work) -> None:
    setting = setting_of(work, "FR-EASGD-5", 2)
    assert calibrated_h(work) == pytest.approx(setting.iteration.mean_h, rel=1e-3)
    assert load_model(setting_of(work, "FR-EASGD-5", 4)).saturates_at == pytest.approx(28, rel=1e-3)
    assert load_model(setting_of(work, "FR-EASGD-30", 2)).saturates_at > 80
