"""`make promise`: histories become the trials that they are; means and choices are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import promise
from benchmarks.promise import Cell, Job
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.experiments.proxy_model import proxy_model
from cprsim.kernel.playing import play
from cprsim.kernel.saving import Saver
from cprsim.kernel.schedule import of_log
from cprsim.kernel.trials import Saving
from cprsim.records import SubSaves
from cprsim.recovery.losses import Metric
from cprsim.recovery.policy import RELOAD
from cprsim.scenario.reading import load_scenario
from cprsim.staleness.curve import StalenessCurve
from cprsim.staleness.response import Response
from tests.kernel.test_shared_run import run_trial
from tests.making import paper_policy

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
    tuple(Response.linear(key, Metric.AUC, (0.03, 0.001), 1.0) for key in ("partial", "mfu")),
)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Its cells at an interval of 5 h."""
    path: Path = tmp_path_factory.mktemp("promise") / "small.yaml"
    path.write_text(SCENARIO)
    loaded = load_scenario(path)
    made, cells = assemble(loaded), []
    for strategy in promise.STRATEGIES:
        subs = SubSaves("mfu") if strategy == "cpr-mfu" else None
        policy = paper_policy(
            strategy, RELOAD, 5.0, sub_saves=subs, costs=made.costs, cluster=made.cluster
        )
        cells.append(Cell("small", 0.001, strategy, policy))
    job = Job(loaded, CURVE, made, cells)
    promise.draw_histories(job, 200)
    return job


@pytest.mark.parametrize("strategy", ["partial", "cpr-mfu"])
def test_a_history_trains_as_the_log_of_its_job_does(job: Job, strategy: str) -> None:
    """Also where saves are struck: saves cost a fifteenth of the interval here."""
    what = proxy_model(job.loaded)
    experiment = job.experiment
    (policy,) = (one.policy for one in job.cells if one.strategy == strategy)
    fresh = replace(promise.fresh_of(job, 10), policies=(policy,))
    (one,) = pipeline.simulate(fresh).strategies
    cluster = experiment.cluster
    saving = Saving(promise.STRATEGIES[strategy], 5.0 / experiment.useful_h)
    n_lost = 0
    for number in range(10):
        log = pipeline.replay(fresh, number)[policy.name]
        trainer = what.trainer()
        saver, slots = Saver(trainer, what.shards, policy.sub_saves), cluster.shard_slots
        play(trainer, saver, of_log(log, experiment.useful_h, slots, cluster.replica_slots))
        trial = promise.trial_of(
            saving, one.losses, number, experiment.useful_h, cluster.shard_slots.start
        )
        n_lost += trial is not None
        if trial is None:
            assert not (one.losses.replication == number).any()
        else:
            assert run_trial(what.trainer(), what.shards, trial) == trainer.evaluate(), number
    assert n_lost >= 7


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
