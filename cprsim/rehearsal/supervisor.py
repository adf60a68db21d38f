"""One run: a job of real processes that trains, saves, is struck, notices, and recovers.

The supervisor knows a failure only by heartbeats that stay away. It notes what happens with its
instants (`RunFact`); `rehearsal.log` makes an event log of that.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from cprsim.errors import WorkerError
from cprsim.files import naming
from cprsim.kernel.loops import Array
from cprsim.kernel.model import Dlrm
from cprsim.kernel.optimizers import optimizer_for
from cprsim.rehearsal.behind import SavesBehind
from cprsim.rehearsal.in_step import counts
from cprsim.rehearsal.log import FactKind, RunFact
from cprsim.rehearsal.material import Material, rows_of
from cprsim.rehearsal.messages import Message
from cprsim.rehearsal.nodes import ForkServer, JobProcess, ProcessGroup
from cprsim.rehearsal.orders import STALLING, DueSave, Kill, Orders
from cprsim.rehearsal.server import first_image
from cprsim.rehearsal.shard import Shard, initial_rows
from cprsim.rehearsal.spares import SpareNodes
from cprsim.rehearsal.store import SaveFiles, write
from cprsim.rehearsal.trainer import DENSE

END_S = 30.0  # at most to collect the trained state
LOOK_S = 0.01  # between two checks whether a process that has to answer still lives


class RunError(WorkerError):
    """A run can't go on: a process of it failed otherwise than as ordered."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The trained state of a job."""

    table: Array  # (n_rows, d)
    row_state: Array  # (n_rows, ...), or (0,)
    dense: Array  # (n_dense,)
    dense_state: Array


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
    """What a run did and left."""

    orders: Orders
    facts: tuple[RunFact, ...]
    state: State
    accounts: tuple[tuple[str, dict[str, float]], ...]  # what each process counted itself, by role
    n_false_alarms: int
    activation_s: tuple[float, ...]  # of each spare that was made a server or a trainer
    bytes_saved: int  # by saves that were committed


@dataclass(slots=True)
class _Job:
    """State of the job."""

    position: int = 0
    frontier: int = 0
    n_due: int = 0  # of the orders' saves: the next to be taken
    n_saves: int = 0  # started
    n_committed: int = 0
    content: int = 0  # position that the last committed save of all holds
    bytes_saved: int = 0
    down: dict[int, float] = field(default_factory=dict)  # slots, and when they were detected
    newly: set[int] = field(default_factory=set)  # of these: no recovery has begun
    struck: set[int] = field(default_factory=set)  # killed as ordered, not detected yet
    have_layers: set[int] = field(default_factory=set)  # trainers that hold them at the position
    takes_all_back: int = -1  # the trainer with whose recovery all servers go back


class Supervisor:
    """Runs one job to its end, from the weights `start`; its saves lie in the folder `store`."""

    def __init__(
        self, placement: ForkServer, material: Material, orders: Orders, store: Path, start: Dlrm
    ) -> None:
        self._material, self._orders, self._start = material, orders, start
        self._folder = store
        self._store = SaveFiles(store)
        self._group = ProcessGroup(placement, f"g{store.name[-8:]}")
        self._node: dict[int, JobProcess] = {}
        self._job = _Job()
        self._behind = SavesBehind(orders, self._store, self._node, self._note)
        self._facts: list[RunFact] = []
        self._activation_s: list[float] = []
        self._accounts: list[tuple[str, dict[str, float]]] = []
        self._n_false_alarms = 0
        self._loading: set[int] = set()  # servers
        self._struck_with: dict[int, list[int]] = {}  # who was at one instant, by slot
        self._began_at = 0.0

    # ----------------------------------------------------------------- the run as a whole

    def run(self) -> FinishedRun:
        """Run the job. Raises RunError where it can't go on; no process is left either way.

        Ctrl-C ends all processes first, and is KeyboardInterrupt then.
        """
        before = signal.getsignal(signal.SIGINT)
        if callable(before):
            signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio cancels the run
        try:
            return asyncio.run(self._run())
        finally:
            signal.signal(signal.SIGINT, before)

    async def _run(self) -> FinishedRun:
        self._interrupt = asyncio.Event()
        self._reached: asyncio.Future[Message] | None = None
        self._on_the_way: set[int] = set()  # trainers
        self._n_runs = 0
        self._fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._spares = self._spare_nodes()
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._group.open()
            await self._set_up_watched()
            self._began_at = monotonic()
            job = asyncio.create_task(self._until_done())
            tasks = [job, *map(asyncio.create_task, (self._strike(), self._watch()))]
            await self._settled(job, tasks)
            return await asyncio.wait_for(self._ran(), END_S)
        finally:
            await _cancelled(tasks)
            await self._group.close()

    async def _settled(self, job: asyncio.Task[None], tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the job; an error in another task ends it."""
        left = {*tasks, self._fatal}
        deadline = monotonic() + min(self._orders.limit_s, 1e8)
        while not job.done():
            wait_s = deadline - monotonic()
            done, _ = await asyncio.wait(
                left, timeout=max(0.0, wait_s), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise RunError(f"the run took longer than {self._orders.limit_s:.0f} s")
            for one in done:
                one.result()
            left -= done
        job.result()
        await _cancelled(tasks)

    async def _set_up_watched(self) -> None:
        """Set the run up. Raises RunError where a process ends meanwhile: it would never answer."""
        setting_up = asyncio.create_task(self._set_up())
        try:
            while not setting_up.done():
                await asyncio.wait([setting_up], timeout=LOOK_S)
                if any(node.is_dead for node in self._node.values()):
                    raise RunError("one of its processes ended before the run began: do it again")
            setting_up.result()
        finally:
            await _cancelled([setting_up])

    async def _set_up(self) -> None:
        self._folder.mkdir()
        with naming(self._folder.parent):
            self._write_first_images()
        orders = self._orders
        self._group.fork(orders.n_slots + orders.n_warm)
        for slot in range(orders.n_slots):
            await self._reserve(slot)
        for slot in range(orders.n_slots):
            await self._assign(slot)
        await self._tell_addresses()
        self._job.have_layers = set(self._trainers)

    def _write_first_images(self) -> None:
        for number in range(self._orders.n_servers):
            rows = initial_rows(self._material, self._start.table, number)
            shard = Shard(self._material, number, rows, None)
            write(self._store.image(str(number)), first_image(shard))
        dense_state = optimizer_for(self._material.plan.optimizer, self._start).dense_state
        image = {"dense": self._start.dense, "dense_state": dense_state}
        write(self._store.image(DENSE), image)

    def _note(
        self,
        what: FactKind,
        slot: int = -1,
        at: float | None = None,
        *,
        position: int | None = None,
        number: int = -1,
        ends_interval: bool = True,
    ) -> None:
        at_s = (monotonic() if at is None else at) - self._began_at
        position = self._job.position if position is None else position
        self._facts.append(RunFact(at_s, what, slot, position, number, ends_interval))

    # ----------------------------------------------------------------- processes

    @property
    def _servers(self) -> range:
        return range(self._orders.n_servers)

    @property
    def _trainers(self) -> range:
        return range(self._orders.n_servers, self._orders.n_slots)

    @property
    def _end(self) -> int:
        """Position at which the run is over."""
        until = self._orders.until
        return self._material.n_samples if until is None else until

    async def _reserve(self, slot: int) -> None:
        """Reserve a spare for a slot; its heartbeats begin."""
        node = await self._group.take()
        node.slot, node.beat_at, node.on_message = slot, monotonic(), self._hear
        node.send("reserve", heartbeat=self._orders.speeds.heartbeat_s)
        self._node[slot] = node
        if self._began_at and self._orders.repair_s is None:
            self._group.fork(1)

    def _spare_nodes(self) -> SpareNodes:
        """The spares as they are counted; a repaired node is a process anew."""
        return SpareNodes(
            inf if self._orders.repair_s is None else self._orders.n_warm,
            lambda: self._group.fork(1),
            lambda slot, at: self._note(FactKind.GRANTED, slot, at),
        )

    async def _assign(self, slot: int) -> None:
        """Give the process of a slot its role; nothing where it has it already."""
        node, began = self._node[slot], monotonic()
        if node.assigned:
            return
        orders, speeds = self._orders, self._orders.speeds
        answer = await node.ask(
            "assign",
            role="server" if slot in self._servers else "trainer",
            number=slot, slot=slot, name=f"w{node.pid}",
            store=str(self._folder),
            save_rate=speeds.save_rate, load_rates=[speeds.load_together, speeds.load_alone],
            sub_saves=None if orders.sub_saves is None else asdict(orders.sub_saves),
            useful_s=orders.useful_s, position=self._job.position,
        )  # fmt: skip
        node.address, node.assigned = str(answer.fields["address"]), True
        self._activation_s.append(monotonic() - began)

    async def _tell_addresses(self) -> None:
        """Tell trainers where to find the servers and each other."""
        servers = {str(slot): self._node[slot].address for slot in self._servers}
        trainers = {
            str(number): self._node[slot].address for number, slot in enumerate(self._trainers)
        }
        asks = (
            self._node[slot].ask("registry", servers=servers, trainers=trainers)
            for slot in self._trainers
        )
        await asyncio.gather(*asks)

    def _hear(self, node: JobProcess, message: Message) -> None:
        """Handle a message that is no answer."""
        fields = message.fields
        if message.kind == "error":
            if not self._fatal.done():
                self._fatal.set_exception(RunError(str(fields["text"]).strip()))
        elif message.kind == "reached":
            self._reach(node, message)
        elif node is self._node.get(self._trainers[0]):
            what = FactKind.RUNNING if message.kind == "running" else FactKind.PASSED
            self._job.position = int(fields["position"])
            self._note(what, at=float(fields["at"]))

    def _reach(self, trainer: JobProcess, message: Message) -> None:
        """A trainer has come to where it was to; the last of all tells when."""
        self._on_the_way -= {slot for slot in self._trainers if self._node[slot] is trainer}
        if not self._on_the_way and self._reached is not None and not self._reached.done():
            self._reached.set_result(message)

    # ----------------------------------------------------------------- failures

    async def _strike(self) -> None:
        """Kill processes as ordered."""
        for kill in sorted(self._orders.kills, key=lambda one: one.at_s):
            await asyncio.sleep(self._began_at + kill.at_s - monotonic())
            self._strike_slots(kill)

    def _strike_slots(self, kill: Kill) -> None:
        """Strike, then note when: what others report from then on was begun before it."""
        nodes = {s: self._node[s] for s in kill.slots if s not in self._job.struck}
        there = [s for s, node in nodes.items() if not (node.is_dead or node.given_up)]
        for slot in there:
            self._node[slot].signal(signal.SIGSTOP if kill.stops else signal.SIGKILL)
        at = monotonic()
        for slot in kill.slots:
            self._note(FactKind.STRUCK if slot in there else FactKind.MISSED, slot, at)
            if slot in there:
                self._spares.lose(slot, at + (self._orders.repair_s or 0.0))
        self._job.struck.update(there)
        self._struck_with |= dict.fromkeys(there, there)

    async def _watch(self) -> None:
        """Declare processes dead whose heartbeats stayed away for the timeout."""
        timeout_s = self._orders.speeds.timeout_s
        while True:
            watched = {s: node for s, node in self._node.items() if not node.given_up}
            soonest = min((n.beat_at for n in watched.values()), default=monotonic()) + timeout_s
            await asyncio.sleep(max(soonest - monotonic(), LOOK_S / 2))
            for _ in range(2):  # what has come in is handled before any process is judged
                await asyncio.sleep(0)
            for slot, node in watched.items():
                if self._node[slot] is node and monotonic() - node.beat_at > timeout_s:
                    self._detect(slot, node)

    def _detect(self, slot: int, node: JobProcess) -> None:
        """Declare a process dead; it is killed where it still lives."""
        at, was_dead, node.given_up = monotonic(), node.is_dead, True
        node.signal(signal.SIGKILL)
        if slot not in self._job.struck:
            self._n_false_alarms += not was_dead
            self._struck_with[slot] = [slot]  # not those of an earlier strike: it waits for none
            self._spares.lose(slot, at)  # the node is sound
            self._note(FactKind.STRUCK, slot, node.beat_at if was_dead else at)
        self._job.struck.discard(slot)
        self._note(FactKind.DETECTED, slot, at)
        self._ask_for_spares(self._struck_with.get(slot, [slot]), at)
        if self._orders.behind:
            back_to = self._behind.lose(slot)
            self._note(FactKind.ROLLED_BACK, slot, at, position=back_to.position)
        self._accounts.append((self._role(slot), node.account))
        for trainer in self._trainers:
            if slot in self._servers and self._node[trainer].assigned:
                self._node[trainer].send("dead", server=slot)
        self._job.down[slot] = at
        self._job.newly.add(slot)
        if slot in self._trainers:
            self._lose_layers(slot, at)
        self._interrupt.set()

    def _ask_for_spares(self, together: Sequence[int], at: float) -> None:
        """Who died at one instant asks once all are noticed, in the order of slots."""
        if self._job.struck.isdisjoint(together):
            for slot in sorted(together):
                self._spares.ask(slot, at)

    def _lose_layers(self, trainer: int, at: float) -> None:
        """A trainer is dead; with the last that has the layers, all goes back."""
        job = self._job
        job.have_layers.discard(trainer)
        if not job.have_layers:
            self._note(FactKind.LAYERS_LOST, trainer, at)
            job.takes_all_back = trainer
            job.newly |= job.down.keys() & set(self._trainers)

    def _role(self, slot: int) -> str:
        return "server" if slot in self._servers else "trainer"

    # ----------------------------------------------------------------- work and saves

    async def _until_done(self) -> None:
        while True:
            if self._job.newly:
                await self._recover()
            work = asyncio.create_task(self._work())
            if await self._uninterrupted({work}):
                return

    async def _uninterrupted(self, tasks: set[asyncio.Task[None]]) -> bool:
        """Wait for one of the tasks; False, and all are cancelled, where a failure comes first."""
        noticed = asyncio.create_task(self._interrupted())
        try:
            await asyncio.wait({*tasks, noticed}, return_when=asyncio.FIRST_COMPLETED)
            if not self._job.newly:
                for task in tasks:
                    if task.done():
                        task.result()
                return True
            return False
        finally:
            await _cancelled([noticed])
            if self._job.newly:
                await _cancelled(tasks)

    async def _interrupted(self) -> None:
        await self._interrupt.wait()

    async def _work(self) -> None:
        """Train and save until all is done."""
        job, due = self._job, self._orders.due
        while True:
            if (again := self._behind.due_again(job.position)) is not None:
                await self._save(again)
            elif job.n_due < len(due) and due[job.n_due].position <= job.position:
                await self._save(due[job.n_due])
            elif job.position >= self._end:
                await self._behind.until_whole(self._end)
                await self._finish()
                return
            else:
                await self._train()

    async def _train(self) -> None:
        """Up to the next save, or to the end."""
        job, due = self._job, self._orders.due
        until = due[job.n_due].position if job.n_due < len(due) else self._end
        mark = job.frontier if job.position < job.frontier else None
        self._reached = asyncio.get_running_loop().create_future()
        self._on_the_way = set(self._trainers)
        self._n_runs += 1
        for slot in self._trainers:
            self._node[slot].send("run", until=until, mark=mark, number=self._n_runs)
        reached = await self._reached
        job.position = int(reached.fields["position"])
        job.frontier = max(job.frontier, job.position)
        self._note(FactKind.STOOD, at=float(reached.fields["at"]))

    async def _save(self, due: DueSave) -> None:
        job = self._job
        job.n_saves += 1
        number = job.n_saves
        if due.kind != STALLING:
            await self._behind.save(due, number, job.position)
            job.n_due = self._n_due_by(job.position, due)
            return
        self._note(FactKind.SAVE_STARTED, number=number, ends_interval=due.ends_interval)
        asks = [  # who has died does not vote, so it is abandoned
            self._node[slot].ask(
                "save", save=number, n_before=job.n_committed,
                ends_interval=due.ends_interval and slot <= self._trainers[0],
            )
            for slot in range(self._orders.n_slots)
        ]  # fmt: skip
        try:
            answers = await asyncio.gather(*asks)
        except asyncio.CancelledError:
            self._abandon(number)
            raise
        job.n_due += 1
        if any(answer.kind == "failed" for answer in answers):
            self._abandon(number)
            return
        job.n_committed += 1
        job.content = job.position
        job.bytes_saved += sum(int(answer.fields["bytes"]) for answer in answers)
        self._store.commit(number, {"position": job.position})
        self._note(FactKind.SAVE_COMMITTED, number=number, ends_interval=due.ends_interval)
        self._store.install(DENSE)
        for slot in self._servers:
            self._node[slot].send("commit", save=number)

    def _n_due_by(self, position: int, due: DueSave) -> int:
        """Of the orders' saves, how many are taken once this one is."""
        done = (position, due.kind)
        return sum((one.position, one.kind) <= done for one in self._orders.due)

    def _abandon(self, number: int) -> None:
        self._note(FactKind.SAVE_ABANDONED, number=number)
        for slot in self._servers:
            self._node[slot].send("abandon", save=number)
        self._store.install(DENSE)

    async def _finish(self) -> None:
        """End the job once all servers have answered; a dead one is detected instead."""
        await self._behind.cut_off()
        at = monotonic()
        await asyncio.gather(*(self._node[slot].ask("where") for slot in self._servers))
        if self._job.struck:
            await asyncio.Event().wait()  # until that is noticed
        self._note(FactKind.FINISHED, at=at)

    # ----------------------------------------------------------------- recovery

    async def _recover(self) -> None:
        await self._behind.cut_off()
        if self._orders.rolls_back:
            while self._job.newly:
                await self._uninterrupted({self._taken_on(self._all_back())})
        else:
            await self._struck_back()
        job = self._job
        if not job.newly:
            await self._resume()

    def _taken_on(self, recovery: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a recovery of all that is newly down."""
        self._job.newly.clear()
        self._interrupt.clear()
        return asyncio.create_task(recovery)

    async def _resume(self) -> None:
        """Let the trainer go on; a failure meanwhile is detected and recovered from later."""
        self._job.down.clear()
        self._job.takes_all_back = -1
        await self._uninterrupted({asyncio.create_task(self._tell_addresses())})

    async def _all_back(self) -> None:
        """Full recovery: all that are down are replaced, and all load the last save."""
        job = self._job
        await self._halt()
        await self._replace(sorted(job.down))
        back_to = self._behind.newest if self._orders.behind else None
        job.position = job.content if back_to is None else back_to.position
        for slot in job.down:
            self._note(FactKind.LOADING, slot)
        if back_to is not None and back_to is self._behind.in_memory:
            await self._behind.recall(back_to)
        else:
            await self._load([*self._servers, *self._trainers])
        job.have_layers = set(self._trainers)
        job.n_due = sum(due.position <= job.position for due in self._orders.due)
        for slot in job.down:
            self._note(FactKind.BACK, slot)

    async def _struck_back(self) -> None:
        """Partial recovery: each failed server by itself, one beside the other."""
        halting = asyncio.create_task(self._halt())
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            while self._job.newly or not all(task.done() for task in tasks.values()):
                while again := self._job.newly & tasks.keys():
                    await _cancelled([tasks.pop(slot) for slot in again])
                for slot in sorted(self._job.newly):
                    tasks[slot] = asyncio.create_task(self._one_back(slot, halting, tasks))
                self._job.newly.clear()
                self._interrupt.clear()
                noticed = asyncio.create_task(self._interrupted())
                under_way = {task for task in tasks.values() if not task.done()}
                await asyncio.wait({*under_way, noticed}, return_when=asyncio.FIRST_COMPLETED)
                await _cancelled([noticed])
                for task in tasks.values():
                    if task.done():
                        task.result()
        finally:
            await _cancelled([halting, *tasks.values()])

    async def _one_back(
        self, slot: int, halting: asyncio.Task[None], tasks: dict[int, asyncio.Task[None]]
    ) -> None:
        """One slot; a trainer has the layers of another, or all goes back with it."""
        job = self._job
        await self._replace([slot])
        await asyncio.shield(halting)
        self._note(FactKind.LOADING, slot)
        if slot == job.takes_all_back:
            servers = [s for s in self._servers if s not in tasks or tasks[s].done()]
            await self._load([slot, *servers])
        elif slot in self._trainers and job.have_layers:
            await self._adopt(slot)
        else:
            await self._load([slot])
        job.have_layers |= {slot} & set(self._trainers)
        self._note(FactKind.BACK, slot)

    async def _adopt(self, trainer: int) -> None:
        """A trainer takes over the layers of one that has kept them, and lives until that is so.

        Where there is none any more, all are about to go back: this is cut off then.
        """
        job, node, adopted = self._job, self._node[trainer], None
        while adopted is None:
            if job.have_layers:
                kept = self._node[min(job.have_layers)]
                adopted = await _answer_of(
                    node, "adopt", kept, peer=kept.address, position=job.position
                )
            if adopted is None:
                await asyncio.sleep(LOOK_S)

    async def _replace(self, slots: Sequence[int]) -> None:
        """Put spares into slots, which takes the configured time of the scheduler.

        Who died at one instant is replaced at one instant.
        """
        given_at = await asyncio.gather(*map(self._staffed, slots))
        others = {other for slot in slots for other in self._struck_with.get(slot, ())}
        given_at += [await self._spares.given(slot) for slot in sorted(others)]
        last = max(*(self._job.down[slot] for slot in slots), *given_at)
        await asyncio.sleep(last + self._orders.speeds.reschedule_s - monotonic())
        await asyncio.gather(*(self._assign(slot) for slot in slots))

    async def _staffed(self, slot: int) -> float:
        """A slot has a spare, and since when it was given to it."""
        at = await self._spares.given(slot)
        if self._node[slot].given_up:
            await self._reserve(slot)
        return at

    async def _load(self, slots: Sequence[int]) -> None:
        """Have slots load the last save; servers that do so at once share the bandwidth."""
        self._share(self._loading | (set(slots) & set(self._servers)))
        try:
            await asyncio.gather(*map(self._loaded, slots))
        finally:
            self._share(self._loading - set(slots))

    async def _loaded(self, slot: int) -> None:
        """One has loaded, or has died meanwhile and comes back by itself."""
        node = self._node[slot]
        loading = asyncio.create_task(node.ask("load", position=self._job.position))
        try:
            while not loading.done() and (self._orders.rolls_back or not node.given_up):
                await asyncio.wait({loading}, timeout=LOOK_S)
        finally:
            await _cancelled([loading])
        self._share(self._loading - {slot})

    def _share(self, loading: set[int]) -> None:
        """Tell servers that load how many they are."""
        self._loading = loading
        for slot in loading:
            self._node[slot].send("sharing", n=len(loading))

    async def _halt(self) -> None:
        """Stop the trainers, and learn the position of the job.

        Where they are dead, the servers know the last batch that they had gradients of.
        """
        job, trainers = self._job, [self._node[slot] for slot in self._trainers]
        halted = await self._halted([self._node[slot] for slot in sorted(job.have_layers)])
        if halted:
            job.position = max(int(one.fields["position"]) for one in halted)
        else:
            job.position = await self._last_known(trainers)
        job.frontier = max(job.frontier, job.position)
        self._note(FactKind.STOOD)

    async def _halted(self, trainers: Sequence[JobProcess]) -> list[Message]:
        """What those say who live; a batch that one of them has counted counts for all."""
        asks = (_answer_of(trainer, "halt") for trainer in trainers)
        answers = list(zip(trainers, await asyncio.gather(*asks), strict=True))
        said = [one for _, one in answers if one is not None]
        undecided = [who for who, one in answers if one is not None and one.kind == "undecided"]
        settled = (_answer_of(who, "settle", counts=counts(said)) for who in undecided)
        halted = [one for one in said if one.kind == "halted"]
        return halted + [one for one in await asyncio.gather(*settled) if one is not None]

    async def _last_known(self, trainers: Sequence[JobProcess]) -> int:
        """Position of a job whose trainers are dead; spares may have their slots by now."""
        accounts = (trainer.account for trainer in trainers)
        known = [self._job.position, *(int(one.get("position", 0)) for one in accounts)]
        for slot in self._servers:
            here = await _answer_of(self._node[slot], "where")
            known += [] if here is None else [int(here.fields["position"])]
        return max(known)

    # ----------------------------------------------------------------- what came of it

    async def _ran(self) -> FinishedRun:
        dumped = [await self._node[slot].ask("dump") for slot in range(self._orders.n_slots)]
        for slot, dump in enumerate(dumped):
            self._accounts.append((self._role(slot), dict(dump.fields["account"])))
        return FinishedRun(
            self._orders,
            tuple(sorted(self._facts, key=lambda fact: fact.at_s)),
            self._state(dumped),
            tuple(self._accounts),
            self._n_false_alarms,
            tuple(self._activation_s),
            self._job.bytes_saved + self._behind.bytes_saved,
        )

    def _state(self, dumped: Sequence[Message]) -> State:
        table = np.zeros_like(self._start.table)
        row_state = np.zeros_like(
            optimizer_for(self._material.plan.optimizer, self._start).row_state
        )
        for number in self._servers:
            rows = rows_of(self._material.shards, number)
            held, state = dumped[number].arrays
            table[rows] = held[: len(rows)]
            if len(state):
                row_state[rows] = state[: len(rows)]
        (dense, dense_state), *others = (dumped[slot].arrays for slot in self._trainers)
        if any(one.tobytes() != dense.tobytes() for one, _ in others):
            raise RunError("trainers in step ended with different layers")
        return State(table, row_state, dense, dense_state)


async def _answer_of(
    node: JobProcess, kind: str, *helpers: JobProcess, **fields: Any
) -> Message | None:
    """The answer of a process; None where it, or who helps it, dies before it has answered."""
    if node.given_up or not node.assigned:
        return None
    asking = asyncio.create_task(node.ask(kind, **fields))
    try:
        while not asking.done():
            if any(one.is_dead or one.given_up for one in (node, *helpers)):
                return None
            await asyncio.wait({asking}, timeout=LOOK_S)
        return asking.result()
    finally:
        await _cancelled([asking])


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel what is not done, and wait until it is."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
