"""A trainer: takes batches in their order, pulls rows, computes, pushes gradients, keeps the pace.

A batch counts as done once its gradients exist. Each has a slot on an absolute schedule, so that
lateness is caught up. A server that does not answer holds the trainer up until it is halted, which
cancels the work wherever it waits; what was meant for a server that died meanwhile is dropped.

With others in step (`in_step`) it learns from its part of each batch; all update their layers
alike, and each pushes the whole batch to its share of the servers.

    supervisor   registry (addresses);  run (until) -> position;  where -> position;  dump
                 halt -> position;  settle -> position, where others may have counted its batch
                 save -> bytes;  load;  adopt (from a trainer)
                 behind the job: capture;  write -> bytes;  commit, abandon;  after it: recall
    trainers     part, whole;  layers -> layers
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np

from cprsim.errors import WorkerError
from cprsim.kernel.loops import Array
from cprsim.kernel.model import Dlrm, Workspace
from cprsim.kernel.optimizers import SCHEDULES, optimizer_for
from cprsim.kernel.training import Gradients, learned, part_of
from cprsim.rehearsal.copies import HeldCopies
from cprsim.rehearsal.in_step import PartsExchange
from cprsim.rehearsal.material import places
from cprsim.rehearsal.server import vote
from cprsim.rehearsal.store import Arrays, SaveFiles, read, write
from cprsim.rehearsal.wire import Message, Peer, answer, cancelled, connect, patient
from cprsim.rehearsal.worker import Worker

STEPS_KEPT = 200  # whose median is reported
DENSE = "dense"  # name of the layers in the store


@dataclass(frozen=True, slots=True, eq=False)
class ShardedBatch:
    """A batch of the job, as the servers hold its rows."""

    by_server: Mapping[int, tuple[Array, Array]]  # occurrences (k,), and their places there
    rate: float
    before: int  # samples of the job
    after: int


@dataclass(frozen=True, slots=True, eq=False)
class TrainedBatch:
    """What the servers take of a batch."""

    batch: ShardedBatch
    gradients: Array  # (k, d) of all occurrences
    row_rate: float


class TrainerProcess:
    """The work of a trainer."""

    def __init__(
        self, worker: Worker, *, slot: int, store: str, position: int, useful_s: float, **_: Any
    ) -> None:
        self._supervisor = worker.supervisor
        self._material = material = worker.inherited.material
        n_tables, d = material.shape.tables.n_tables, material.shape.dimension
        self._pulled = np.zeros((material.plan.batch * n_tables, d), np.float32)
        dense = worker.inherited.dense.copy()
        self.model = Dlrm(material.shape, table=self._pulled, dense=dense)
        self.optimizer = optimizer_for(material.plan.optimizer, self.model)
        self._schedule = SCHEDULES[material.plan.schedule]
        self._places = places(material.shards)
        self._workspaces: dict[int, Workspace] = {}
        self._servers: dict[int, Peer] = {}
        self._addresses: list[str] = []  # of the servers
        self._store, self._useful_s, self.position = SaveFiles(Path(store)), useful_s, position
        self._copies = HeldCopies()
        self._captured: dict[int, Arrays] = {}  # layers of saves behind the job
        self._acks: set[asyncio.Future[Message]] = set()  # of the last push
        self._run: asyncio.Task[Message] | None = None
        self._began_at, self._began_position = 0.0, 0
        self._part = slot - material.shards.n_servers
        self._exchange = PartsExchange(self._part)
        self._in_hand: ShardedBatch | None = None  # its own part is sent; it does not count yet
        self._last: TrainedBatch | None = None  # since the layers were loaded
        self._step_s: deque[float] = deque(maxlen=STEPS_KEPT)

    # ----------------------------------------------------------------- the supervisor

    async def do_registry(self, servers: Mapping[str, str], trainers: Mapping[str, str]) -> None:
        """Connect to the processes of the job; earlier connections are closed."""
        for peer in self._servers.values():
            peer.close()
        self._servers = {int(slot): await connect(servers[slot]) for slot in servers}
        self._addresses = [*servers.values()]
        others = [slot for slot in trainers if int(slot) != self._part]
        self._exchange.connect([await connect(trainers[slot]) for slot in others])

    def do_where(self) -> Message:
        return answer(position=self.position)

    def do_dump(self) -> Message:
        step_s = median(self._step_s) if self._step_s else 0.0
        return answer(*self._layers().values(), step_s=step_s)

    def do_save(self, save: int, ends_interval: bool, **_: Any) -> Message:
        """Write the layers, by one trainer, where the save ends its interval; vote in any case."""
        content = self._layers() if ends_interval and self._part == 0 else {}
        if content:
            write(self._store.part(DENSE, save), content)
        return vote(content)

    def _layers(self) -> Arrays:
        return {"dense": self.model.dense, "dense_state": self.optimizer.dense_state}

    def do_load(self, position: int) -> None:
        self._store.install(DENSE)
        self._go_back(read(self._store.image(DENSE)), position)

    def _go_back(self, image: Arrays, position: int) -> None:
        for name, array in self._layers().items():
            array[:] = image[name]
        self.position, self._last = position, None

    def do_part(self, d_dense: Array, d_fields: Array, **which: int) -> None:
        self._exchange.add(Gradients(d_dense, d_fields), **which)

    def do_whole(self, run: int, position: int) -> None:
        self._exchange.hear(run, position)

    def do_layers(self) -> Message:
        return answer(*self._layers().values())

    async def do_adopt(self, peer: str, position: int) -> Message:
        """Take over the layers of a trainer that has kept them, where it lives."""
        kept = await connect(peer)
        try:
            given = await kept.ask("layers")
        except ConnectionError:
            return answer(adopted=False)
        finally:
            kept.close()
        self._go_back(dict(zip(self._layers(), given.arrays, strict=True)), position)
        return answer(adopted=True)

    # ----------------------------------------------------------------- behind the job

    def do_capture(self, save: int, **_: Any) -> None:
        self._captured[save] = {name: array.copy() for name, array in self._layers().items()}

    async def do_write(self, save: int, to_peers: bool) -> Message:
        """Write the layers that were captured, to a file or to all servers, and vote."""
        layers = self._captured.pop(save)
        if to_peers:
            self._copies.hold(DENSE, save, layers)
            await self._copies.send(DENSE, save, self._addresses, lambda: inf)
        else:
            write(self._store.part(DENSE, save), layers)
        return vote(layers)

    def do_commit(self, save: int, to_peers: bool = False) -> None:
        if to_peers:
            self._copies.commit(save)

    def do_abandon(self, save: int) -> None:
        self._captured.pop(save, None)
        self._copies.drop(save)

    async def do_recall(self, save: int, position: int, peer: str) -> None:
        """Go back to the copy that is held here, or to that of a server."""
        if not self._copies.has(DENSE, save):
            server = await connect(peer)
            copy = (await server.ask("give", who=DENSE, save=save)).arrays[0]
            server.close()
            self._copies.put(copy, DENSE, save, 0, len(copy))
        self._go_back(self._copies.arrays(DENSE, save), position)

    # ----------------------------------------------------------------- working

    def do_run(self, until: int, mark: int | None, number: int) -> asyncio.Task[Message]:
        """Train up to a position; the supervisor hears where the work passes a mark."""
        self._began_at, self._began_position = monotonic(), self.position
        self._exchange.begin(number)
        self._note("running", self._began_at)
        self._run = asyncio.create_task(self._work(until, mark))
        return self._run

    def _note(self, what: str, at: float) -> None:
        self._supervisor.send("note", what=what, at=at, position=self.position)

    async def _work(self, until: int, mark: int | None) -> Message:
        """Train batch after batch, each in its slot."""
        while self.position < until:
            before, some = self.position, self._samples()
            # deaths fall anywhere in a slot: on average, what counts at its middle is what is due
            await self._until(self._due_at(before + (some.stop - some.start) / 2))
            await self._step(some)
            await self._until(self._due_at(self.position))
            if mark is not None and before < mark <= self.position:
                self._note("passed", monotonic())
        await self._acknowledged()  # or a save could miss it
        return answer(position=self.position, at=monotonic())

    async def do_halt(self) -> Message:
        """Stop, and say where; or whether one has all of a batch that others may have counted."""
        if self._run is not None:
            await cancelled([self._run])
        if self._in_hand is not None:
            return answer(position=self.position, whole=self._exchange.is_whole)
        return await self._stopped()

    async def do_settle(self, counts: bool) -> Message:
        """The batch in hand counts, or does not."""
        batch, self._in_hand = self._in_hand, None
        if counts and batch is not None:
            self._count(batch, self._exchange.together())
        return await self._stopped()

    async def _stopped(self) -> Message:
        """The position, once all living servers have handled what was sent to them.

        Of trainers in step each sends its last batch to all: who shared in that may be dead.
        """
        await self._acknowledged()
        if self._material.n_trainers > 1 and self._last is not None:
            self._push(self._last, self._servers)
            await self._acknowledged()
        return answer(position=self.position)

    async def _acknowledged(self) -> None:
        """Wait until all servers that live have the last batch."""
        if self._acks:
            await asyncio.wait(self._acks)

    def _due_at(self, position: float) -> float:
        """Instant at which the schedule reaches a position."""
        done = (position - self._began_position) / self._material.n_samples
        return self._began_at + done * self._useful_s

    async def _until(self, instant: float) -> None:
        await asyncio.sleep(max(0.0, instant - monotonic()))

    def _samples(self) -> slice:
        """Which clicks the batch at the position of the job has."""
        n = len(self._material.clicks)
        first = self.position % n
        return slice(first, min(first + self._material.plan.batch, n))

    async def _step(self, some: slice) -> None:
        """One batch; it does not count where the work is cancelled meanwhile."""
        began, plan, clicks = monotonic(), self._material.plan, self._material.clicks
        n_trainers = self._material.n_trainers
        own = part_of(some, self._part, n_trainers)
        by_server = self._by_server(clicks.rows[some])
        rate = self._schedule(plan.rate, self.position / self._material.n_samples)
        after = self.position + some.stop - some.start
        batch = ShardedBatch(by_server, rate, self.position, after)
        mine = by_server if n_trainers == 1 else self._by_server(clicks.rows[own])
        gradients = await self._learned(own, mine)
        if n_trainers > 1:
            self._in_hand = batch
            part = Gradients(gradients.d_dense.copy(), gradients.d_fields.copy())
            await self._exchange.exchange(self.position, part)
            gradients, self._in_hand = self._exchange.together(), None
        last = self._count(batch, gradients)
        self._push(last, range(self._part, len(self._servers), n_trainers))
        self._step_s.append(monotonic() - began)

    async def _learned(self, own: slice, by_server: Mapping[int, tuple[Array, Array]]) -> Gradients:
        """The gradients of some samples at the rows that the servers have."""
        clicks = self._material.clicks
        rows = clicks.rows[own]
        table = self._pulled[: rows.size]
        asks = (
            self._servers[slot].ask("pull", at, position=self.position)
            for slot, (_, at) in by_server.items()
        )
        pulled = await patient(asyncio.gather(*asks))
        for (some, _), rows_of_server in zip(by_server.values(), pulled, strict=True):
            table[some] = rows_of_server.arrays[0]
        at = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
        loss, gradients = learned(self.model, clicks, own, at, self._workspace)
        if not np.isfinite(loss):
            raise WorkerError(f"training diverged at sample {self.position}: rate too high")
        return gradients

    def _count(self, batch: ShardedBatch, gradients: Gradients) -> TrainedBatch:
        """The batch counts: the layers are updated, and the servers are to be."""
        row_rate = self.optimizer.row_rate(batch.rate)
        self.optimizer.update_dense(gradients.d_dense, batch.rate)
        of_rows = gradients.d_fields[:, 1:]
        flat = of_rows.reshape(-1, of_rows.shape[-1])
        self._last = TrainedBatch(batch, flat, row_rate)
        self.position = batch.after
        return self._last

    def _by_server(self, rows: Array) -> dict[int, tuple[Array, Array]]:
        """Which occurrences of a batch (k,) each server has, and at which places, in order."""
        flat = rows.ravel()
        owner = self._places.server[flat]
        order = np.argsort(owner, kind="stable")
        edges = np.searchsorted(owner[order], np.arange(len(self._servers) + 1))
        place = self._places.place[flat]
        of_server = (order[edges[k] : edges[k + 1]] for k in range(len(self._servers)))
        return {k: (some, place[some]) for k, some in enumerate(of_server)}

    def _push(self, last: TrainedBatch, servers: Iterable[int]) -> None:
        """Send a batch to servers; one that has had it takes it no second time."""
        n_tables, batch = self._material.shape.tables.n_tables, last.batch
        self._acks = set()
        for slot in servers:
            some, at = batch.by_server[slot]
            ack = self._servers[slot].ask(
                "push", at, some // n_tables, last.gradients[some],
                rate=last.row_rate, n_before=batch.before, position=batch.after,
            )  # fmt: skip
            self._acks.add(ack)

    def _workspace(self, n: int) -> Workspace:
        if n not in self._workspaces:
            self._workspaces[n] = Workspace(self.model, n)
        return self._workspaces[n]
