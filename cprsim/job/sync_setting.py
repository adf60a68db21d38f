"""Records of dense synchronisation: its setting, and the log of the trainers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf

from cprsim.job.records import Algorithm, Duration, Floats, Ints, Method, Stragglers

ALL = -1  # trainers: a synchronisation of all of them at once


@dataclass(frozen=True, slots=True)
class SyncSetting:
    """How the trainers of a job stay in step, as plain numbers."""

    algorithm: Algorithm
    n_trainers: int
    n_threads: int  # worker threads of each trainer
    batch: int  # samples of one iteration of one thread
    iteration: Duration  # one iteration of one thread, alone
    dense_bytes: float  # P: the dense weights
    server_bandwidth_bytes_per_h: float = 0.0  # B_ps: of all sync servers together
    n_servers: int = 0  # which the central copy is spread over
    trainer_bandwidth_bytes_per_h: float = inf  # B_t: of each trainer
    every_iterations: int | None = None  # of a thread, at a fixed rate
    every_h: float | None = None  # instead: at least so long between two
    elastic: float = 0.5  # a: how far a synchronisation pulls; fr-ma, fr-bmuf: always all the way
    momentum: float = 0.0  # of BMUF, mu
    block_rate: float = 1.0  # of BMUF, eta
    stragglers: Stragglers | None = None
    shadow_cost_fraction: float = 0.0  # of the workers' speed, that the shadow thread takes

    def stand_in(self, n_threads: int, batch: int) -> SyncSetting:
        """Return a smaller job with the same timeline: fewer threads, smaller batches.

        An interval of k iterations is multiplied by the ratio of new to old threads, which keeps
        the number of exchanges over the servers; iterations and exchanges take as long as before.
        A run of it synchronises as often as one of the whole job over `stands_for` times its
        samples.
        """
        k = self.every_iterations
        every = None if k is None else max(1, round(k * n_threads / self.n_threads))
        return replace(self, n_threads=n_threads, batch=batch, every_iterations=every)

    def stands_for(self, job: SyncSetting) -> float:
        """Samples of the whole job for one of this stand-in."""
        return job.n_threads * job.batch / (self.n_threads * self.batch)

    @property
    def name(self) -> str:
        """Algorithm and rate: ``fr-easgd-5``, ``fr-ma every 15 s``, ``shadow-easgd``."""
        if self.every_iterations is not None:
            return f"{self.algorithm}-{self.every_iterations}"
        if self.every_h is not None:
            return f"{self.algorithm} every {3600 * self.every_h:g} s"
        return str(self.algorithm)

    @property
    def slowdown(self) -> tuple[float, ...]:
        """(n_trainers,) how much longer an iteration takes on each trainer."""
        shadow = 1.0
        if self.algorithm.in_background:
            shadow = 1.0 / (1.0 - self.shadow_cost_fraction)
        if self.stragglers is None:
            return (shadow,) * self.n_trainers
        n_slow = min(self.stragglers.n_trainers, self.n_trainers)
        normal = [shadow] * (self.n_trainers - n_slow)
        return (*normal, *[shadow * self.stragglers.factor] * n_slow)

    @property
    def elp(self) -> int:
        """Example-level parallelism: the number of samples in progress simultaneously."""
        return self.batch * self.n_threads * self.n_trainers

    @property
    def step_gain(self) -> float:
        """Long-run movement of all replicas per step of their workers.

        Derived, for workers that all make the same step again and again: EASGD has one more copy
        to move, n / (n + 1); overwriting with the mean keeps all, block momentum makes of it eta /
        (1 - mu); in the background it enters by 1 - a only, since an averaging that began before
        the step is always under way: 1 - a for MA, (1 - a) / (1 - a + a (1 - mu) / eta) for BMUF,
        never more than 1. Synchronous SGD makes one step of those of m threads. A gain of 0.5
        trains the dense weights as half the learning rate would.
        """
        method, a = self.algorithm.method, self.elastic
        if method is Method.EASGD:
            return self.n_trainers / (self.n_trainers + 1)
        if method is Method.SGD:
            return 1 / self.n_threads
        if method is Method.NONE or self.n_trainers == 1:
            return 1.0
        filtered = (1 - self.momentum) / self.block_rate if method is Method.BMUF else 1.0
        return (1 - a) / (1 - a + a * filtered) if self.algorithm.in_background else 1 / filtered

    @property
    def exchange_bytes(self) -> float:
        """Bytes that one synchronisation of one trainer moves: the weights in both directions."""
        return 2.0 * self.dense_bytes

    @property
    def allreduce_h(self) -> float:
        """One AllReduce among all trainers, in a ring [h]; 0 for one trainer.

        ``2 P (n - 1) / (n B_t)``: the traffic of each trainer over B_t (Patarasuk & Yuan 2009).
        """
        n = self.n_trainers
        return self.exchange_bytes * (n - 1) / n / self.trainer_bandwidth_bytes_per_h


class SyncEvent(IntEnum):
    """Kind of a row of the log; rows of one instant are in the order of their occurrence."""

    BEGAN = 0  # a thread takes a batch, and the weights as they are
    FINISHED = 1  # it adds what it learned to the weights as they are by now
    SENT = 2  # a synchronisation begins: what a trainer sends is fixed (thread -1: its shadow)
    SYNCED = 3  # it ends, and acts on the trainer and the central copy
    LOST = 4  # a trainer fails: its replica and the batches in work are gone
    REPLACED = 5  # its replacement begins with the central copy
    SERVER_LOST = 6  # a sync server fails (its number stands as the trainer)
    SERVER_REPLACED = 7  # its part of the central copy is taken from the next trainer to exchange


@dataclass(frozen=True, slots=True)
class SyncLog:
    """Events of one run of all trainers, in order."""

    at_h: Floats  # (n_events,)
    kind: Ints  # (n_events,) a SyncEvent
    trainer: Ints  # (n_events,) its number, or ALL
    thread: Ints  # (n_events,) its number within the trainer, -1: the shadow or all
