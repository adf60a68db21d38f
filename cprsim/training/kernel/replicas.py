"""Dense replicas over shared embeddings, trained in the order of a log of simulated trainers.

    BEGAN       a thread takes the next batch and computes gradients of the current weights
    FINISHED    they update its trainer's replica and the shared rows as these are now
    SENT        the values of a synchronisation are fixed     SYNCED   they are applied
    LOST        a trainer's replica and batches in work are lost    REPLACED   it begins anew
    SERVER_...  a part of the central copy is lost; the next exchange brings its trainer's part

Events are applied one by one in the order of the log: Hogwild's races without its randomness, so
that a run can be repeated bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.model_shape import ModelShape
from cprsim.job.records import Method
from cprsim.job.sync_setting import ALL, SyncEvent, SyncLog, SyncSetting
from cprsim.training.kernel.blas import one_thread
from cprsim.training.kernel.clicks.records import Clicks
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.metrics import Quality, quality
from cprsim.training.kernel.model import Dlrm, Workspace
from cprsim.training.kernel.optimizers import OPTIMIZERS, SCHEDULES, Optimizer
from cprsim.training.kernel.training import Gradients, ProxyTrainer, TrainingPlan, learned, predict

# --------------------------------------------------------------------------- one synchronisation

# Each acts in place on dense weights; all vectors are (n_dense,) float32. w is the replica of a
# trainer, `sent` what it was when the synchronisation began (its workers may have moved it since),
# g the central copy, a the elastic coefficient. Replicas of all trainers are the rows of one array
# (n_trainers, n_dense). Sources: Zhang, Choromanska & LeCun 2015 (EASGD); Chen & Huo 2016 (BMUF);
# Zheng et al. 2020 (shadow forms, arXiv 2003.03477).


def easgd(w: Array, sent: Array, g: Array, elastic: float) -> None:
    """``u = a (sent - g); w -= u; g += u``: elastic averaging, which keeps the sum w + g."""
    u = w.dtype.type(elastic) * (sent - g)
    w -= u
    g += u


def average(replicas: Array, mean: Array) -> None:
    """The mean of replicas, summed in their order; of one replica exactly that replica."""
    mean[:] = replicas[0]
    for replica in replicas[1:]:
        mean += replica
    mean /= mean.dtype.type(len(replicas))


def pull(replicas: Array, target: Array, elastic: float) -> None:
    """``w += a (target - w)`` for all replicas; with a = 1 they become the target exactly."""
    if elastic == 1.0:
        replicas[:] = target
    else:
        replicas += target.dtype.type(elastic) * (target - replicas)


def bmuf(g: Array, v: Array, mean: Array, momentum: float, block_rate: float) -> None:
    """``v <- momentum v + block_rate (mean - g); g += v``: the mean moves g with momentum."""
    mu, eta = g.dtype.type(momentum), g.dtype.type(block_rate)
    v[:] = mu * v + eta * (mean - g)
    g += v


# --------------------------------------------------------------------------- replicas


class Replicas:
    """n dense replicas over one table, at the start of a run.

    `central` has the shared rows and the central copy of the layers: the content of a save.
    """

    def __init__(
        self, shape: ModelShape, clicks: Clicks, plan: TrainingPlan, setting: SyncSetting
    ) -> None:
        self.shape, self.clicks, self.plan, self.setting = shape, clicks, plan, setting
        self.central = ProxyTrainer(shape, clicks, plan)
        self.model, self.optimizer = self.central.model, self.central.optimizer
        self.position = 0  # samples taken so far
        self.summed_loss = 0.0  # of those, each predicted before it was learned from
        self.batch_losses: list[tuple[int, float]] = []  # position after it, summed over samples
        self.lost_iterations: list[int] = []  # of each lost replica: since its last synchronisation
        self._unsynced = [0] * setting.n_trainers  # iterations of each trainer since then
        self._method = setting.algorithm.method
        n_own = 1 if self._method is Method.SGD else setting.n_trainers  # else always the same
        self._dense = np.repeat(self.model.dense[None], n_own, axis=0)  # (n_own, n_dense)
        replicas = [self._replica(dense) for dense in self._dense]
        self._replicas = [replicas[trainer % n_own] for trainer in range(setting.n_trainers)]
        # by trainer and thread: the rows of the batch that it has taken, what it learned, the rate
        self._in_work: dict[tuple[int, int], tuple[Array, Gradients, float]] = {}
        self._sent: dict[tuple[int, int], Array] = {}
        self._velocity = np.zeros_like(self.model.dense)  # of BMUF
        self._gradients: list[Array] = []  # of an iteration of synchronous SGD
        self._rate = plan.rate  # at which they are applied
        self._lost_parts: set[int] = set()  # of the central copy, by server
        # by trainer, thread and samples
        self._workspace = cache(lambda trainer, _, n: Workspace(replicas[trainer % n_own][0], n))
        self._schedule = SCHEDULES[plan.schedule]
        self._do: dict[int, Callable[[int, int], None]] = {
            SyncEvent.BEGAN: self._begin,
            SyncEvent.FINISHED: self._finish,
            SyncEvent.SENT: self._send,
            SyncEvent.SYNCED: self._synchronise,
            SyncEvent.LOST: self._lose,
            SyncEvent.REPLACED: self._replace,
            SyncEvent.SERVER_LOST: lambda *_: None,  # exchanges stand still: no replica reads it
            SyncEvent.SERVER_REPLACED: lambda server, _: self._lost_parts.add(server),
        }

    def _replica(self, dense: Array) -> tuple[Dlrm, Optimizer]:
        """A dense replica over the shared table and the shared state of its rows."""
        model = Dlrm(self.shape, table=self.model.table, dense=dense)
        optimizer = OPTIMIZERS[self.plan.optimizer](model)
        optimizer.row_state = self.optimizer.row_state
        return model, optimizer

    def go_on_from(self, trainer: ProxyTrainer) -> None:
        """Begin where a trainer of the same clicks stands, with its model in every replica."""
        self.central.restore(trainer.arrays())
        for model, optimizer in self._replicas:
            model.dense[:] = trainer.model.dense
            optimizer.dense_state[:] = trainer.optimizer.dense_state
        self.position = trainer.position

    def dense(self, trainer: int) -> Array:
        """The replica (n_dense,) of one trainer, live."""
        return self._replicas[trainer][0].dense

    def train(self, log: SyncLog, before: Callable[[int], None] | None = None) -> None:
        """Apply the events of a log in their order."""
        overflow_shows_in_the_loss = np.errstate(over="ignore", invalid="ignore")
        columns = (log.kind.tolist(), log.trainer.tolist(), log.thread.tolist())
        with one_thread(), overflow_shows_in_the_loss:
            for kind, trainer, thread in zip(*columns, strict=True):
                if before is not None and kind == SyncEvent.BEGAN:
                    before(self.position)
                self._do[kind](trainer, thread)
        if not np.isfinite(self.summed_loss):
            raise ParameterError(
                f"training diverged: the learning rate {self.plan.rate:g} is too high"
            )

    def evaluate(self, clicks: Clicks) -> Quality:
        model = self.result()
        return quality(clicks.label, predict(model, clicks, lambda n: Workspace(model, n)))

    def result(self) -> Dlrm:
        """The model that a run ends with: the mean of all replicas over the shared table."""
        model = Dlrm(self.shape, table=self.model.table)
        average(self._dense, model.dense)
        return model

    # ------------------------------------------------------------------ iterations

    def _begin(self, trainer: int, thread: int) -> None:
        model, _ = self._replicas[trainer]
        batch = slice(self.position, min(self.position + self.plan.batch, len(self.clicks)))
        rows = self.clicks.rows[batch]
        work = self._workspace(trainer, thread, len(rows))
        rate = self._schedule(self.plan.rate, self.position / len(self.clicks))
        loss, gradients = learned(model, self.clicks, batch, rows, lambda _: work)
        self.summed_loss += loss
        self.position += len(rows)
        self.batch_losses.append((self.position, loss))
        self._in_work[trainer, thread] = rows, gradients, rate

    def _finish(self, trainer: int, thread: int) -> None:
        _, optimizer = self._replicas[trainer]
        rows, (d_dense, d_fields), rate = self._in_work.pop((trainer, thread))
        row_rate = optimizer.row_rate(rate)
        optimizer.update_rows(rows, d_fields, self.central.changed, row_rate)
        if self._method is Method.SGD:
            self._gradients.append(d_dense.copy())
            self._rate = rate
        else:
            optimizer.update_dense(d_dense, rate)
        self._unsynced[trainer] += 1
        if self.central.observe is not None:
            self.central.observe(rows)

    # ------------------------------------------------------------------ synchronisation

    def _send(self, trainer: int, thread: int) -> None:
        if self._method is Method.SGD:
            return
        sent = np.empty_like(self.model.dense)
        if trainer == ALL:
            average(self._dense, sent)
        else:
            sent[:] = self.dense(trainer)
        self._sent[trainer, thread] = sent

    def _synchronise(self, trainer: int, thread: int) -> None:
        setting = self.setting
        for synced in range(setting.n_trainers) if trainer == ALL else (trainer,):
            self._unsynced[synced] = 0
        if self._method is Method.SGD:
            self._average_gradients()
            return
        sent, central = self._sent.pop((trainer, thread)), self.model.dense
        if self._method is Method.EASGD:
            self._restore_parts(sent)
            easgd(self.dense(trainer), sent, central, setting.elastic)
            return
        if self._method is Method.BMUF:
            bmuf(central, self._velocity, sent, setting.momentum, setting.block_rate)
        else:
            central[:] = sent
        strength = setting.elastic if setting.algorithm.in_background else 1.0
        pull(self._dense, central, strength)

    def _average_gradients(self) -> None:
        """One step of synchronous SGD, in the one replica that represents all."""
        if self._gradients:
            mean = np.empty_like(self.model.dense)
            average(np.stack(self._gradients), mean)
            self._replicas[0][1].update_dense(mean, self._rate)
            self._gradients.clear()
            self.model.dense[:] = self._dense[0]

    # ------------------------------------------------------------------ failures

    def _lose(self, trainer: int, _: int) -> None:
        self.lost_iterations.append(self._unsynced[trainer])
        self._unsynced[trainer] = 0
        for by_thread in (self._in_work, self._sent):
            for who in [who for who in by_thread if who[0] == trainer]:
                del by_thread[who]

    def _replace(self, trainer: int, _: int) -> None:
        """The replacement begins with the central copy; without one, with another replica."""
        if self._method is Method.SGD:
            return
        source = self.model.dense
        if self._method is Method.NONE:
            source = self.dense((trainer + 1) % self.setting.n_trainers)
        self.dense(trainer)[:] = source

    def _restore_parts(self, sent: Array) -> None:
        """Parts of the central copy on new servers: as the first trainer to exchange has them."""
        n_dense, n_servers = len(sent), max(1, self.setting.n_servers)
        for server in self._lost_parts:
            part = slice(server * n_dense // n_servers, (server + 1) * n_dense // n_servers)
            self.model.dense[part] = sent[part]
        self._lost_parts.clear()

    def gather(self) -> None:
        """Put the content of a save into `model`: without a central copy, the mean."""
        if self._method is Method.NONE:
            average(self._dense, self.model.dense)

    def restart_from_central(self) -> None:
        """All replicas become the central copy: there is nothing else left."""
        self._velocity[:] = 0
        self._dense[:] = self.model.dense
