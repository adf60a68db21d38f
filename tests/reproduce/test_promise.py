"""`make promise`: histories become the trials that they are; means and choices are right."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import promise
from benchmarks.promise import NEAR_ENOUGH, Cell, Job, beside_grid, limits
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.experiments.proxy_model import proxy_model
from cprsim.kernel.replay import TracedTraining
from cprsim.kernel.replay import replay as replay_log
from cprsim.kernel.saving import Saver
from cprsim.kernel.shared_run import Setting
from cprsim.kernel.trials import Saving
from cprsim.records import OnFailure, RecoveryPolicy, SubSaves
from cprsim.scenario import load_scenario
from cprsim.staleness import Metric, Response, StalenessCurve
from tests.kernel.scratch import run_trial

SCENARIO = """
job: {useful: 50 h}
cluster: {emb_ps: 4}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 12 h, together: 2}
costs: {save: 20 min, load: 5 min, detect: 0 s, reschedule: 10 min}
recovery: [full, partial]
kernel: {samples: 3000, most_rows: 30, dimension: 4, bottom: [8], top: [8], batch: 20}
simulation: {seed: 1, replications: 300}
"""
CURVE = StalenessCurve(
    "made",
    "by hand",
    tuple(Response.linear(key, Metric.AUC, (0.03, 0.001), 1.0) for key in ("partial", "mfu")),
)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Its cells at an interval of 5 h."""
    path: Path = tmp_path_factory.mktemp("promise") / "small.yaml"
    path.write_text(SCENARIO)
    loaded = load_scenario(path)
    cells = []
    for strategy in promise.STRATEGIES:
        subs = SubSaves("mfu") if strategy == "cpr-mfu" else None
        policy = RecoveryPolicy(strategy, OnFailure.RELOAD, 5.0, "given", sub_saves=subs)
        cells.append(Cell("small", 0.001, strategy, policy))
    made = Job(loaded, CURVE, assemble(loaded), cells)
    promise.draw_histories(made, 200)
    return made


@pytest.mark.parametrize("strategy", ["partial", "cpr-mfu"])
def test_a_history_trains_as_the_log_of_its_job_does(job: Job, strategy: str) -> None:
    """Also where saves are struck: saves cost a fifteenth of the interval here."""
    what = proxy_model(job.loaded)
    setting = Setting(what.shape, what.train, what.test, what.plan, what.shards)
    experiment = job.experiment
    (policy,) = (one.policy for one in job.cells if one.strategy == strategy)
    fresh = replace(promise.fresh_of(job, 10), policies=(policy,))
    (one,) = pipeline.simulate(fresh).strategies
    cluster = experiment.cluster
    saving = Saving(promise.STRATEGIES[strategy], 5.0 / experiment.useful_h)
    n_lost = 0
    for number in range(10):
        log = pipeline.replay(fresh, number)[policy.name]
        trainer = setting.trainer()
        saver, course = Saver(trainer, setting.shards, policy.sub_saves), TracedTraining(trainer)
        replay_log(
            log, experiment.useful_h, cluster.shard_slots, cluster.replica_slots, course, saver
        )
        trial = promise.trial_of(
            saving, one.losses, number, experiment.useful_h, cluster.shard_slots.start
        )
        n_lost += trial is not None
        if trial is None:
            assert not (one.losses.replication == number).any()
        else:
            assert run_trial(setting, trial) == trainer.evaluate(setting.test), number
    assert n_lost >= 7


def test_histories_are_drawn_one_from_each_stratum(job: Job) -> None:
    fresh = job.cells[0].fresh
    n = promise.N_STRATA
    stratum = np.argsort(np.argsort(fresh, kind="stable")) * n // len(fresh)
    drawn = promise.drawn_of(fresh, "one")
    for turn in range(3):
        assert sorted(stratum[drawn[turn * n : (turn + 1) * n]]) == list(range(n))
    assert drawn != promise.drawn_of(fresh, "another")


def test_the_control_variate_leaves_the_mean_unbiased() -> None:
    rng = np.random.default_rng(3)
    predicted = rng.gamma(1.0, 1e-3, 4000)
    truth = 0.8 * predicted  # the curve is off by a quarter
    cells = []
    for _ in range(300):
        some = rng.integers(0, len(predicted), 10)
        off = truth[some] + 1e-4 * rng.standard_normal(10) - predicted[some]
        cells.append(Cell("small", 0.001, "partial", fresh=predicted, off=off))
    means = [cell.mean for cell in cells]
    errors = [cell.standard_error for cell in cells]
    standard_error = np.std(means) / np.sqrt(len(means))
    assert abs(np.mean(means) - truth.mean()) <= 4 * standard_error
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.15)
    assert np.std(means) < 0.5 * np.std(truth) / np.sqrt(10)  # and spares most of the runs
    once = replace(cells[0], off=np.array([1e-4]))
    assert np.isnan(once.mean)
    assert not once.known


def test_limits_lie_where_partial_recovery_pays(job: Job) -> None:
    found = limits(job.experiment, CURVE)
    assert len(found) == 5
    assert (np.diff(found) < 0).all()
    assert np.diff(np.log(found)) == pytest.approx(np.full(4, np.log(found[1] / found[0])))


def test_the_grid_tells_a_choice_that_saves_twice_as_often_and_prices_doubt(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promise, "N_GRID", 300)
    most = float(limits(job.experiment, CURVE)[2])
    monkeypatch.setattr(promise, "limits", lambda *_: [most])
    monkeypatch.setattr(promise, "draw_histories", lambda _: None)
    made = promise.job_of(job.loaded, CURVE)

    def beside(ratio: float) -> list[dict[str, float]]:
        for cell in made.cells:  # measured as so many times the predicted loss, to 2 % of it
            cell.fresh = np.full(2, 1e-3)
            cell.off = (ratio - 1) * 1e-3 + np.array([-2e-5, 2e-5])
        return beside_grid(made)

    as_predicted, half = beside(1.0), beside(0.5)
    assert [row["strategy"] for row in as_predicted] == ["partial", "cpr-mfu"]
    for row, other in zip(as_predicted, half, strict=True):
        assert row["chosen_over_best"] <= NEAR_ENOUGH
        assert other["price_of_uncertainty"] > row["price_of_uncertainty"] + 0.1 >= 0.1
    for cell in made.cells:
        assert cell.policy is not None
        cell.policy = replace(cell.policy, save_interval_h=cell.policy.save_interval_h / 2)
    assert all(row["chosen_over_best"] > NEAR_ENOUGH for row in beside(1.0))


@pytest.mark.parametrize("name", ["promise", "promise-torch"])
def test_the_kept_summary_is_shown(name: str) -> None:
    path = promise.ROOT / "results" / name / "summary.json"
    document = json.loads(path.read_text("utf-8"))
    n = document["verdict"]["cells"]
    assert f"of {n} cells are below their limit" in promise.cells_text(document)
    assert len(promise.choices_text(document).splitlines()) == n + 5
    never = document["cells"][0] | {"interval_h": None, "measured": None, "standard_error": None}
    row = promise.cells_text(document | {"cells": [never]}).splitlines()[1].split()
    assert row.count(promise.NO_NUMBER) == 3
