"""One run: a job of real processes that trains, saves, is struck, notices, and recovers.

The supervisor learns of a failure only by missing heartbeats. It notes events with their instants
(`RunFact`); `rehearsal.log` makes an event log of them.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from cprsim.errors import WorkerError
from cprsim.files import naming
from cprsim.rehearsal.in_step import counts
from cprsim.rehearsal.log import FactKind, RunFact
from cprsim.rehearsal.material import Material, fresh_model, image_bytes
from cprsim.rehearsal.nodes import ForkServer, JobProcess, ProcessGroup, SpareNodes
from cprsim.rehearsal.orders import DueSave, Kill, Orders
from cprsim.rehearsal.saves import JobSaves
from cprsim.rehearsal.server import Server, Shard
from cprsim.rehearsal.store import SaveFiles, write
from cprsim.rehearsal.trainer import DENSE, TrainerProcess
from cprsim.rehearsal.wire import answers, cancelled, first_of, forever, patient
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.optimizers import OPTIMIZERS

LOOK_S = 0.005  # between two checks of heartbeats, at least


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
    """Results of a run."""

    orders: Orders
    facts: tuple[RunFact, ...]
    states: tuple[tuple[Array, ...], ...]  # by slot: weights, and what the optimiser keeps
    step_s: float  # of a batch, unpaced
    n_false_alarms: int
    activation_s: tuple[float, ...]  # of each spare that was made a server or a trainer
    bytes_saved: int  # by saves that were committed


class Supervisor:
    """Runs one job to its end; its saves lie in the folder `store`."""

    def __init__(
        self, placement: ForkServer, material: Material, orders: Orders, store: Path
    ) -> None:
        self._material, self._orders = material, orders
        self._folder, self._store = store, SaveFiles(store)
        self._servers = range(orders.n_servers)
        self._trainers = range(orders.n_servers, orders.n_slots)
        self._end = material.n_samples if orders.until is None else orders.until
        self._group = ProcessGroup(placement, f"g{store.name[-8:]}")
        self._node: dict[int, JobProcess] = {}
        size = image_bytes(material)
        self._saves = JobSaves(orders, self._store, size, self._node, self._note)
        self._spares = SpareNodes(  # a repaired one is a process anew
            inf if orders.repair_s is None else orders.n_warm,
            lambda: self._group.fork(1),
            lambda slot, at: self._note(FactKind.GRANTED, slot, at),
        )
        self._facts: list[RunFact] = []
        self._activation_s: list[float] = []
        self._n_false_alarms = 0
        self._began_at = 0.0
        self._position = self._frontier = 0
        self._n_due = 0  # of the orders' saves: the next to be taken
        self._n_runs = 0  # of the trainers, from one save or failure to the next
        self._struck: set[int] = set()  # killed as ordered, not detected yet
        self._struck_with: dict[int, list[int]] = {}  # who was at one instant, by slot
        self._down: dict[int, float] = {}  # slots, and when they were detected
        self._newly: set[int] = set()  # of these: no recovery has begun
        self._noticed = asyncio.Event()  # that there are such
        self._loading: set[int] = set()  # servers
        self._have_layers: set[int] = set()  # trainers that hold them at the position
        self._takes_all_back = -1  # the trainer with whose recovery all servers go back

    # ----------------------------------------------------------------- the run as a whole

    def run(self) -> FinishedRun:
        """Run the job. Raises WorkerError where it can't continue; no process is left either way.

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
        self._fatal: asyncio.Future[Any] = loop.create_future()
        loop.set_exception_handler(
            lambda _, context: self._fail(
                context.get("exception") or WorkerError(context["message"])
            )
        )
        limit_s = min(self._orders.limit_s, 1e8)
        try:
            async with asyncio.timeout(limit_s):
                ran: FinishedRun = await first_of(self._fatal, self._from_start_to_end())
                return ran
        except TimeoutError:
            raise WorkerError(f"the run took longer than {limit_s:.0f} s") from None
        finally:
            await self._group.close()

    def _fail(self, error: BaseException) -> None:
        """End the run with an error."""
        if not self._fatal.done():
            self._fatal.set_exception(error)

    async def _from_start_to_end(self) -> FinishedRun:
        try:
            await self._set_up()
        except ConnectionError:
            raise WorkerError(
                "one of its processes ended before the run began: do it again"
            ) from None
        self._began_at = monotonic()
        await first_of(self._until_done(), asyncio.gather(self._strike(), self._watch()))
        try:
            return await self._ran()
        except ConnectionError:
            raise WorkerError("one of its processes ended before it gave its state") from None

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
        await self._register()
        self._have_layers = set(self._trainers)

    def _write_first_images(self) -> None:
        start = fresh_model(self._material)
        for number in self._servers:
            shard = Shard(self._material, number, start.table, None)
            write(self._store.image(str(number)), shard.state())
        dense_state = OPTIMIZERS[self._material.plan.optimizer](start).dense_state
        write(self._store.image(DENSE), {"dense": start.dense, "dense_state": dense_state})

    def _note(
        self,
        what: FactKind,
        slot: int = -1,
        at: float | None = None,
        *,
        position: int | None = None,
        **more: Any,
    ) -> None:
        at_s = (monotonic() if at is None else at) - self._began_at
        position = self._position if position is None else position
        self._facts.append(RunFact(at_s, what, slot, position, **more))

    # ----------------------------------------------------------------- processes

    async def _reserve(self, slot: int) -> None:
        """Reserve a spare for a slot; its heartbeats begin."""
        node = self._node[slot] = await self._group.take()
        node.beat_at = monotonic()
        node.send("reserve", self._orders.speeds.heartbeat_s)
        if self._began_at and self._orders.repair_s is None:
            self._group.fork(1)

    async def _assign(self, slot: int) -> None:
        """Assign its role to the process of a slot, unless it has it already."""
        node, began = self._node[slot], monotonic()
        if node.assigned:
            return
        role = Server if slot in self._servers else TrainerProcess
        await node.ask(
            "assign", role, slot=slot, store=self._folder, position=self._position,
            orders=self._orders,
        )  # fmt: skip
        node.assigned = True
        self._activation_s.append(monotonic() - began)

    def _nodes(self, slots: Iterable[int]) -> list[JobProcess]:
        return [self._node[slot] for slot in slots]

    async def _register(self) -> None:
        """Tell trainers where to find the servers and each other."""
        trainers = self._nodes(self._trainers)
        servers = [node.address for node in self._nodes(self._servers)]
        trainer_addresses = [node.address for node in trainers]
        await asyncio.gather(
            *(node.ask("registry", servers, trainer_addresses) for node in trainers)
        )

    def _hear(
        self, node: JobProcess, kind: str, content: Any, at: float = 0.0, position: int = 0
    ) -> None:
        """Handle a message that is no answer: an error, or a fact that a trainer notes."""
        if kind == "error":
            self._fail(WorkerError(content.strip()))
        elif node is self._node.get(self._trainers[0]):
            self._position = position
            self._note(content, at=at)

    # ----------------------------------------------------------------- failures

    async def _strike(self) -> None:
        """Kill processes as ordered."""
        for kill in sorted(self._orders.kills, key=lambda kill: kill.at_s):
            await asyncio.sleep(self._began_at + kill.at_s - monotonic())
            self._strike_slots(kill)

    def _strike_slots(self, kill: Kill) -> None:
        """Strike, then note the instant: later reports by others are of work begun before it."""
        nodes = {s: self._node[s] for s in kill.slots if s not in self._struck}
        alive = [s for s, node in nodes.items() if not (node.is_dead or node.given_up)]
        for slot in alive:
            self._node[slot].signal(signal.SIGSTOP if kill.stops else signal.SIGKILL)
        at = monotonic()
        for slot in kill.slots:
            self._note(FactKind.STRUCK if slot in alive else FactKind.MISSED, slot, at)
            if slot in alive:
                self._spares.lose(slot, at + (self._orders.repair_s or 0.0))
        self._struck.update(alive)
        self._struck_with |= dict.fromkeys(alive, alive)

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
        if slot not in self._struck:
            self._n_false_alarms += not was_dead
            self._struck_with[slot] = [slot]  # not those of an earlier strike: it waits for none
            self._spares.lose(slot, at)  # the node is sound
            self._note(FactKind.STRUCK, slot, node.beat_at if was_dead else at)
        self._struck.discard(slot)
        back_to = self._saves.lose(slot).position
        self._down[slot] = at
        self._newly.add(slot)
        self._have_layers.discard(slot)
        layers_lost = slot in self._trainers and not self._have_layers
        if layers_lost:  # with the last that had them, all goes back
            self._takes_all_back = slot
            self._newly |= self._down.keys() & set(self._trainers)
        self._note(FactKind.DETECTED, slot, at, position=back_to, layers_lost=layers_lost)
        struck_together = self._struck_with.get(slot, [slot])
        # who died at one instant asks once all are noticed
        if self._struck.isdisjoint(struck_together):
            for other_slot in sorted(struck_together):
                self._spares.ask(other_slot, at)
        self._noticed.set()

    # ----------------------------------------------------------------- work and saves

    async def _until_done(self) -> None:
        while True:
            while self._newly:
                await self._recover()
            if await self._unless_noticed(self._work()):
                return

    async def _unless_noticed(self, work: Coroutine[Any, Any, None]) -> bool:
        """Await work, which a noticed failure cancels; returns whether it was done."""
        await first_of(work, self._noticed.wait())
        return not self._newly

    def _beginning(self) -> list[int]:
        """Slots with a detected death whose recovery begins now."""
        newly = sorted(self._newly)
        self._newly.clear()
        self._noticed.clear()
        return newly

    async def _work(self) -> None:
        """Train and save until all is done."""
        due = self._orders.due
        while True:
            if (again := self._saves.due_again(self._position)) is not None:
                await self._save(again)
            elif self._n_due < len(due) and due[self._n_due].position <= self._position:
                await self._save(due[self._n_due])
            elif self._position >= self._end:
                await self._saves.until_whole(self._end)
                await self._finish()
                return
            else:
                await self._train()

    async def _train(self) -> None:
        """Train up to the next save, or to the end."""
        due = self._orders.due
        until = due[self._n_due].position if self._n_due < len(due) else self._end
        mark = self._frontier if self._position < self._frontier else None
        self._n_runs += 1
        reached = await answers(self._nodes(self._trainers), "run", until, mark, self._n_runs)
        self._position = reached[0][0]
        self._frontier = max(self._frontier, self._position)
        self._note(FactKind.STOOD, at=max(at for _, at in reached))

    async def _save(self, due: DueSave) -> None:
        position = self._position
        await self._saves.save(due, position)
        last = position, due.kind
        self._n_due = sum((save.position, save.kind) <= last for save in self._orders.due)

    async def _finish(self) -> None:
        """End the job once all servers have answered; a dead one is detected instead."""
        await self._saves.cut_off()
        at = monotonic()
        await answers(self._nodes(self._servers), "where")
        if self._struck:
            await forever()  # until that is noticed
        self._note(FactKind.FINISHED, at=at)

    # ----------------------------------------------------------------- recovery

    async def _recover(self) -> None:
        await self._saves.cut_off()
        if self._orders.rolls_back:
            while self._beginning():
                await self._unless_noticed(self._all_back())
        else:
            await self._struck_back()
        if not self._newly:
            self._down.clear()
            self._takes_all_back = -1
            await self._unless_noticed(patient(self._register()))

    async def _all_back(self) -> None:
        """Full recovery: replace all slots that are down, and load the last save on all slots."""
        await self._halt()
        await self._replace(sorted(self._down))
        self._position = self._saves.newest.position
        for slot in self._down:
            self._note(FactKind.LOADING, slot)
        if not await self._saves.recall():
            await self._load([*self._servers, *self._trainers])
        self._have_layers = set(self._trainers)
        self._n_due = sum(due.position <= self._position for due in self._orders.due)
        for slot in self._down:
            self._note(FactKind.BACK, slot)

    async def _struck_back(self) -> None:
        """Partial recovery: each failed process recovers by itself, in parallel."""
        halting = asyncio.create_task(self._halt())
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            while self._newly or not all(task.done() for task in tasks.values()):
                while again := self._newly & tasks.keys():
                    await cancelled([tasks.pop(slot) for slot in again])
                for slot in self._beginning():
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
        """Recover one slot; a trainer gets another's layers, or the whole job rolls back."""
        await self._replace([slot])
        await asyncio.shield(halting)
        self._note(FactKind.LOADING, slot)
        if slot == self._takes_all_back:
            servers = [s for s in self._servers if s not in tasks or tasks[s].done()]
            await self._load([slot, *servers])
        elif slot in self._trainers and self._have_layers:
            await self._adopt(slot)
        else:
            await self._load([slot])
        self._have_layers |= {slot} & set(self._trainers)
        self._note(FactKind.BACK, slot)

    async def _adopt(self, trainer: int) -> None:
        """Have a trainer copy the layers of one that kept them; again if that one dies meanwhile.

        If no trainer has the layers, all are about to roll back, which cancels this.
        """
        while self._have_layers:
            source = self._node[min(self._have_layers)]
            answer = self._node[trainer].ask("adopt", source.address, self._position)
            if await patient(answer):
                return
            await source.noticed.wait()
        await forever()

    async def _replace(self, slots: Sequence[int]) -> None:
        """Put spares into slots, which takes the configured time of the scheduler.

        Slots whose processes died at one instant are replaced at one instant.
        """
        given_at = await asyncio.gather(*map(self._staffed, slots))
        struck_together = {struck for slot in slots for struck in self._struck_with.get(slot, ())}
        given_at += [await self._spares.given(slot) for slot in sorted(struck_together)]
        last = max(*(self._down[slot] for slot in slots), *given_at)
        await asyncio.sleep(last + self._orders.speeds.reschedule_s - monotonic())
        await patient(asyncio.gather(*map(self._assign, slots)))

    async def _staffed(self, slot: int) -> float:
        """Wait for a slot's spare; returns since when it has one."""
        at = await self._spares.given(slot)
        if self._node[slot].given_up:
            await self._reserve(slot)
        return at

    async def _load(self, slots: Sequence[int]) -> None:
        """Have slots load the last save; servers that load together share the bandwidth."""
        self._share(self._loading | (set(slots) & set(self._servers)))
        try:
            await asyncio.gather(*(self._loaded(slot, slot == slots[0]) for slot in slots))
        finally:
            self._share(self._loading - set(slots))

    async def _loaded(self, slot: int, is_first: bool) -> None:
        """Wait until a slot has loaded; a server but the first may die and recover by itself."""
        node = self._node[slot]
        try:
            await node.ask("load", self._position)
        except ConnectionError:
            await (forever() if is_first or self._orders.rolls_back else node.noticed.wait())
        self._share(self._loading - {slot})

    def _share(self, loading: set[int]) -> None:
        """Tell the loading servers how many they are."""
        self._loading = loading
        for slot in loading:
            self._node[slot].send("sharing", len(loading))

    async def _halt(self) -> None:
        """Stop the trainers, and learn the position of the job.

        Where they are dead, the servers know the last batch that they had gradients of.
        """
        at = await self._halted(self._nodes(sorted(self._have_layers)))
        if not at:
            at = [self._position, *(node.position for node in self._nodes(self._trainers))]
            at += (await _of_the_living(self._nodes(self._servers), "where")).values()
        self._position = max(at)
        self._frontier = max(self._frontier, self._position)
        self._note(FactKind.STOOD)

    async def _halted(self, trainers: Sequence[JobProcess]) -> list[int]:
        """Positions of the living; a batch that one of them has counted counts for all."""
        stands = await _of_the_living(trainers, "halt")
        undecided = [who for who, (_, has_all) in stands.items() if has_all is not None]
        decided = [position for position, has_all in stands.values() if has_all is None]
        settled = undecided and await _of_the_living(
            undecided, "settle", counts([*stands.values()])
        )
        return [*decided, *(settled or {}).values()]

    # ----------------------------------------------------------------- what came of it

    async def _ran(self) -> FinishedRun:
        nodes = self._nodes(range(self._orders.n_slots))
        states = await asyncio.gather(*(node.ask("dump") for node in nodes))
        step_s = await nodes[-1].ask("timed")
        return FinishedRun(
            self._orders,
            tuple(sorted(self._facts, key=lambda fact: fact.at_s)),
            tuple(tuple(state.values()) for state in states),
            step_s,
            self._n_false_alarms,
            tuple(self._activation_s),
            self._saves.bytes_saved,
        )


async def _of_the_living(
    nodes: Sequence[JobProcess], kind: str, *args: Any
) -> dict[JobProcess, Any]:
    """Answers of processes, without those that die before they have answered."""
    living = [node for node in nodes if node.assigned and not node.given_up]
    asks = (node.ask(kind, *args) for node in living)
    results = zip(living, await asyncio.gather(*asks, return_exceptions=True), strict=True)
    return {node: answer for node, answer in results if not isinstance(answer, ConnectionError)}
