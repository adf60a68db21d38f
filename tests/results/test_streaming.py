"""Moments that stream are the means and intervals of the rows, and do not depend on company."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.results.compare import differences
from cprsim.results.metrics import FINISHED
from cprsim.results.metrics import summarise as summary_of_rows
from cprsim.results.rows import replication_rows
from cprsim.results.streaming import PRICED, STREAMED, Moments, summarise
from tests.making import Make, maker

SCENARIO = """
name: streaming
job: {useful: 30 h}
cluster: {emb_ps: 4, trainers: 2}
costs: {save: 5 min, load: 5 min, reschedule: 10 min}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 8 h}
recovery: [none, full, partial]
simulation: {seed: 5, replications: 2000}
"""


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An experiment from the scenario above, with overrides."""
    return maker(tmp_path, SCENARIO)


def moments(*experiments: Experiment) -> list[Moments]:
    return [one for _, one in sorted(summarise(experiments), key=lambda pair: pair[0])]


def same(a: Moments, b: Moments) -> bool:
    return a.mean.tobytes() == b.mean.tobytes() and a.products.tobytes() == b.products.tobytes()


@pytest.mark.parametrize(
    "override",
    [
        "name=plain",
        "cluster={emb_ps: 4, trainers: 2, spares: 1, repair: 2 h}",
        "simulation={seed: 5, precision: 2 %, at_most: 3000}",
        "accuracy={curve: criteo-kaggle-linear}",
    ],
)
def test_the_same_table_as_from_rows(make: Make, override: str) -> None:
    experiment = make(*([] if "plain" in override else [override]))
    (ours,) = moments(experiment)
    rows = summary_of_rows(pipeline.simulate(experiment))
    priced = PRICED if experiment.curve else ()
    rows = rows[rows["quantity"].isin([FINISHED, *STREAMED, *priced])].reset_index(drop=True)
    for row in rows[rows["quantity"] != FINISHED].itertuples():
        expected = (row.mean, row.low, row.high)
        found = ours.spread(row.strategy, row.quantity).triple
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("curve", ["", "accuracy={curve: criteo-kaggle-linear}"])
def test_differences_are_paired(make: Make, curve: str) -> None:
    experiment = make(*([curve] if curve else []))
    (ours,) = moments(experiment)
    rows = replication_rows(pipeline.simulate(experiment))
    table = differences(rows, experiment.cluster.n_nodes, "full")
    table = table[(table["strategy"] == "partial") & table["quantity"].isin(ours.metrics)]
    assert ("auc_loss" in set(table["quantity"])) == bool(curve)
    for row in table.itertuples():
        found = ours.difference("partial", "full", row.quantity)
        assert (found.mean, found.low, found.high) == pytest.approx(
            (row.mean, row.low, row.high), rel=1e-9, abs=1e-12
        )


def test_a_point_is_the_same_bytes_whatever_stands_beside_it(make: Make) -> None:
    points = [make(), make("costs.save=20 min"), make("failures.mtbf=9 h"), make("costs.load=1 h")]
    together = moments(*points)
    alone = [moments(point)[0] for point in points]
    assert all(same(a, b) for a, b in zip(together, alone, strict=True))
    assert not same(together[0], together[1])
    assert same(pickle.loads(pickle.dumps(together[0])), together[0])


def test_points_share_failures_where_they_meet_the_same(make: Make) -> None:
    key = pipeline.failures_key
    assert key(make()) == key(make("costs.save=20 min")) == key(make("recovery=[partial]"))
    assert len({key(make()), key(make("failures.mtbf=9 h")), key(make("cluster.emb_ps=5"))}) == 3


def test_a_strategy_that_is_given_up_has_no_moments(make: Make) -> None:
    experiment = make("failures.mtbf=30 min", "recovery=[none, partial]")
    experiment = experiment.simulated(replications=11)
    (ours,) = moments(experiment)
    assert ours.gave_up.tolist() == [True, False]
    assert np.isnan(ours.mean[:, 0]).all()
    assert np.isnan(ours.spread("none", "pls").mean)
    assert ours.n == 11
