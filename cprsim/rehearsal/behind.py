"""Saves that go on behind the job: which are on their way, what counts, and what outlives a death.

A save is captured while the job stands still, then written to files or copied to peers while it
goes on. It counts once all have written and all still answer. Copies in memory go with their
holders: what is left decides where the job goes back to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cprsim.rehearsal.log import FactKind
from cprsim.rehearsal.nodes import JobProcess
from cprsim.rehearsal.orders import DueSave, Orders
from cprsim.rehearsal.store import SaveFiles
from cprsim.rehearsal.trainer import DENSE
from cprsim.rehearsal.wire import Message, cancelled, patient


@dataclass(frozen=True, slots=True)
class SavedContent:
    """What the job can go back to."""

    number: int  # of the save; 0 is the start
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class _InFlight:
    task: asyncio.Task[None]
    kind: int
    position: int


class SavesBehind:
    """The saves behind one job; `note` notes a fact of the run."""

    def __init__(
        self,
        orders: Orders,
        store: SaveFiles,
        nodes: Mapping[int, JobProcess],
        note: Callable[..., None],
    ) -> None:
        self._orders, self._store, self._nodes, self._note = orders, store, nodes, note
        self._in_flight: dict[int, _InFlight] = {}
        self._capturing: tuple[int, int, int] | None = None  # number, kind, position
        self._wiped: set[int] = set()  # servers whose memory went since the last copies ...
        self._lacking: set[int] = set()  # ... of these, who have not got their own rows again
        self.bytes_saved = 0
        self.in_files = SavedContent(0, 0)
        self.in_memory: SavedContent | None = None
        self._due_again: dict[int, int] = {}  # kinds of saves that a failure cut off, and where

    @property
    def _slots(self) -> range:
        return range(self._orders.n_slots)

    @property
    def _servers(self) -> range:
        return range(self._orders.n_servers)

    # ----------------------------------------------------------------- a save

    async def save(self, due: DueSave, number: int, position: int) -> None:
        """Capture a save; the rest of it goes on as a task. It waits for room, or is left out."""
        how = self._orders.behind[due.kind]
        if self._n_in_flight(due.kind) >= how.in_flight and how.skips:
            return
        while self._n_in_flight(due.kind) >= how.in_flight:
            await self._one_over([one for one in self._in_flight.values() if one.kind == due.kind])
        self._note(FactKind.SAVE_STARTED, number=number)
        self._capturing = number, due.kind, position
        await self._heard(self._slots, "capture", save=number, seconds=how.stall_s)
        self._capturing = None
        self._note(FactKind.SAVE_RESUMED, number=number)
        task = asyncio.create_task(self._write(due.kind, number, position))
        self._in_flight[number] = _InFlight(task, due.kind, position)

    async def _heard(self, slots: Iterable[int], kind: str, **fields: Any) -> list[Message]:
        """The answers of all these; who has died gives none, and that is noticed meanwhile."""
        asks = [self._nodes[slot].ask(kind, **fields) for slot in slots]
        return await patient(asyncio.gather(*asks))

    def _n_in_flight(self, kind: int) -> int:
        return sum(one.kind == kind for one in self._in_flight.values())

    async def _one_over(self, some: list[_InFlight]) -> None:
        """Let the job wait until one of some saves is over."""
        self._note(FactKind.SAVE_AWAITED)
        tasks = [one.task for one in some]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def _write(self, kind: int, number: int, position: int) -> None:
        """Write what was captured; it counts if all have, and all still answer."""
        how = self._orders.behind[kind]
        asks = (
            self._nodes[slot].ask(
                "write", save=number, seconds=how.behind_s,
                peers=self._peers_of(slot) if how.to_peers else [],
            )
            for slot in self._servers
        )  # fmt: skip
        votes = await patient(asyncio.gather(*asks))
        trainers = self._slots[self._orders.n_servers :]
        votes += await self._heard(trainers, "write", save=number, to_peers=how.to_peers)
        heard = await self._heard(self._slots, "where")
        if any("failed" in vote.fields for vote in votes):
            self._abandon(number)
        else:
            n_bytes = sum(vote.fields["bytes"] for vote in votes)
            at = max(heard[slot].fields["position"] for slot in trainers)
            self._commit(kind, number, position, n_bytes, at)

    def _peers_of(self, server: int) -> list[str]:
        return [self._nodes[other].address for other in self._orders.holders[server]]

    def _commit(self, kind: int, number: int, position: int, n_bytes: int, at: int) -> None:
        """The save counts; the job has come to `at` meanwhile."""
        to_peers, content = self._orders.behind[kind].to_peers, SavedContent(number, position)
        if to_peers:
            self.in_memory, self._wiped, self._lacking = content, set(), set()
        else:
            self._store.commit(number)
            self._store.install(DENSE, until=number)
            self.in_files = content
        self._note(FactKind.SAVE_COMMITTED, number=number, position=at)
        self.bytes_saved += n_bytes
        del self._in_flight[number]
        for slot in self._slots:
            self._nodes[slot].send("commit", save=number, to_peers=to_peers)

    def _abandon(self, number: int) -> None:
        self._note(FactKind.SAVE_ABANDONED, number=number)
        self._in_flight.pop(number, None)
        for slot in self._slots:
            self._nodes[slot].send("abandon", save=number)
        self._store.install(DENSE, until=number)

    async def until_whole(self, position: int) -> None:
        """Wait at the end for saves of this content; others come to nothing."""
        while some := [one for one in self._in_flight.values() if one.position >= position]:
            await self._one_over(some)

    # ----------------------------------------------------------------- a death

    def lose(self, slot: int) -> SavedContent:
        """A process is dead, and its memory with it; what the job goes back to."""
        if slot in self._servers:
            self._wiped.add(slot)
            self._lacking.add(slot)
        if self.in_memory is not None and not self._memory_survives():
            self.in_memory = None
        return self.newest

    def _memory_survives(self) -> bool:
        return all(
            not {server, *others} <= self._wiped
            for server, others in enumerate(self._orders.holders)
        )

    @property
    def newest(self) -> SavedContent:
        """The newest content that survives."""
        in_memory = self.in_memory
        if in_memory is not None and in_memory.position >= self.in_files.position:
            return in_memory
        return self.in_files

    async def cut_off(self) -> None:
        """A failure: all saves that are on their way come to nothing; some are due again."""
        under_way = [(n, one.kind, one.position) for n, one in self._in_flight.items()]
        under_way += [] if self._capturing is None else [self._capturing]
        await cancelled([one.task for one in self._in_flight.values()])
        self._capturing = None
        for number, kind, position in under_way:
            self._abandon(number)
            if position <= self.newest.position:
                self._due_again[kind] = self.newest.position

    def due_again(self, position: int) -> DueSave | None:
        """A save that a failure cut off and that is due here; each is told once."""
        while self._due_again:
            kind, at = self._due_again.popitem()
            if at <= position:
                return DueSave(position, 0, kind=kind)
        return None

    async def recall(self, content: SavedContent) -> None:
        """All go back to a content in memory; servers that were replaced get their rows first."""
        for server in self._servers:
            self._nodes[server].send("stop")
        lends = []
        for server in self._lacking:
            holder = next(o for o in self._orders.holders[server] if o not in self._wiped)
            ask = self._nodes[holder].ask(
                "lend", who=str(server), save=content.number, peer=self._nodes[server].address,
                seconds=self._orders.fetch_s,
            )  # fmt: skip
            lends.append(ask)
        await patient(asyncio.gather(*lends))
        self._lacking.clear()
        whole = next(server for server in self._servers if server not in self._wiped)
        peer = self._nodes[whole].address
        await self._heard(
            self._slots, "recall", save=content.number, position=content.position, peer=peer
        )
