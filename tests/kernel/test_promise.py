"""`make promise`: histories become the trials that they are; means and choices are right."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import promise
from benchmarks.promise import Cell, Job
from cprsim.accuracy.curve import Response, StalenessCurve
from cprsim.job.losses import Metric
from cprsim.job.policy import RELOAD
from cprsim.job.records import SubSaves
from cprsim.results import pipeline
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from cprsim.training.kernel.playing import play
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.schedule import of_log
from cprsim.training.kernel.trials import Saving
from cprsim.training.proxy_model import proxy_model
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


@pytest.mark.parametrize("strategy", ["partial", "cpr-mfu"])
def test_a_history_trains_as_the_log_of_its_job_does(tmp_path: Path, strategy: str) -> None:
    """Also where saves are struck: saves cost a fifteenth of the interval here."""
    (tmp_path / "small.yaml").write_text(SCENARIO)
    loaded = load_scenario(tmp_path / "small.yaml")
    what, made = proxy_model(loaded), assemble(loaded)
    useful_h, slots = made.useful_h, made.cluster.shard_slots
    subs = SubSaves("mfu") if strategy == "cpr-mfu" else None
    policy = paper_policy(
        strategy, RELOAD, 5.0, sub_saves=subs, costs=made.costs, cluster=made.cluster
    )
    job = Job(loaded, CURVE, made, [Cell("small", 0.001, strategy, policy)])
    promise.draw_histories(job, 200)
    fresh = replace(promise.fresh_of(job, 10), policies=(policy,))
    (simulated,) = pipeline.simulate(fresh).strategies
    saving, trained = Saving(promise.STRATEGIES[strategy], 5.0 / useful_h), set()
    for number in range(10):
        trial = promise.trial_of(saving, simulated.losses, number, useful_h, slots.start)
        if trial is None:
            assert not (simulated.losses.replication == number).any()
            continue
        log, trainer = pipeline.replay(fresh, number)[policy.name], what.trainer()
        saver = Saver(trainer, what.shards, policy.sub_saves)
        play(trainer, saver, of_log(log, useful_h, slots, made.cluster.replica_slots))
        assert run_trial(what.trainer(), what.shards, trial) == trainer.evaluate(), number
        trained.add(number)
    assert len(trained) >= 7


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
