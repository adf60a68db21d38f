"""The saves of a job: those in progress, those that count, and those that survive a death.

All capture a save while the job is stopped, then write it to files, or to the memory of peers; the
job waits, or continues meanwhile. It counts once all have written and all still answer. Copies in
memory are lost with their holders: the surviving saves decide where the job rolls back to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from cprsim.rehearsal.log import FactKind
from cprsim.rehearsal.nodes import JobProcess
from cprsim.rehearsal.orders import STALLING, DueSave, Orders, SaveBehind
from cprsim.rehearsal.store import SaveFiles
from cprsim.rehearsal.trainer import DENSE
from cprsim.rehearsal.wire import answers, cancelled, patient

START = DueSave(0, 0)


class JobSaves:
    """The saves of one job; `note` notes a fact of the run.

    A save that has begun has the number and the position of its content.
    """

    def __init__(
        self,
        orders: Orders,
        store: SaveFiles,
        image_bytes: float,
        nodes: Mapping[int, JobProcess],
        note: Callable[..., None],
    ) -> None:
        self._orders, self._store, self._nodes, self._note = orders, store, nodes, note
        self._image_bytes = image_bytes
        self._slots, self._servers = range(orders.n_slots), range(orders.n_servers)
        # and what writes each; None while it is captured
        self._in_flight: dict[DueSave, asyncio.Task[None] | None] = {}
        self._n_started = self._n_committed = self.bytes_saved = 0
        self._wiped: set[int] = set()  # servers whose memory went since the last copies
        self._in_files = START
        self._in_memory: DueSave | None = None
        self._due_again: dict[int, int] = {}  # kinds of saves that a failure cut off, and where

    # ----------------------------------------------------------------- a save

    async def save(self, due: DueSave, position: int) -> None:
        """Take a save. A background save waits for room, or is skipped; a task writes it."""
        how = self._how(due)
        while len(in_flight := [s for s in self._in_flight if s.kind == due.kind]) >= how.in_flight:
            if how.skips:
                return
            await self._one_over(in_flight)
        self._n_started += 1
        number, ends_interval = self._n_started, due.ends_interval
        save = replace(due, number=number, position=position)
        self._in_flight[save] = None
        self._note(FactKind.SAVE_STARTED, number=number, ends_interval=ends_interval)
        interval = ends_interval, self._n_committed
        await self._all("capture", number, how.stall_s, lambda _: interval)
        writing = self._in_flight[save] = asyncio.create_task(self._write(save))
        if due.kind == STALLING:
            await writing
        else:
            self._note(FactKind.SAVE_RESUMED, number=number)

    def _how(self, due: DueSave) -> SaveBehind:
        if due.kind == STALLING:
            return SaveBehind(0.0, self._image_bytes / self._orders.speeds.save_rate)
        return self._orders.behind[due.kind]

    async def _all(
        self, kind: str, number: int, seconds: float, more: Callable[[int], tuple[Any, ...]]
    ) -> list[Any]:
        """Answers of all; the bytes of the largest shard take `seconds`, and layers no time."""
        rate = self._image_bytes / seconds if seconds > 0 else inf
        rates = [rate if slot in self._servers else inf for slot in self._slots]
        asks = (self._nodes[s].ask(kind, number, rates[s], *more(s)) for s in self._slots)
        return await patient(asyncio.gather(*asks))

    async def _one_over(self, some: list[DueSave]) -> None:
        """Let the job wait until one of some saves has ended."""
        self._note(FactKind.SAVE_AWAITED)
        tasks = [task for save in some if (task := self._in_flight[save]) is not None]
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            task.result()

    async def _write(self, save: DueSave) -> None:
        """Write the captured content; the save counts if all have written, and all still answer."""
        number, how = save.number, self._how(save)

        def peers(slot: int) -> tuple[list[str]]:
            holders = self._holders_of(slot) if how.to_peers else ()
            return ([self._nodes[holder].address for holder in holders],)

        votes = await self._all("write", number, how.behind_s, peers)
        heard = await answers((self._nodes[slot] for slot in self._slots), "where")
        if None in votes:
            self._abandon(save)
            return
        self._n_committed += 1
        self.bytes_saved += sum(votes)
        if how.to_peers:
            self._in_memory, self._wiped = save, set()
        else:
            self._in_files = save
            self._store.commit(number)
            self._store.install(DENSE)
        at = max(heard[self._orders.n_servers :])  # the job may have gone on meanwhile
        fields = {"number": number, "position": at, "ends_interval": save.ends_interval}
        self._note(FactKind.SAVE_COMMITTED, **fields)
        del self._in_flight[save]
        self._tell("commit", number, how.to_peers)

    def _holders_of(self, slot: int) -> Sequence[int]:
        """Servers that hold copies of a state; all of them for the layers."""
        return self._orders.holders[slot] if slot in self._servers else self._servers

    def _tell(self, kind: str, *arguments: Any) -> None:
        for slot in self._slots:
            self._nodes[slot].send(kind, *arguments)

    def _abandon(self, save: DueSave) -> None:
        self._note(FactKind.SAVE_ABANDONED, number=save.number)
        del self._in_flight[save]
        self._tell("abandon", save.number)

    async def until_whole(self, position: int) -> None:
        """Wait at the end for saves of this content, not for others."""
        while some := [save for save in self._in_flight if save.position >= position]:
            await self._one_over(some)

    # ----------------------------------------------------------------- a death

    def lose(self, slot: int) -> DueSave:
        """Record the death of a process and its memory; returns the state to roll back to."""
        self._wiped |= {slot} & set(self._servers)
        survives = all(
            not {server, *holders} <= self._wiped
            for server, holders in enumerate(self._orders.holders)
        )
        self._in_memory = self._in_memory if survives else None
        return self.newest

    @property
    def newest(self) -> DueSave:
        """The newest content that survives."""
        in_memory = self._in_memory
        if in_memory is not None and in_memory.position >= self._in_files.position:
            return in_memory
        return self._in_files

    async def cut_off(self) -> None:
        """Abandon all saves in progress after a failure; some become due again."""
        under_way = [*self._in_flight.items()]
        await cancelled([writing for _, writing in under_way if writing is not None])
        for save, _ in under_way:
            self._abandon(save)
            if save.kind != STALLING and save.position <= self.newest.position:
                self._due_again[save.kind] = self.newest.position

    def due_again(self, position: int) -> DueSave | None:
        """A save that a failure cut off and that is due here; each is returned once."""
        while self._due_again:
            kind, at = self._due_again.popitem()
            if at <= position:
                return DueSave(position, 0, kind=kind)
        return None

    async def recall(self) -> bool:
        """Restore the newest content on all if it is in memory; returns whether it is."""
        content = self.newest
        if content is not self._in_memory:
            return False

        def lender(slot: int) -> tuple[int, str]:
            holders = (holder for holder in self._holders_of(slot) if holder not in self._wiped)
            return content.position, self._nodes[next(holders, slot)].address

        await self._all("recall", content.number, self._orders.fetch_s, lender)
        return True
