"""Trainers event by event: what the log of a whole run must hold to, with and without failures."""

from collections import Counter

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from cprsim.job.distributions import with_mean
from cprsim.job.sync_setting import SyncEvent, SyncLog
from cprsim.training.in_step.network import Network, fair_rates
from cprsim.training.in_step.simulation import run_log
from cprsim.training.in_step.trainers import Outage
from tests.in_step.settings import LINK, MS, setting

ALGORITHMS = [("shadow-easgd", None), ("shadow-ma", None), ("fr-easgd", 3), ("fr-ma", 3),
              ("sync-sgd", None), ("none", None)]  # fmt: skip
GAMMA = with_mean("gamma", 10 * MS, 5.0)


def of_kind(log: SyncLog, kind: SyncEvent) -> np.ndarray:
    return np.flatnonzero(log.kind == kind)


@pytest.mark.parametrize(("algorithm", "every"), ALGORITHMS)
def test_every_batch_is_trained_once_and_every_synchronisation_ends(algorithm, every) -> None:
    log = run_log(setting(algorithm, 3, every=every, iteration=GAMMA), n_batches=200)
    assert len(of_kind(log, SyncEvent.BEGAN)) == len(of_kind(log, SyncEvent.FINISHED)) == 200
    assert (np.diff(log.at_h) >= 0).all()
    under_way: Counter[tuple[int, int, bool]] = Counter()
    for kind, trainer, thread in zip(log.kind, log.trainer, log.thread, strict=True):
        who = (trainer, thread, kind in (SyncEvent.SENT, SyncEvent.SYNCED))
        under_way[who] += 1 if kind in (SyncEvent.BEGAN, SyncEvent.SENT) else -1
        assert under_way[who] in (0, 1), "nobody begins twice, nobody ends what did not begin"


def test_foreground_threads_exchange_after_every_k_iterations() -> None:
    log = run_log(setting("fr-easgd", 2, every=3, iteration=GAMMA), n_batches=400)
    for trainer, thread in [(0, 0), (1, 3)]:
        mine = (log.trainer == trainer) & (log.thread == thread)
        synced = np.flatnonzero(log.kind[mine] == SyncEvent.SYNCED)
        finished = np.cumsum(log.kind[mine] == SyncEvent.FINISHED)
        assert set(np.diff(finished[synced])) == {3}


def test_workers_wait_in_the_foreground_and_not_in_the_background() -> None:
    for algorithm, every, waits in (("fr-easgd", 3, True), ("shadow-easgd", None, False)):
        log = run_log(setting(algorithm, 4, every=every, dense_bytes=1e7), n_batches=300)
        mine = (log.trainer == 0) & (log.thread == 0)
        began = log.at_h[mine & (log.kind == SyncEvent.BEGAN)]
        longest = np.diff(began).max()
        assert (longest > 20 * MS) == waits


@pytest.mark.parametrize(("algorithm", "every"), ALGORITHMS)
def test_a_lost_trainer_does_nothing_until_it_is_replaced_and_others_go_on_if_they_can(
    algorithm, every
) -> None:
    one = setting(algorithm, 3, every=every)
    log = run_log(one, 600, outages=[Outage(at_h=55 * MS, down_h=500 * MS, number=1)])
    (lost,), (replaced,) = of_kind(log, SyncEvent.LOST), of_kind(log, SyncEvent.REPLACED)
    assert not (log.trainer[lost + 1 : replaced] == 1).any()
    assert (log.trainer[replaced + 1 :] == 1).any()
    in_work = len(of_kind(log, SyncEvent.BEGAN)) - len(of_kind(log, SyncEvent.FINISHED))
    assert len(of_kind(log, SyncEvent.BEGAN)) == 600
    assert 0 <= in_work <= 4  # of the lost trainer's threads
    n_finished = (log.kind[lost:replaced] == SyncEvent.FINISHED).sum()
    if one.algorithm.holds_all_up:
        assert n_finished <= 2 * 4 * (every or 1)  # up to the barrier
    else:  # 2 trainers x 4 threads x 500 ms / 10 ms, less what exchanges take
        assert 320 <= n_finished <= 400


def test_a_lost_trainer_costs_its_share_of_the_work() -> None:
    """Wall time grows by the outage over the number of trainers: the others take its batches."""
    one, n_batches = setting("shadow-easgd", 5), 4000
    alone = run_log(one, n_batches).at_h[-1]
    outage = Outage(at_h=200 * MS, down_h=1000 * MS, number=2)
    longer = run_log(one, n_batches, outages=[outage]).at_h[-1] - alone
    assert longer == pytest.approx(1000 * MS / 5, abs=10 * MS)


def test_without_a_sync_server_exchanges_stand_still_and_shadowed_workers_go_on() -> None:
    outage = Outage(at_h=50 * MS, down_h=300 * MS, number=0, is_server=True)
    for algorithm, every, goes_on in (("shadow-easgd", None, True), ("fr-easgd", 3, False)):
        log = run_log(setting(algorithm, 3, every=every), 600, outages=[outage])
        lost = of_kind(log, SyncEvent.SERVER_LOST)[0]
        replaced = of_kind(log, SyncEvent.SERVER_REPLACED)[0]
        between = log.kind[lost:replaced]
        assert not (between == SyncEvent.SYNCED).any()
        assert ((between == SyncEvent.FINISHED).sum() > 300) == goes_on
        assert (log.kind[replaced:] == SyncEvent.SYNCED).any()


# --------------------------------------------------------------------------- the network


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.floats(0.1, 50), st.floats(0.1, 50))
def test_shares_are_fair_and_leave_nothing_that_somebody_could_use(
    n_flows, in_all, of_each
) -> None:
    rates = fair_rates(n_flows, in_all, of_each)
    used = [rate * n for rate, n in zip(rates, n_flows, strict=True)]
    assert sum(used) == pytest.approx(min(in_all, of_each * len(n_flows)))
    assert max(used) <= of_each * (1 + 1e-9)
    fastest = max(rates)
    for rate, one in zip(rates, used, strict=True):
        assert rate == pytest.approx(fastest) or one == pytest.approx(of_each)


def test_an_exchange_slows_down_while_another_one_is_there() -> None:
    env = simpy.Environment()
    network = Network(env, setting("shadow-easgd", 2))  # 2 MB through 1 GB/s: 2 ms alone
    first = network.exchange(0)
    env.run(until=1 * MS)
    second = network.exchange(1)
    env.run(until=first)
    assert env.now == pytest.approx(3 * MS)  # half after 1 ms alone, the rest at half the speed
    env.run(until=second)
    assert env.now == pytest.approx(4 * MS)


def test_links_bound_a_trainers_exchanges_together() -> None:
    env = simpy.Environment()
    network = Network(env, setting("shadow-easgd", 2, trainer_bandwidth_bytes_per_h=LINK / 4))
    env.run(until=env.all_of([network.exchange(0), network.exchange(0), network.exchange(1)]))
    assert env.now == pytest.approx(16 * MS)  # 4 MB through 250 MB/s
