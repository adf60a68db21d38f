"""One run: a job of real processes that trains, saves, is struck, notices, and recovers.

The supervisor knows a failure only by heartbeats that stay away. It notes what happens with its
instants (`RunFact`); `rehearsal.log` makes an event log of that.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from cprsim.errors import WorkerError
from cprsim.files import naming
from cprsim.kernel.loops import Array
from cprsim.kernel.optimizers import optimizer_for
from cprsim.rehearsal.behind import SavesBehind
from cprsim.rehearsal.in_step import counts
from cprsim.rehearsal.log import FactKind, RunFact
from cprsim.rehearsal.material import Material, fresh_model
from cprsim.rehearsal.nodes import ForkServer, JobProcess, ProcessGroup
from cprsim.rehearsal.orders import STALLING, DueSave, Kill, Orders
from cprsim.rehearsal.shard import Shard, initial_rows
from cprsim.rehearsal.spares import SpareNodes
from cprsim.rehearsal.store import SaveFiles, write
from cprsim.rehearsal.trainer import DENSE
from cprsim.rehearsal.wire import Message, cancelled, forever, patient

LOOK_S = 0.005  # between two checks of heartbeats, at least


class RunError(WorkerError):
    """A run can't go on: a process of it failed otherwise than as ordered."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
    """What a run did and left."""

    orders: Orders
    facts: tuple[RunFact, ...]
    states: tuple[tuple[Array, ...], ...]  # by slot: weights, and what the optimiser keeps
    step_s: float  # of a batch, unpaced
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
    """Runs one job to its end; its saves lie in the folder `store`."""

    def __init__(
        self, placement: ForkServer, material: Material, orders: Orders, store: Path
    ) -> None:
        self._material, self._orders = material, orders
        self._folder = store
        self._store = SaveFiles(store)
        self._group = ProcessGroup(placement, f"g{store.name[-8:]}")
        self._node: dict[int, JobProcess] = {}
        self._job = _Job()
        self._behind = SavesBehind(orders, self._store, self._node, self._note)
        self._facts: list[RunFact] = []
        self._activation_s: list[float] = []
        self._n_false_alarms = 0
        self._n_runs = 0  # of the trainers, from one save or failure to the next
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
        loop = asyncio.get_running_loop()
        self._noticed = asyncio.Event()
        self._fatal: asyncio.Future[None] = loop.create_future()
        loop.set_exception_handler(lambda _, context: self._fail(_error_in(context)))
        self._spares = self._spare_nodes()
        run = asyncio.create_task(self._from_start_to_end())
        try:
            limit_s = min(self._orders.limit_s, 1e8)
            ends: set[asyncio.Future[Any]] = {run, self._fatal}
            done, _ = await asyncio.wait(ends, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise RunError(f"the run took longer than {limit_s:.0f} s")
            for one in done:
                one.result()
            return run.result()
        finally:
            await cancelled([run])
            await self._group.close()

    def _fail(self, error: BaseException) -> None:
        """End the run with an error."""
        if not self._fatal.done():
            self._fatal.set_exception(error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def _from_start_to_end(self) -> FinishedRun:
        try:
            await self._set_up()
        except ConnectionError:
            raise RunError("one of its processes ended before the run began: do it again") from None
        self._began_at = monotonic()
        beside = [asyncio.create_task(self._strike()), asyncio.create_task(self._watch())]
        for task in beside:
            task.add_done_callback(self._ended)
        try:
            await self._until_done()
        finally:
            await cancelled(beside)
        try:
            return await self._ran()
        except ConnectionError:
            raise RunError("one of its processes ended before it gave its state") from None

    async def _set_up(self) -> None:
        await self._group.open(self._hear)
        self._folder.mkdir()
        with naming(self._folder.parent):
            self._write_first_images()
        orders = self._orders
        self._group.fork(orders.n_slots + orders.n_warm)
        for slot in range(orders.n_slots):
            await self._reserve(slot)
        for slot in range(orders.n_slots):
            await self._assign(slot)
        await asyncio.gather(*self._registered())
        self._job.have_layers = set(self._trainers)

    def _write_first_images(self) -> None:
        start = fresh_model(self._material)
        for number in self._servers:
            rows = initial_rows(self._material, start.table, number)
            shard = Shard(self._material, number, rows, None)
            image = {"table": shard.table, "row_state": shard.row_state}
            write(self._store.image(str(number)), image)
        dense_state = optimizer_for(self._material.plan.optimizer, start).dense_state
        write(self._store.image(DENSE), {"dense": start.dense, "dense_state": dense_state})

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
        node = self._node[slot] = await self._group.take()
        node.beat_at = monotonic()
        node.send("reserve", heartbeat_s=self._orders.speeds.heartbeat_s)
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
        await node.ask(
            "assign",
            role=self._role(slot), slot=slot, store=str(self._folder), position=self._job.position,
            useful_s=orders.useful_s,
            sub_saves=None if orders.sub_saves is None else asdict(orders.sub_saves),
            save_rate=speeds.save_rate, load_rates=[speeds.load_together, speeds.load_alone],
        )  # fmt: skip
        node.assigned = True
        self._activation_s.append(monotonic() - began)

    def _registered(self) -> list[asyncio.Future[Message]]:
        """Tell trainers where to find the servers and each other."""
        servers = {str(slot): self._node[slot].address for slot in self._servers}
        trainers = {
            str(number): self._node[slot].address for number, slot in enumerate(self._trainers)
        }
        return [
            self._node[slot].ask("registry", servers=servers, trainers=trainers)
            for slot in self._trainers
        ]

    async def _heard(self, slots: Iterable[int], kind: str, **fields: Any) -> list[Message]:
        """The answers of all these; who has died gives none, and that is noticed meanwhile."""
        asks = [self._node[slot].ask(kind, **fields) for slot in slots]
        return await patient(asyncio.gather(*asks))

    def _hear(self, node: JobProcess, message: Message) -> None:
        """Handle a message that is no answer."""
        fields = message.fields
        if message.kind == "error":
            self._fail(RunError(str(fields["text"]).strip()))
        elif node is self._node.get(self._trainers[0]):
            self._job.position = fields["position"]
            self._note(FactKind(fields["what"]), at=fields["at"])

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
            await asyncio.sleep(max(soonest - monotonic(), LOOK_S))
            for _ in range(2):  # what has come in is taken in before any process is judged
                await asyncio.sleep(0)
            for slot, node in watched.items():
                if self._node[slot] is node and monotonic() - node.beat_at > timeout_s:
                    self._detect(slot, node)

    def _detect(self, slot: int, node: JobProcess) -> None:
        """Declare a process dead; it is killed where it still lives."""
        at, was_dead = monotonic(), node.is_dead
        node.noticed.set()
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
        self._job.down[slot] = at
        self._job.newly.add(slot)
        if slot in self._trainers:
            self._lose_layers(slot, at)
        self._noticed.set()

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
            while self._job.newly:
                await self._recover()
            if await self._unless_noticed(self._work()):
                return

    async def _unless_noticed(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether something gets done; it is cancelled where a failure is noticed before."""
        task, noticed = asyncio.create_task(work), asyncio.create_task(self._noticed.wait())
        try:
            await asyncio.wait({task, noticed}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            return not self._job.newly
        finally:
            await cancelled([noticed, task])

    def _newly(self) -> list[int]:
        """Slots that are noticed dead and that no recovery has begun of; one is to begin now."""
        newly = sorted(self._job.newly)
        self._job.newly.clear()
        self._noticed.clear()
        return newly

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
        self._n_runs += 1
        reached = await self._heard(
            self._trainers, "run", until=until, mark=mark, number=self._n_runs
        )
        job.position = reached[0].fields["position"]
        job.frontier = max(job.frontier, job.position)
        self._note(FactKind.STOOD, at=max(one.fields["at"] for one in reached))

    async def _save(self, due: DueSave) -> None:
        job = self._job
        job.n_saves += 1
        number = job.n_saves
        if due.kind != STALLING:
            await self._behind.save(due, number, job.position)
            job.n_due = self._n_due_by(job.position, due)
            return
        self._note(FactKind.SAVE_STARTED, number=number, ends_interval=due.ends_interval)
        try:  # who has died does not vote, so it is abandoned
            answers = await self._heard(
                range(self._orders.n_slots), "save", save=number, n_before=job.n_committed,
                ends_interval=due.ends_interval,
            )  # fmt: skip
        except asyncio.CancelledError:
            self._abandon(number)
            raise
        job.n_due += 1
        if any("failed" in vote.fields for vote in answers):
            self._abandon(number)
            return
        job.n_committed += 1
        job.content = job.position
        job.bytes_saved += sum(vote.fields["bytes"] for vote in answers)
        self._store.commit(number)
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
        await self._heard(self._servers, "where")
        if self._job.struck:
            await forever()  # until that is noticed
        self._note(FactKind.FINISHED, at=at)

    # ----------------------------------------------------------------- recovery

    async def _recover(self) -> None:
        await self._behind.cut_off()
        job = self._job
        if self._orders.rolls_back:
            while self._newly():
                await self._unless_noticed(self._all_back())
        else:
            await self._struck_back()
        if not job.newly:
            job.down.clear()
            job.takes_all_back = -1
            await self._unless_noticed(self._told_addresses())

    async def _told_addresses(self) -> None:
        await patient(asyncio.gather(*self._registered()))

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
        """Partial recovery: each failed process by itself, one beside the other."""
        halting = asyncio.create_task(self._halt())
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            while self._job.newly or not all(task.done() for task in tasks.values()):
                while again := self._job.newly & tasks.keys():
                    await cancelled([tasks.pop(slot) for slot in again])
                for slot in self._newly():
                    tasks[slot] = asyncio.create_task(self._one_back(slot, halting, tasks))
                noticed = asyncio.create_task(self._noticed.wait())
                under_way = {task for task in tasks.values() if not task.done()}
                await asyncio.wait({*under_way, noticed}, return_when=asyncio.FIRST_COMPLETED)
                await cancelled([noticed])
                for task in tasks.values():
                    if task.done():
                        task.result()
        finally:
            await cancelled([halting, *tasks.values()])

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
        job = self._job
        while job.have_layers:
            kept = self._node[min(job.have_layers)]
            (one,) = await self._heard([trainer], "adopt", peer=kept.address, position=job.position)
            if one.fields["adopted"]:
                return
            await kept.noticed.wait()
        await forever()

    async def _replace(self, slots: Sequence[int]) -> None:
        """Put spares into slots, which takes the configured time of the scheduler.

        Who died at one instant is replaced at one instant.
        """
        given_at = await asyncio.gather(*map(self._staffed, slots))
        others = {other for slot in slots for other in self._struck_with.get(slot, ())}
        given_at += [await self._spares.given(slot) for slot in sorted(others)]
        last = max(*(self._job.down[slot] for slot in slots), *given_at)
        await asyncio.sleep(last + self._orders.speeds.reschedule_s - monotonic())
        await patient(asyncio.gather(*map(self._assign, slots)))

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
            await asyncio.gather(*(self._loaded(slot, slot == slots[0]) for slot in slots))
        finally:
            self._share(self._loading - set(slots))

    async def _loaded(self, slot: int, is_first: bool) -> None:
        """One has loaded; beside the first, a server may die and come back by itself."""
        node = self._node[slot]
        try:
            await node.ask("load", position=self._job.position)
        except ConnectionError:
            await (forever() if is_first or self._orders.rolls_back else node.noticed.wait())
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
            job.position = max(one.fields["position"] for one in halted)
        else:
            job.position = await self._last_known(trainers)
        job.frontier = max(job.frontier, job.position)
        self._note(FactKind.STOOD)

    async def _halted(self, trainers: Sequence[JobProcess]) -> list[Message]:
        """What those say who live; a batch that one of them has counted counts for all."""
        said = await asyncio.gather(*(_of_the_living(one, "halt") for one in trainers))
        count = counts(one.fields for one in said if one is not None) if any(said) else False
        undecided = [
            who
            for who, one in zip(trainers, said, strict=True)
            if one is not None and "whole" in one.fields
        ]
        asks = (_of_the_living(who, "settle", counts=count) for who in undecided)
        said = [*said, *await asyncio.gather(*asks)]
        return [one for one in said if one is not None and "whole" not in one.fields]

    async def _last_known(self, trainers: Sequence[JobProcess]) -> int:
        """Position of a job whose trainers are dead; spares may have their slots by now."""
        known = [self._job.position, *(one.position for one in trainers)]
        for slot in self._servers:
            here = await _of_the_living(self._node[slot], "where")
            known += [] if here is None else [here.fields["position"]]
        return max(known)

    # ----------------------------------------------------------------- what came of it

    async def _ran(self) -> FinishedRun:
        asks = (self._node[slot].ask("dump") for slot in range(self._orders.n_slots))
        dumped = await asyncio.gather(*asks)
        return FinishedRun(
            self._orders,
            tuple(sorted(self._facts, key=lambda fact: fact.at_s)),
            tuple(dump.arrays for dump in dumped),
            dumped[-1].fields["step_s"],
            self._n_false_alarms,
            tuple(self._activation_s),
            self._job.bytes_saved + self._behind.bytes_saved,
        )


async def _of_the_living(node: JobProcess, kind: str, **fields: Any) -> Message | None:
    """The answer of a process; None where it dies before it has answered."""
    if node.given_up or not node.assigned:
        return None
    try:
        return await node.ask(kind, **fields)
    except ConnectionError:
        return None


def _error_in(context: Mapping[str, Any]) -> BaseException:
    error: BaseException = context.get("exception") or RunError(context["message"])
    return error
