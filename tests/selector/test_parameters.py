"""Failures whose parameters are known within intervals only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ScenarioError
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Weibull
from cprsim.recovery.losses import Metric
from cprsim.scenario.reading import load_scenario
from cprsim.selector.draws import N_DRAWS, variants
from cprsim.selector.limit import Limit
from tests.selector.conftest import Job, choose, curve_of

TEXT = """\
job: {useful: 100 h}
cluster: {emb_ps: 64}
failures: {kind: job, family: weibull, mtbf: 20 h, mtbf_95: [10 h, 40 h], shape: 0.8,
  spread_95: [0.6, 1.1], clock: progress}
costs: {save: 3 min, load: 12 min, reschedule: 0 s}
recovery: [full]
"""


def scenario(tmp_path: Path, text: str = TEXT):
    path = tmp_path / "unsure.yaml"
    path.write_text(text, "utf-8")
    return load_scenario(path)


def test_the_draws_fill_the_intervals(tmp_path: Path) -> None:
    made = variants(scenario(tmp_path), 200)
    assert len(made) == N_DRAWS
    assert {one.simulation.replications for one in made} == {200}
    sources = [one.failures for one in made]
    lifetimes = [one.lifetime for one in sources if isinstance(one, JobClock)]
    mean_h = np.array([one.mean_h for one in lifetimes])
    assert np.exp(np.log(mean_h).mean()) == pytest.approx(20.0, rel=0.03)
    assert np.log(mean_h).std() == pytest.approx(np.log(4) / (2 * 1.96), rel=0.1)
    shapes = np.array([one.shape for one in lifetimes if isinstance(one, Weibull)])
    assert 0.5 < shapes.min() < 0.65
    assert 1.0 < shapes.max() < 1.2
    again = variants(scenario(tmp_path), 200)
    assert [one.failures for one in again] == sources


def test_what_is_known_for_sure_is_not_drawn(tmp_path: Path) -> None:
    text = TEXT.replace(", mtbf_95: [10 h, 40 h]", "").replace("spread_95: [0.6, 1.1], ", "")
    assert variants(scenario(tmp_path, text), 200) == ()


def test_a_decision_says_in_which_share_of_the_draws_it_holds() -> None:
    job, curve = Job(n_replications=200), curve_of(partial=0.01)
    limit = Limit(Metric.AUC, 0.06 * 0.01 * job.pls(0), confidence=0.5)
    draws = [replace(job, mtbf_h=m).experiment(curve=curve) for m in (5.0, 20.0, 60.0, 200.0)]
    selection = choose(job.experiment(), curve, limit, draws=draws)
    found, best = selection.drawn, selection.there["partial"]
    assert found is not None
    assert found.n == 4
    assert found.kept_fraction == 0.5  # where failures are rarer than was thought
    assert found.low_h < best.policy.interval_h < found.high_h


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("mtbf_95: [40 h, 10 h]", "comes first"),
        ("mtbf_95: [10, 40]", "bare number"),
        ("mtbf_95: [10 h]", "mtbf_95"),
    ],
)
def test_an_interval_that_is_none_is_refused(tmp_path: Path, change: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario(tmp_path, TEXT.replace("mtbf_95: [10 h, 40 h]", change))
