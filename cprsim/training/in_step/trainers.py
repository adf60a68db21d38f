"""The trainers as SimPy processes: worker threads, a shadow thread each, barriers, failures.

worker:   BEGAN -> FINISHED -> [at a fixed rate: SENT -> SYNCED] -> BEGAN ...
shadow:   SENT -> SYNCED -> SENT ...            workers do not wait for it
trainer:  working --LOST--> down --REPLACED--> working
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import simpy

from cprsim.failures.sources import stream
from cprsim.job.distributions import Constant
from cprsim.job.records import Floats, Method
from cprsim.job.sync_setting import ALL, SyncEvent, SyncSetting
from cprsim.training.in_step.load_model import iterations_between, never_synchronises
from cprsim.training.in_step.network import Network

BEGAN, FINISHED, SENT, SYNCED, LOST, REPLACED, SERVER_LOST, SERVER_REPLACED = SyncEvent
SHADOW = -1  # as a thread
DRAWN_AT_ONCE = 256  # iteration times

Steps = Generator[simpy.Event, None, None]


@dataclass(frozen=True, slots=True)
class Outage:
    """A trainer, or a sync server, fails and is replaced."""

    at_h: float
    down_h: float
    number: int  # of the trainer or the server
    is_server: bool = False


@dataclass(slots=True)
class Thread:
    """State of a worker thread, which gives its progress at any instant."""

    trainer: int
    number: int
    slowdown: float
    since_sync: int  # iterations
    delay_h: float  # before its first one, so that threads do not go in step
    n_done: float = 0.0  # iterations
    n_in_hand: int = 0  # iterations under way as one event
    began_at_h: float = 0.0
    takes_h: float = 1.0
    synced_at_h: float = 0.0
    process: simpy.Process | None = None
    drawn_h: list[float] = field(default_factory=list)

    def done_by(self, now_h: float) -> float:
        """Iterations done, the part of the one in hand included."""
        return self.n_done + self.n_in_hand * (now_h - self.began_at_h) / self.takes_h


class Trainers:
    """All trainers of a job at work.

    Parameters
    ----------
    seed : of the iteration times and of the delays between threads
    n_batches : in the whole run, dealt out one by one; None: without end
    outages : trainers and sync servers that fail
    rows : receives the events; None: no log, and iterations may be taken together
    stride : iterations of a thread that are one event, where no synchronisation comes between
    """

    def __init__(
        self,
        env: simpy.Environment,
        setting: SyncSetting,
        seed: int,
        n_batches: int | None = None,
        outages: Sequence[Outage] = (),
        rows: list[tuple[float, int, int, int]] | None = None,
        stride: int = 1,
    ) -> None:
        self._env, self._setting, self._rows = env, setting, rows
        self._stride = stride
        self._left = n_batches
        self._rng = stream(seed, 0, "sync/iterations")
        self._k = iterations_between(setting)
        self._network = Network(env, setting) if setting.algorithm.has_servers else None
        self._threads = [
            [self._new_thread(trainer, number) for number in range(setting.n_threads)]
            for trainer in range(setting.n_trainers)
        ]
        self._n_active = [setting.n_threads] * setting.n_trainers
        self._up = [True] * setting.n_trainers
        self._back = env.event()  # the next replacement of a trainer
        self._at_barrier: set[tuple[int, int]] = set()  # trainers and threads
        self._all_here, self._barrier_opens = env.event(), env.event()
        self._shadows: list[simpy.Process | None] = [None] * setting.n_trainers
        self.syncs: list[list[tuple[float, float]]] = [[] for _ in range(setting.n_trainers)]
        self.finished = env.event()
        self._start(outages)

    # ------------------------------------------------------------------ what one can ask

    def iterations_by_now(self, trainer: int) -> float:
        """Iterations that the threads of a trainer have done, parts included."""
        return sum(thread.done_by(self._env.now) for thread in self._threads[trainer])

    # ------------------------------------------------------------------ starting

    def _new_thread(self, trainer: int, number: int) -> Thread:
        in_step = self._setting.algorithm.holds_all_up
        phase = 0.0 if in_step else self._rng.random() * self._k
        delay_h = (phase % 1.0) * self._setting.iteration.mean_h
        return Thread(trainer, number, self._setting.slowdown[trainer], int(phase), delay_h)

    def _start(self, outages: Sequence[Outage]) -> None:
        for trainer in range(self._setting.n_trainers):
            self._start_trainer(trainer)
        algorithm = self._setting.algorithm
        if algorithm.is_collective and not never_synchronises(self._setting):
            self._env.process(
                self._shadow_of_all() if algorithm.in_background else self._average_at_barrier()
            )
        for outage in outages:
            self._env.process(self._suffer(outage))

    def _start_trainer(self, trainer: int) -> None:
        for thread in self._threads[trainer]:
            thread.process = self._env.process(self._work(thread))
        algorithm = self._setting.algorithm
        if algorithm.in_background and algorithm.has_servers:
            self._shadows[trainer] = self._env.process(self._shadow(trainer))

    # ------------------------------------------------------------------ worker threads

    def _work(self, thread: Thread) -> Steps:
        try:
            if thread.delay_h:
                yield self._env.timeout(thread.delay_h)
                thread.delay_h = 0.0
            while self._take_batch():
                yield from self._iterate(thread)
                if self._is_due(thread):
                    yield from self._synchronise(thread)
        except simpy.Interrupt:
            return
        self._retire(thread)

    def _iterate(self, thread: Thread) -> Steps:
        self._note(BEGAN, thread.trainer, thread.number)
        thread.n_in_hand = self._n_at_once(thread)
        thread.began_at_h = self._env.now
        thread.takes_h = self._draw_h(thread, thread.n_in_hand)
        yield self._env.timeout(thread.takes_h)
        thread.n_done += thread.n_in_hand
        thread.since_sync += thread.n_in_hand
        thread.n_in_hand = 0
        self._note(FINISHED, thread.trainer, thread.number)

    def _n_at_once(self, thread: Thread) -> int:
        """Iterations that are one event: up to the next synchronisation of the worker, if any."""
        if self._stride == 1 or self._setting.algorithm.method is Method.SGD:
            return 1
        if self._setting.every_h is not None:
            left_h = thread.synced_at_h + self._setting.every_h - self._env.now
            before_it = int(left_h / (thread.slowdown * self._setting.iteration.mean_h))
            return max(1, min(self._stride, before_it))
        if self._setting.algorithm.at_fixed_rate:
            return min(self._stride, self._k - thread.since_sync % self._k)
        return self._stride

    def _draw_h(self, thread: Thread, n: int) -> float:
        iteration = self._setting.iteration
        if isinstance(iteration, Constant):
            return n * thread.slowdown * iteration.mean_h
        while len(thread.drawn_h) < n:
            drawn: Floats = iteration.sample(self._rng, max(n, DRAWN_AT_ONCE))
            thread.drawn_h.extend(drawn.tolist())
        drawn_h, thread.drawn_h = thread.drawn_h[:n], thread.drawn_h[n:]
        return thread.slowdown * sum(drawn_h)

    def _take_batch(self) -> bool:
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    def _is_due(self, thread: Thread) -> bool:
        algorithm = self._setting.algorithm
        if algorithm.in_background or never_synchronises(self._setting):
            return False
        if self._setting.every_h is not None:
            return self._env.now - thread.synced_at_h >= self._setting.every_h * (1 - 1e-12)
        return thread.since_sync >= self._k

    def _synchronise(self, thread: Thread) -> Steps:
        """A worker stops: for its own exchange, or until all have come."""
        if self._setting.algorithm.holds_all_up:
            self._at_barrier.add((thread.trainer, thread.number))
            self._check_barrier()
            yield self._barrier_opens
        else:
            yield from self._exchange(thread.trainer, thread.number)
        thread.since_sync = 0
        thread.synced_at_h = self._env.now

    def _retire(self, thread: Thread) -> None:
        """End a thread for which no data are left."""
        self._n_active[thread.trainer] -= 1
        self._check_barrier()
        if not any(self._n_active) and not self.finished.triggered:
            self.finished.succeed()

    # ------------------------------------------------------------------ synchronisation

    def _exchange(self, trainer: int, thread: int) -> Steps:
        assert self._network is not None
        self._note(SENT, trainer, thread)
        yield self._network.exchange(trainer)
        self._note_sync(trainer, thread)

    def _shadow(self, trainer: int) -> Steps:
        """The shadow thread of one trainer: exchange after exchange, until the data are out."""
        try:
            while self._n_active[trainer]:
                yield from self._exchange(trainer, SHADOW)
        except simpy.Interrupt:
            return

    def _shadow_of_all(self) -> Steps:
        """The shadow threads of all trainers, which average together; a lost one is waited for."""
        while any(self._n_active):
            while not all(self._up):
                yield self._back
            self._note(SENT, ALL, SHADOW)
            yield self._env.timeout(self._setting.allreduce_h)
            if all(self._up):  # else the AllReduce has failed, and is tried again
                self._note_sync(ALL, SHADOW)

    def _check_barrier(self) -> None:
        """Note if all threads that have data are at the barrier; of a lost one the replacement."""
        if 0 < sum(self._n_active) == len(self._at_barrier) and not self._all_here.triggered:
            self._all_here.succeed()

    def _average_at_barrier(self) -> Steps:
        """Once all threads are at the barrier, average and release them."""
        while True:
            yield self._all_here
            self._note(SENT, ALL, SHADOW)
            yield self._env.timeout(self._setting.allreduce_h)
            self._note_sync(ALL, SHADOW)
            self._at_barrier.clear()
            released = self._barrier_opens
            self._all_here, self._barrier_opens = self._env.event(), self._env.event()
            released.succeed()

    # ------------------------------------------------------------------ failures

    def _suffer(self, outage: Outage) -> Steps:
        yield self._env.timeout(outage.at_h)
        if outage.is_server:
            yield from self._lose_server(outage)
        elif self._up[outage.number] and self._n_active[outage.number]:
            yield from self._lose_trainer(outage.number, outage.down_h)

    def _lose_server(self, outage: Outage) -> Steps:
        assert self._network is not None, "only exchanges have servers"
        self._network.servers_down(1)
        self._note(SERVER_LOST, outage.number, SHADOW)
        yield self._env.timeout(outage.down_h)
        self._note(SERVER_REPLACED, outage.number, SHADOW)
        self._network.servers_down(-1)

    def _lose_trainer(self, trainer: int, down_h: float) -> Steps:
        self._up[trainer] = False
        self._at_barrier -= {(trainer, number) for number in range(self._setting.n_threads)}
        if self._network is not None:
            self._network.drop(trainer)
        for thread in self._threads[trainer]:
            thread.n_in_hand = 0
            if thread.process is not None and thread.process.is_alive:
                thread.process.interrupt()
        shadow = self._shadows[trainer]
        if shadow is not None and shadow.is_alive:
            shadow.interrupt()
        self._note(LOST, trainer, SHADOW)
        yield self._env.timeout(down_h)
        self._up[trainer] = True
        self._note(REPLACED, trainer, SHADOW)
        self._start_trainer(trainer)
        back, self._back = self._back, self._env.event()
        back.succeed()

    # ------------------------------------------------------------------ the log

    def _note(self, kind: SyncEvent, trainer: int, thread: int) -> None:
        if self._rows is not None:
            self._rows.append((self._env.now, kind, trainer, thread))

    def _note_sync(self, trainer: int, thread: int) -> None:
        self._note(SYNCED, trainer, thread)
        synced = range(self._setting.n_trainers) if trainer == ALL else (trainer,)
        for number in synced:
            self.syncs[number].append((self._env.now, self.iterations_by_now(number)))
