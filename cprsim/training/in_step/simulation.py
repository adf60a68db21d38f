"""Simulate the trainers: for a while to measure their speed, or through all data for a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
import simpy

from cprsim.job.records import Floats
from cprsim.job.sync_setting import SyncLog, SyncSetting
from cprsim.training.in_step.load_model import (
    SpeedPoint,
    iterations_between,
    never_synchronises,
    sync_h,
)
from cprsim.training.in_step.trainers import Outage, Trainers

WARM_UP_ROUNDS, ROUNDS = 3, 10  # of iterations and a synchronisation
FEWEST_ITERATIONS = 30  # of a thread, in what is measured
EVENTS_OF_A_THREAD = 60  # in what is measured, where nothing comes between its iterations


def speed_at(setting: SyncSetting, n_trainers: int, seed: int = 1) -> SpeedPoint:
    """Simulate a stretch of a run without end and without failures."""
    setting = replace(setting, n_trainers=n_trainers)
    round_h = _round_h(setting)
    measured_h = max(ROUNDS * round_h, FEWEST_ITERATIONS * _slowest_h(setting))
    stride = max(1, int(measured_h / setting.iteration.mean_h / EVENTS_OF_A_THREAD))
    env = simpy.Environment()
    trainers = Trainers(env, setting, seed, stride=stride)
    warm_h = WARM_UP_ROUNDS * round_h
    env.run(until=warm_h)
    before = _iterations(trainers, setting)
    env.run(until=warm_h + measured_h)
    n_done = _iterations(trainers, setting) - before
    per_h = setting.batch * n_done / measured_h
    return SpeedPoint(setting, float(per_h.sum()), _gap(trainers, warm_h))


def run_log(
    setting: SyncSetting, n_batches: int, seed: int = 1, outages: Sequence[Outage] = ()
) -> SyncLog:
    """Simulate one pass through all data, every event logged."""
    env = simpy.Environment()
    rows: list[tuple[float, int, int, int]] = []
    trainers = Trainers(env, setting, seed, n_batches, outages, rows)
    env.run(until=trainers.finished)
    at_h, *columns = zip(*rows, strict=True)
    return SyncLog(np.array(at_h), *(np.array(column, np.int64) for column in columns))


def _iterations(trainers: Trainers, setting: SyncSetting) -> Floats:
    return np.array([trainers.iterations_by_now(trainer) for trainer in range(setting.n_trainers)])


def _slowest_h(setting: SyncSetting) -> float:
    return setting.iteration.mean_h * max(setting.slowdown)


def _round_h(setting: SyncSetting) -> float:
    """Hours from one synchronisation to the next, if all who can wait in line before it do."""
    if never_synchronises(setting):
        return _slowest_h(setting)
    iterating_h = iterations_between(setting) * _slowest_h(setting)
    if setting.algorithm.in_background or setting.algorithm.is_collective:
        return iterating_h + sync_h(setting)
    all_h = setting.n_trainers * setting.exchange_bytes / setting.server_bandwidth_bytes_per_h
    own_h = setting.exchange_bytes / setting.trainer_bandwidth_bytes_per_h
    return iterating_h + setting.n_threads * max(all_h, own_h)


def _gap(trainers: Trainers, from_h: float) -> float:
    """Mean over trainers of the iterations between two synchronisations after an instant."""
    gaps = []
    for syncs in trainers.syncs:
        counted = [iterations for at_h, iterations in syncs if at_h >= from_h]
        if len(counted) > 1:
            gaps.append((counted[-1] - counted[0]) / (len(counted) - 1))
    return float(np.mean(gaps)) if gaps else inf
