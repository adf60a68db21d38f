"""A trainer: takes batches in their order, pulls rows, computes, pushes gradients, keeps the pace.

A batch counts as done once its gradients exist. Each has a slot on an absolute schedule, so that
lateness is caught up. A server that does not answer holds the trainer up until it is halted, which
cancels the work wherever it waits; messages for a server that died meanwhile are dropped.

With others in step (`in_step`) it learns from its part of each batch; all update their layers
alike, and each pushes the whole batch to its share of the servers.

    supervisor   registry (addresses);  run (until) -> position, when;  adopt (from a trainer)
                 halt -> position, or whether it has a whole batch that others may have counted
                 settle -> position;  and the requests of `WorkerRole`
    trainers     part, whole;  dump -> layers
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np

from cprsim.errors import WorkerError
from cprsim.rehearsal.in_step import PartsExchange
from cprsim.rehearsal.log import FactKind
from cprsim.rehearsal.material import places
from cprsim.rehearsal.orders import Orders
from cprsim.rehearsal.role import WorkerRole
from cprsim.rehearsal.store import Arrays
from cprsim.rehearsal.wire import Peer, call, cancelled, connect, patient
from cprsim.rehearsal.worker import Worker
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.model import Dlrm, Workspace
from cprsim.training.kernel.optimizers import OPTIMIZERS, SCHEDULES
from cprsim.training.kernel.training import Gradients, learned, part_of

STEPS_KEPT = 200  # whose median is reported
DENSE = "dense"  # name of the layers in the store


class TrainerProcess(WorkerRole):
    """The work of a trainer."""

    def __init__(
        self, worker: Worker, *, slot: int, store: Path, position: int, orders: Orders
    ) -> None:
        self._supervisor = worker.supervisor
        self._material = material = worker.material
        n_tables, d = material.shape.tables.n_tables, material.shape.dimension
        self._pulled = np.zeros((material.plan.batch * n_tables, d), np.float32)
        self.model = Dlrm(material.shape, table=self._pulled, dense=worker.start.dense.copy())
        self.optimizer = OPTIMIZERS[material.plan.optimizer](self.model)
        layers = {"dense": self.model.dense, "dense_state": self.optimizer.dense_state}
        super().__init__(DENSE, store, position, lambda: layers)
        self._schedule = SCHEDULES[material.plan.schedule]
        self._server_of, self._place_of = places(material.shards)
        self._workspace = cache(lambda n: Workspace(self.model, n))
        self._servers: list[Peer] = []
        self._useful_s = orders.useful_s
        self._acks: set[asyncio.Future[Any]] = set()  # of the last push
        self._run: asyncio.Task[Any] | None = None
        self._began_at, self._began_position = 0.0, 0
        self._part = slot - orders.n_servers
        self._exchange = PartsExchange(self._part)
        self.do_part, self.do_whole = self._exchange.add, self._exchange.hear
        self._is_undecided = False  # its own part of a batch is sent, which does not count yet
        self._last: list[tuple[Any, ...]] = []  # what each server takes of the last batch
        self._step_s: deque[float] = deque(maxlen=STEPS_KEPT)

    # ----------------------------------------------------------------- the supervisor

    async def do_registry(self, servers: Sequence[str], trainers: Sequence[str]) -> None:
        """Connect to the processes of the job; earlier connections are closed."""
        for peer in self._servers:
            peer.close()
        self._servers = [await connect(address) for address in servers]
        peers = [address for part, address in enumerate(trainers) if part != self._part]
        self._exchange.connect([await connect(address) for address in peers])

    def do_timed(self) -> float:
        """Time of a batch, unpaced [s]."""
        return median(self._step_s) if self._step_s else 0.0

    def _content(self, ends_interval: bool, n_before: int) -> Arrays:
        """The layers, by one trainer, where the save ends its interval."""
        if not ends_interval or self._part:
            return {}
        return {name: array.copy() for name, array in self._state().items()}

    def _go_back(self, image: Arrays, position: int) -> None:
        super()._go_back(image, position)
        self._last = []

    async def do_adopt(self, peer: str, position: int) -> bool:
        """Copy the layers of a trainer that has kept them; returns whether it lives."""
        try:
            self._go_back(await call(peer, "dump"), position)
        except ConnectionError:
            return False
        return True

    # ----------------------------------------------------------------- working

    def do_run(self, until: int, mark: int | None, number: int) -> asyncio.Task[Any]:
        """Train up to a position; the supervisor hears where the work passes a mark."""
        self._began_at, self._began_position = monotonic(), self.position
        self._exchange.begin(number)
        self._note(FactKind.RUNNING, self._began_at)
        self._run = asyncio.create_task(self._work(until, mark))
        return self._run

    def _note(self, what: FactKind, at: float) -> None:
        self._supervisor.send("note", what, at, self.position)

    async def _work(self, until: int, mark: int | None) -> tuple[int, float]:
        """Train batch after batch, each in its slot."""
        while self.position < until:
            before, some = self.position, self._samples()
            # deaths fall anywhere in a slot: on average, what counts at its middle is what is due
            await self._until(self._due_at(before + (some.stop - some.start) / 2))
            await self._step(some)
            await self._until(self._due_at(self.position))
            if mark is not None and before < mark <= self.position:
                self._note(FactKind.PASSED, monotonic())
        await self._acknowledged()  # or a save could miss it
        return self.position, monotonic()

    async def do_halt(self) -> tuple[int, bool | None]:
        """Stop; returns the position, or whether it has all of a batch that others may count."""
        if self._run is not None:
            await cancelled([self._run])
        if self._is_undecided:
            return self.position, self._exchange.is_whole
        return await self._stopped(), None

    async def do_settle(self, counts: bool) -> int:
        """Count the batch in hand, or drop it."""
        self._is_undecided = False
        if counts:
            some = self._samples()
            of_all = self._by_server(self._material.clicks.rows[some])
            self._count(some, of_all, self._exchange.together())
        return await self._stopped()

    async def _stopped(self) -> int:
        """The position, once all living servers have handled the messages sent to them.

        A trainer in step sends its last batch to all servers: another one that had to may be dead.
        """
        await self._acknowledged()
        if self._material.n_trainers > 1 and self._last:
            self._push(range(len(self._servers)))
            await self._acknowledged()
        return self.position

    async def _acknowledged(self) -> None:
        """Wait until all servers that live have the last batch."""
        if self._acks:
            await asyncio.wait(self._acks)

    def _due_at(self, position: float) -> float:
        """Instant at which the schedule reaches a position."""
        done_fraction = (position - self._began_position) / self._material.n_samples
        return self._began_at + done_fraction * self._useful_s

    async def _until(self, instant: float) -> None:
        await asyncio.sleep(max(0.0, instant - monotonic()))

    def _samples(self) -> slice:
        """The clicks of the batch at the position of the job."""
        n = len(self._material.clicks)
        first = self.position % n
        return slice(first, min(first + self._material.plan.batch, n))

    async def _step(self, some: slice) -> None:
        """One batch; it does not count where the work is cancelled meanwhile."""
        began, rows, n_trainers = monotonic(), self._material.clicks.rows, self._material.n_trainers
        own_part, of_all = part_of(some, self._part, n_trainers), self._by_server(rows[some])
        mine = of_all if n_trainers == 1 else self._by_server(rows[own_part])
        d_dense, d_fields = await self._learned(own_part, mine)
        if n_trainers > 1:
            self._is_undecided = True
            await self._exchange.exchange(self.position, (d_dense.copy(), d_fields.copy()))
            (d_dense, d_fields), self._is_undecided = self._exchange.together(), False
        self._count(some, of_all, (d_dense, d_fields))
        self._push(range(self._part, len(self._servers), n_trainers))
        self._step_s.append(monotonic() - began)

    async def _learned(
        self, own_part: slice, by_server: Sequence[tuple[Array, Array]]
    ) -> Gradients:
        """The gradients of some samples at the rows that the servers have."""
        clicks = self._material.clicks
        rows = clicks.rows[own_part]
        table = self._pulled[: rows.size]
        asks = (
            server.ask("pull", at, self.position)
            for server, (_, at) in zip(self._servers, by_server, strict=True)
        )
        pulled = await patient(asyncio.gather(*asks))
        for (some, _), rows_of_server in zip(by_server, pulled, strict=True):
            table[some] = rows_of_server
        at = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
        loss, gradients = learned(self.model, clicks, own_part, at, self._workspace)
        if not np.isfinite(loss):
            raise WorkerError(f"training diverged at sample {self.position}: rate too high")
        return gradients

    def _count(
        self, some: slice, by_server: Sequence[tuple[Array, Array]], gradients: Gradients
    ) -> None:
        """Count the batch: update the layers, and prepare the updates of the servers."""
        before, plan = self.position, self._material.plan
        rate = self._schedule(plan.rate, before / self._material.n_samples)
        row_rate = self.optimizer.row_rate(rate)
        d_dense, d_fields = gradients
        self.optimizer.update_dense(d_dense, rate)
        self.position += some.stop - some.start
        of_rows = d_fields[:, 1:]
        n_tables, flat = of_rows.shape[1], of_rows.reshape(-1, of_rows.shape[-1])
        self._last = [
            (at, of // n_tables, flat[of], row_rate, before, self.position) for of, at in by_server
        ]

    def _by_server(self, rows: Array) -> list[tuple[Array, Array]]:
        """Which occurrences of a batch (k,) each server has, and at which places, in order."""
        flat = rows.ravel()
        owner = self._server_of[flat]
        order = np.argsort(owner, kind="stable")
        edges = np.searchsorted(owner[order], np.arange(1, len(self._servers)))
        return [(of, self._place_of[flat[of]]) for of in np.split(order, edges)]

    def _push(self, servers: Iterable[int]) -> None:
        """Send the last batch to servers; one that has had it takes it no second time."""
        self._acks = {self._servers[slot].ask("push", *self._last[slot]) for slot in servers}
