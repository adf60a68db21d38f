"""A stand-in on replicas, with the failures of a simulated job."""

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.training.in_step.trainers import Outage
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import split
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.training import TrainingPlan
from cprsim.training.proxy_model import ProxyModel
from cprsim.training.train_in_step import (
    Team,
    outages_of,
    train_in_step,
    train_with_failures,
    warm_start,
)
from tests.in_step.settings import in_step, setting
from tests.simulators import failures, logged

TABLES = TableLayout((40, 3, 900, 7, 250, 60))
TRAINER, SERVER = 4, 8  # slots of the first ones


def stand_in(epochs: int = 1) -> ProxyModel:
    train, test = split(generate(TABLES, 3500, seed=5)[0])
    plan = TrainingPlan(10, 0.3, epochs=epochs, seed=2)
    shape = ModelShape(TABLES, dimension=8, bottom=(12,), top=(16,))
    return ProxyModel(shape, train, test, plan, Shards(TABLES, 4), None, 0)


@pytest.fixture(scope="module")
def team() -> Team:
    what = stand_in()
    return Team(what, setting("shadow-easgd", 4, n_threads=2, n_servers=2), warm_start(what, 0.5))


def after(team: Team, strikes: str = ""):
    job = in_step(interval_h=2.0)
    log = logged(job, failures(strikes))
    return train_with_failures(team, log, 10.0, job.cluster, None)


def test_replicas_train_what_the_warm_start_left(team: Team) -> None:
    assert team.n_trained == 1500
    assert team.start.position == 1500
    alone, (in_team, n_syncs) = team.start.evaluate(team.stand_in.test), train_in_step(team)
    assert in_team.log_loss < alone.log_loss
    assert n_syncs > 10


def test_a_job_without_failures_trains_as_no_job_at_all(team: Team) -> None:
    plain = team.replicas()
    plain.train(team.log())
    replicas, saver = after(team)
    assert np.array_equal(replicas.result().dense, plain.result().dense)
    assert np.array_equal(replicas.model.table, plain.model.table)
    assert saver.bytes_written > 0


def test_a_lost_shard_goes_back_and_nothing_else(team: Team) -> None:
    replicas, _ = after(team, "9.9999 node 1")  # so late that nothing is trained on it
    plain = team.replicas()
    plain.train(team.log())
    same = {
        server: all(
            np.array_equal(replicas.model.table[segment.rows], plain.model.table[segment.rows])
            for segment in team.stand_in.shards.of_servers([server])
        )
        for server in range(4)
    }
    assert same == {0: True, 1: False, 2: True, 3: True}
    assert np.array_equal(replicas.result().dense, plain.result().dense)


def test_a_lost_trainer_changes_little_and_is_counted(team: Team) -> None:
    replicas, _ = after(team, f"4 node {TRAINER}")
    assert len(replicas.lost_iterations) == 1
    assert 0 <= replicas.lost_iterations[0] <= 4  # sync gap of 4 trainers with 2 threads: 1.6
    alone, _ = train_in_step(team)
    assert replicas.evaluate(team.stand_in.test).auc == pytest.approx(alone.auc, abs=0.03)


def test_if_all_are_lost_every_replica_begins_with_what_was_saved(team: Team) -> None:
    replicas, saver = after(team, "9.9999 node 0 1 2 3 4 5 6 7 8 9")
    # what was saved last, at 8 h, and hardly any training since
    for trainer in range(4):
        np.testing.assert_allclose(replicas.dense(trainer), saver.stored.dense, atol=0.02)


def test_outages_last_as_much_progress_as_the_nodes_were_away() -> None:
    job = in_step()  # a replacement takes 2 h
    words = f"2 node {TRAINER + 1}, 5 node {SERVER}, 7.5 node 0 {TRAINER}"
    log = logged(job, failures(words))
    found = outages_of(log, 10.0, job.cluster, run_h=1.0)
    assert sorted(found, key=lambda one: one.at_h) == [
        Outage(pytest.approx(0.2), pytest.approx(0.2), 1),
        Outage(pytest.approx(0.5), pytest.approx(0.2), 0, is_server=True),
        Outage(pytest.approx(0.75), 0.0, 0),  # all stood still meanwhile
    ]


def test_several_epochs_are_refused() -> None:
    with pytest.raises(ParameterError, match="one pass"):
        warm_start(stand_in(epochs=2), 0.5)
