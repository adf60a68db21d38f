"""The analytic load model: how fast the trainers are, and how often they synchronise.

Mean times only: no queues form before a resource is full. So it is right away from the
knee, where the demand on the network meets its bandwidth; the simulation has the knee. Letters of
the docstrings: n trainers, m threads each, t_iter one iteration, P bytes of dense weights, B_ps of
all sync servers, B_t of a trainer, k iterations between two synchronisations of a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from cprsim.job.records import Algorithm, Method
from cprsim.job.sync_setting import SyncSetting


@dataclass(frozen=True, slots=True)
class SpeedPoint:
    """Throughput of one setting, simulated or by the load model."""

    setting: SyncSetting
    samples_per_h: float  # EPS, per hour
    gap: float  # mean iterations of a trainer between two synchronisations; infinite: none


def load_model(setting: SyncSetting) -> SpeedPoint:
    """Examples per hour and sync gap of a setting, in closed form."""
    return SpeedPoint(setting, _samples_per_h(setting), _gap(setting))


def linear_samples_per_h(setting: SyncSetting) -> float:
    """``sum over trainers of m batch / t_iter``: samples per hour of workers that never wait."""
    per_trainer = setting.n_threads * setting.batch / setting.iteration.mean_h
    return sum(per_trainer / slowdown for slowdown in setting.slowdown)


def sync_h(setting: SyncSetting) -> float:
    """One synchronisation [h].

    EASGD in the background: all trainers exchange all the time, ``max(2P/B_t, n 2P/B_ps)``. In the
    foreground: an exchange that has the network to itself. The others: an AllReduce.
    """
    if never_synchronises(setting):
        return inf
    if setting.algorithm.is_collective:
        return setting.allreduce_h
    n_at_once = setting.n_trainers if setting.algorithm.in_background else 1
    through_servers_h = n_at_once * setting.exchange_bytes / setting.server_bandwidth_bytes_per_h
    return max(through_servers_h, setting.exchange_bytes / setting.trainer_bandwidth_bytes_per_h)


def never_synchronises(setting: SyncSetting) -> bool:
    """Whether no trainer ever does: by choice, or because one trainer has none to average with."""
    averages = setting.algorithm.method in (Method.MA, Method.BMUF)
    return setting.algorithm is Algorithm.NONE or (averages and setting.n_trainers == 1)


def saturates_at(setting: SyncSetting) -> float:
    """Trainers beyond which examples per second stay flat: ``n* = B_ps k t_iter / (2 P m)``."""
    if setting.algorithm is not Algorithm.FR_EASGD:
        return inf
    thread_h = iterations_between(setting) * setting.iteration.mean_h
    per_h = setting.server_bandwidth_bytes_per_h
    return per_h * thread_h / (setting.exchange_bytes * setting.n_threads)


def iterations_between(setting: SyncSetting) -> int:
    """k: iterations of a thread between two synchronisations at a fixed rate."""
    if setting.every_iterations is not None:
        return setting.every_iterations
    if setting.every_h is None:
        return 1
    return max(1, ceil(setting.every_h / setting.iteration.mean_h * (1 - 1e-12)))


def _samples_per_h(setting: SyncSetting) -> float:
    algorithm = setting.algorithm
    if algorithm.in_background or algorithm is Algorithm.NONE:
        return linear_samples_per_h(setting)
    k, iteration_h = iterations_between(setting), setting.iteration.mean_h
    per_round = k * setting.n_threads * setting.batch  # of one trainer
    if algorithm.holds_all_up:
        round_h = k * iteration_h * max(setting.slowdown) + setting.allreduce_h
        return setting.n_trainers * per_round / round_h
    exchanges_per_h = setting.server_bandwidth_bytes_per_h / setting.exchange_bytes
    own_link = setting.trainer_bandwidth_bytes_per_h / setting.exchange_bytes * k * setting.batch
    of_trainers = sum(
        min(own_link, per_round / (k * iteration_h * slowdown + sync_h(setting)))
        for slowdown in setting.slowdown
    )
    return min(of_trainers, exchanges_per_h * k * setting.batch)


def _gap(setting: SyncSetting) -> float:
    """``t_sync m / t_iter`` in the background."""
    if never_synchronises(setting):
        return inf
    if setting.algorithm.in_background:
        speed_per_h = linear_samples_per_h(setting) / setting.batch / setting.n_trainers
        return sync_h(setting) * speed_per_h
    k = iterations_between(setting)
    return float(k * setting.n_threads) if setting.algorithm.holds_all_up else float(k)
