"""A trainer: takes batches in their order, pulls rows, computes, pushes gradients, keeps the pace.

A batch counts as done once its gradients exist. Each has a slot on an absolute schedule, so that
lateness is caught up. A server that does not answer holds the trainer up until it is halted; what
was meant for a server that died meanwhile is dropped.

With another in step (`in_step`) it learns from its part of each batch; both update their layers
alike, and each pushes the whole batch to its share of the servers.

    supervisor   registry (addresses);  dead (a server);
                 run (until) -> running, passed, reached;  halt -> halted;
                 halt -> undecided, settle -> halted, where others may have counted its batch;
                 save -> saved;  load -> loaded;  adopt (from a trainer) -> loaded;  where, dump
                 behind the job: capture -> captured;  write -> saved;  after it: recall -> loaded
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np

from cprsim.kernel.loops import Array
from cprsim.kernel.model import Dlrm, Workspace
from cprsim.kernel.optimizers import SCHEDULES, optimizer_for
from cprsim.kernel.training import Gradients, learned, part_of
from cprsim.rehearsal.copies import HeldCopies, after, sending
from cprsim.rehearsal.in_step import PartsExchange
from cprsim.rehearsal.material import places
from cprsim.rehearsal.messages import Channel, Message
from cprsim.rehearsal.store import Arrays, SaveFiles, read, write
from cprsim.rehearsal.worker import Worker

STEPS_KEPT = 200  # whose median is reported
DENSE = "dense"  # name of the layers in the store


@dataclass(frozen=True, slots=True, eq=False)
class TrainedBatch:
    """What the servers take of a batch."""

    by_server: Mapping[int, tuple[Array, Array]]
    gradients: Array  # (k, d) of all occurrences
    rate: float
    n_before: int  # samples of the job
    position: int  # after it


class TrainerProcess:
    """The work of a trainer."""

    def __init__(self, worker: Worker, orders: Mapping[str, Any]) -> None:
        self._worker, self._loop = worker, worker.loop
        self._material = material = worker.inherited.material
        n_tables, d = material.shape.tables.n_tables, material.shape.dimension
        self._pulled = np.zeros((material.plan.batch * n_tables, d), np.float32)
        dense = worker.inherited.dense.copy()
        self.model = Dlrm(material.shape, table=self._pulled, dense=dense)
        self.optimizer = optimizer_for(material.plan.optimizer, self.model)
        self._schedule = SCHEDULES[material.plan.schedule]
        self._places = places(material.shards)
        self._workspaces: dict[int, Workspace] = {}
        self._servers: dict[int, Channel] = {}
        self._store = SaveFiles(Path(orders["store"]))
        self._useful_s = float(orders["useful_s"])
        self.position = int(orders["position"])
        self._copies = HeldCopies()
        self._captured: dict[int, Arrays] = {}  # layers of saves behind the job
        self._on_kept: dict[int, Callable[[], None]] = {}  # by save: a server has its copy
        self._seq = 0
        self._answers: dict[int, Array | None] = {}  # by server, to the last pull
        self._unacknowledged: set[int] = set()  # servers that owe an ack of the last push
        self._run: Mapping[str, Any] | None = None
        self._began_at, self._began_position = 0.0, 0
        self._halt: int | None = None  # the number of the question
        self._counts: bool | None = None  # whether the batch does that a halt has found it in
        self._part = int(orders["slot"]) - material.shards.n_servers
        self._n_own = 0  # samples of its part of the batch in hand
        self._last: TrainedBatch | None = None  # since the layers were loaded
        self._exchange: PartsExchange | None = None
        if material.n_trainers > 1:
            self._exchange = PartsExchange(worker, orders["name"], self._part, self._layers)
        self.address = "" if self._exchange is None else self._exchange.address
        self._account = {"samples": 0.0, "worked_s": 0.0, "late_s": 0.0}
        self._step_s: deque[float] = deque(maxlen=STEPS_KEPT)

    def account(self) -> dict[str, float]:
        step_s = median(self._step_s) if self._step_s else 0.0
        return self._account | {"position": float(self.position), "step_s": step_s}

    # ----------------------------------------------------------------- the supervisor

    def do_registry(self, fields: Mapping[str, Any]) -> None:
        self._connect({int(k): v for k, v in fields["servers"].items()})
        if self._exchange is not None:
            self._exchange.connect({int(k): v for k, v in fields["trainers"].items()})
        self._worker.answer(fields, "connected")

    def do_halt(self, fields: Mapping[str, Any]) -> None:
        self._halt = int(fields["ask"])

    def do_settle(self, fields: Mapping[str, Any]) -> None:
        self._halt, self._counts = int(fields["ask"]), bool(fields["counts"])

    def do_dead(self, fields: Mapping[str, Any]) -> None:
        if (server := self._servers.get(int(fields["server"]))) is not None:
            server.closed = True  # a replacement may know of none yet

    def do_capture(self, fields: Mapping[str, Any]) -> None:
        layers = {name: array.copy() for name, array in self._layers().items()}
        self._captured[int(fields["save"])] = layers
        self._worker.answer(fields, "captured")

    def do_commit(self, fields: Mapping[str, Any]) -> None:
        if fields["to_peers"]:
            self._copies.commit(int(fields["save"]))

    def do_abandon(self, fields: Mapping[str, Any]) -> None:
        self._captured.pop(int(fields["save"]), None)
        self._copies.drop(int(fields["save"]))

    def do_where(self, fields: Mapping[str, Any]) -> None:
        self._worker.answer(fields, "here", position=self.position)

    def do_dump(self, fields: Mapping[str, Any]) -> None:
        arrays = (self.model.dense, self.optimizer.dense_state)
        self._worker.answer(fields, "dumped", arrays, account=self.account())

    def _connect(self, addresses: Mapping[int, str]) -> None:
        """Connect to servers by the registry; earlier connections to them are closed."""
        for number, address in addresses.items():
            before = self._servers.pop(number, None)
            self._unacknowledged.discard(number)
            if before is not None:
                self._loop.remove(before)
            self._servers[number] = self._worker.connected(address, self._note)

    def do_save(self, fields: Mapping[str, Any]) -> None:
        """Write the layers where the save ends its interval, and vote in any case."""
        content: Arrays = {}
        if fields["ends_interval"]:
            content = self._layers()
        n_bytes = sum(array.nbytes for array in content.values())
        try:
            if content:
                write(self._store.part(DENSE, int(fields["save"])), content)
        except OSError as error:
            self._worker.answer(fields, "failed", why=error.strerror or "")
            return
        self._worker.answer(fields, "saved", bytes=n_bytes)

    def _layers(self) -> Arrays:
        return {"dense": self.model.dense, "dense_state": self.optimizer.dense_state}

    def do_load(self, fields: Mapping[str, Any]) -> None:
        self._store.install(DENSE)
        self._go_back(fields, read(self._store.image(DENSE)))

    def _go_back(self, fields: Mapping[str, Any], image: Arrays) -> None:
        self.model.dense[:] = image["dense"]
        self.optimizer.dense_state[:] = image["dense_state"]
        self.position, self._last = int(fields["position"]), None
        self._worker.answer(fields, "loaded")

    def do_adopt(self, fields: Mapping[str, Any]) -> None:
        """Take over the layers of a trainer that has kept them."""

        def given(channel: Channel, message: Message) -> None:
            self._loop.remove(channel)
            dense, dense_state = message.arrays
            self._go_back(fields, {"dense": dense, "dense_state": dense_state})

        self._worker.connected(str(fields["peer"]), given).send("layers")

    # ----------------------------------------------------------------- behind the job

    def do_write(self, fields: Mapping[str, Any]) -> None:
        """Write the layers that were captured, to a file or to all servers, and vote."""
        number = int(fields["save"])
        layers = self._captured.pop(number)
        n_bytes = sum(array.nbytes for array in layers.values())
        vote = partial(self._worker.answer, fields, "saved", bytes=n_bytes)
        if fields["to_peers"]:
            self._copies.hold(DENSE, number, layers)
            self._on_kept[number] = after(len(self._servers), vote)
            copy = self._copies.bytes_of(DENSE, number)
            for _ in sending(copy, DENSE, number, [*self._servers.values()], len(copy)):
                pass
            return
        try:
            write(self._store.part(DENSE, number), layers)
        except OSError as error:
            self._worker.answer(fields, "failed", why=error.strerror or "")
        else:
            vote()

    def do_recall(self, fields: Mapping[str, Any]) -> None:
        """Go back to the copy that is held here, or to that of a server."""
        number = int(fields["save"])
        if self._copies.has(DENSE, number):
            self._go_back(fields, self._copies.arrays(DENSE, number))
            return

        def given(channel: Channel, message: Message) -> None:
            self._loop.remove(channel)
            self._copies.add(DENSE, number, message.arrays[0])
            self._go_back(fields, self._copies.arrays(DENSE, number))

        server = self._worker.connected(str(fields["peer"]), given)
        server.send("give", who=DENSE, save=number, seq=0)

    # ----------------------------------------------------------------- working

    def advance(self) -> None:
        if self._halt is not None:
            self._stop()
        elif self._run is None:
            self._loop.turn(inf)
        else:
            self._work(self._run)

    def do_run(self, fields: Mapping[str, Any]) -> None:
        self._run, self._began_at, self._began_position = fields, monotonic(), self.position
        if self._exchange is not None:
            self._exchange.begin(int(fields["number"]))
        self._worker.supervisor.send("running", at=self._began_at, position=self.position)

    def _stop(self) -> None:
        """Report the position, once all living servers have handled what was sent to them.

        Of trainers in step each sends its last batch to all: who shared in that may be dead.
        """
        self._wait_for_acks()
        if self._exchange is not None and self._last is not None:
            self._send(self._last, self._servers)
            self._wait_for_acks()
        if self._run is not None:
            self._account["worked_s"] += min(monotonic(), self._due_at(self.position)) - (
                self._began_at
            )
        ask, self._halt, self._counts, self._run = self._halt, None, None, None
        self._answers.clear()
        self._worker.supervisor.send("halted", re=ask, position=self.position)

    def _wait_for_acks(self) -> None:
        while self._is_owed_acks:
            self._loop.turn(inf)

    def _is_taken(self) -> bool:
        """Wait until servers have the last batch, or a save could miss it; False: halted before."""
        while self._is_owed_acks and self._halt is None:
            self._loop.turn(inf)
        return self._halt is None

    @property
    def _is_owed_acks(self) -> bool:
        return any(not self._servers[number].closed for number in self._unacknowledged)

    def _due_at(self, position: float) -> float:
        """Instant at which the schedule reaches a position."""
        done = (position - self._began_position) / self._material.n_samples
        return self._began_at + done * self._useful_s

    def _work(self, run: Mapping[str, Any]) -> None:
        """Train one batch in its slot, and report where the run passes a mark or its end."""
        until, mark = int(run["until"]), run["mark"]
        if self.position < until:
            before = self.position
            if not self._wait_for_slot() or not self._step():
                return
            self._keep_pace()
            if mark is not None and before < int(mark) <= self.position:
                self._report("passed")
        if self.position >= until and self._is_taken():
            self._run = None
            self._account["worked_s"] += monotonic() - self._began_at
            self._report("reached")

    def _report(self, kind: str) -> None:
        self._worker.supervisor.send(kind, at=monotonic(), position=self.position)

    def _wait_for_slot(self) -> bool:
        """To the middle of the batch's slot; False where it was halted before.

        Deaths fall anywhere in a slot: on average, what counts then is what is due.
        """
        middle = self.position + min(self._material.plan.batch, self._left_in_epoch) / 2
        self._wait_until(self._due_at(middle))
        return self._halt is None

    @property
    def _left_in_epoch(self) -> int:
        n = len(self._material.clicks)
        return n - self.position % n

    def _keep_pace(self) -> None:
        due_at = self._due_at(self.position)
        self._account["late_s"] = max(self._account["late_s"], monotonic() - due_at)
        self._wait_until(due_at)

    def _wait_until(self, instant: float) -> None:
        while monotonic() < instant and self._halt is None:
            self._loop.turn(instant)

    def _step(self) -> bool:
        """One batch; False where it was halted before the batch counted."""
        began, plan, clicks = monotonic(), self._material.plan, self._material.clicks
        first = self.position % len(clicks)
        batch = slice(first, min(first + plan.batch, len(clicks)))
        rate = self._schedule(plan.rate, self.position / self._material.n_samples)
        own = part_of(batch, self._part, self._material.n_trainers)
        rows = clicks.rows[batch]
        by_server = self._by_server(rows)
        alone = self._exchange is None
        gradients = self._learned(own, by_server if alone else self._by_server(clicks.rows[own]))
        if gradients is None:
            return False
        n, row_rate = batch.stop - batch.start, self.optimizer.row_rate(rate)
        self.optimizer.update_dense(gradients.d_dense, rate)
        self._last = TrainedBatch(
            by_server, gradients.d_fields[:, 1:].reshape(rows.size, -1), row_rate,
            self.position, self.position + n,
        )  # fmt: skip
        self.position += n
        self._account["samples"] += self._n_own
        self._push(self._last)
        self._step_s.append(monotonic() - began)
        return True

    def _learned(
        self, own: slice, by_server: Mapping[int, tuple[Array, Array]]
    ) -> Gradients | None:
        """The gradients of a batch, of which `own` is learned here; None where it was halted."""
        clicks = self._material.clicks
        rows, self._n_own = clicks.rows[own], own.stop - own.start
        table = self._pulled[: rows.size]
        if not self._pull(by_server, table):
            return None
        at = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
        loss, gradients = learned(self.model, clicks, own, at, self._workspace)
        if not np.isfinite(loss):
            self._worker.report_error(f"training diverged at sample {self.position}: rate too high")
        return gradients if self._exchange is None else self._exchanged(self._exchange, gradients)

    def _exchanged(self, exchange: PartsExchange, own: Gradients) -> Gradients | None:
        """The whole batch's, once all have all parts; None where a halt finds it before."""
        exchange.offer(self.position, Gradients(own.d_dense.copy(), own.d_fields.copy()))
        while not exchange.is_known and self._halt is None:
            self._loop.turn(inf)
        counts = exchange.is_known or self._is_settled(exchange.is_whole)
        return exchange.together() if counts else None

    def _is_settled(self, whole: bool) -> bool:
        """Wait until it is known whether a batch counts: others may have counted it."""
        told = None
        while self._counts is None:
            if self._halt != told:
                told = self._halt
                self._worker.supervisor.send(
                    "undecided", re=told, position=self.position, whole=whole
                )
            self._loop.turn(inf)
        return self._counts

    def _by_server(self, rows: Array) -> dict[int, tuple[Array, Array]]:
        """Which occurrences of a batch (k,) each server has, and at which places, in order."""
        flat = rows.ravel()
        owner = self._places.server[flat]
        order = np.argsort(owner, kind="stable")
        edges = np.searchsorted(owner[order], np.arange(len(self._servers) + 1))
        place = self._places.place[flat]
        of_server = (order[edges[k] : edges[k + 1]] for k in range(len(self._servers)))
        return {k: (some, place[some]) for k, some in enumerate(of_server)}

    def _pull(self, by_server: Mapping[int, tuple[Array, Array]], table: Array) -> bool:
        self._seq += 1
        self._answers = dict.fromkeys(by_server)
        for number, (_, at) in by_server.items():
            self._servers[number].send("pull", (at,), seq=self._seq, position=self.position)
        if not self._answered():
            self._answers.clear()
            return False
        for number, (some, _) in by_server.items():
            rows = self._answers[number]
            assert rows is not None
            table[some] = rows
        return True

    def _push(self, batch: TrainedBatch) -> None:
        n_trainers = self._material.n_trainers
        self._send(batch, [k for k in self._servers if k % n_trainers == self._part])

    def _send(self, batch: TrainedBatch, servers: Iterable[int]) -> None:
        """Send a batch to servers; one that has had it takes it no second time."""
        self._unacknowledged = set(servers)
        n_tables = self._material.shape.tables.n_tables
        for number in self._unacknowledged:
            some, at = batch.by_server[number]
            self._servers[number].send(
                "push", (at, some // n_tables, batch.gradients[some]),
                rate=batch.rate, n_before=batch.n_before, position=batch.position,
            )  # fmt: skip

    def _note(self, channel: Channel, message: Message) -> None:
        """An answer; rows for an earlier request are dropped.

        A server's ack comes before the rows of the next batch: at most one is owed.
        """
        if message.kind == "kept":
            self._on_kept[int(message.fields["save"])]()
            return
        (number,) = (k for k, other in self._servers.items() if other is channel)
        if message.kind == "ack":
            self._unacknowledged.discard(number)
        elif message.fields["seq"] == self._seq:
            self._answers[number] = message.arrays[0]

    def _answered(self) -> bool:
        """Wait until all servers have answered; False where it was halted before."""
        while any(rows is None for rows in self._answers.values()):
            if self._halt is not None:
                return False
            self._loop.turn(inf)
        return True

    def _workspace(self, n: int) -> Workspace:
        if n not in self._workspaces:
            self._workspaces[n] = Workspace(self.model, n)
        return self._workspaces[n]
