"""An embedding server: a shard in memory for trainers; saves and loads go through a throttle.

trainer      pull (places) -> rows;  push (places, samples, gradients);  give -> a copy
supervisor   save -> bytes;  commit, abandon;  load;  sharing;  where -> position;  dump
             behind the job: capture;  write -> bytes
             after it: stop;  lend (to a replacement);  recall
peers        copy (a piece)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from cprsim.kernel.loops import Array
from cprsim.records import SmallTables, SubSaves
from cprsim.rehearsal.copies import HeldCopies, copying
from cprsim.rehearsal.material import image_bytes
from cprsim.rehearsal.shard import Shard, initial_rows
from cprsim.rehearsal.store import Arrays, SaveFiles, reading, written
from cprsim.rehearsal.wire import Message, answer, throttled
from cprsim.rehearsal.worker import Worker

LOAD = 0  # the number of a transfer that is no save


class Server:
    """The work of an embedding server."""

    def __init__(
        self,
        worker: Worker,
        *,
        slot: int,
        store: str,
        position: int,
        sub_saves: Mapping[str, Any] | None,
        save_rate: float,
        load_rates: tuple[float, float],
        **_: Any,
    ) -> None:
        material = worker.inherited.material
        rows = initial_rows(material, worker.inherited.table, slot)
        self.shard = Shard(material, slot, rows, sub_saves_of(sub_saves))
        self.position = position
        self._who, self._store = str(slot), SaveFiles(Path(store))
        self._image_bytes = image_bytes(material)
        self._save_rate, (self._load_together, self._load_alone) = save_rate, load_rates
        self._n_loading = 1  # servers that share the bandwidth now
        self._transfers: dict[asyncio.Task[Message], int] = {}  # and their saves
        self._captured: dict[int, Arrays] = {}  # content of saves behind the job
        self._early: list[tuple[asyncio.Future[Message], Array, int]] = []
        self._copies = HeldCopies()

    def _begin(
        self, save: int, move: Callable[[], Awaitable[None]], done: Callable[[], Message]
    ) -> Awaitable[Message]:
        """Move bytes beside what else is under way, then answer."""

        async def transfer() -> Message:
            await move()
            return done()

        task = asyncio.create_task(transfer())
        self._transfers[task] = save
        task.add_done_callback(self._transfers.pop)
        return task

    def do_stop(self, save: int | None = None) -> None:
        """Abandon the transfers of one save, or all that are under way."""
        for task, of in self._transfers.items():
            if save in (None, of):
                task.cancel()

    # ----------------------------------------------------------------- trainers

    def do_pull(self, places: Array, position: int) -> Message | Awaitable[Message]:
        """Rows; who is a batch ahead of what came from another trainer has to wait."""
        if position <= self.position:
            return answer(self.shard.pull(places))
        early: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._early.append((early, places, position))
        return early

    def do_push(
        self,
        places: Array,
        samples: Array,
        gradients: Array,
        rate: float,
        n_before: int,
        position: int,
    ) -> None:
        """Take a batch, once: trainers in step send one again where the other may have died."""
        if position <= self.position:
            return
        self.shard.push(places, samples, gradients, rate, n_before)
        self.position = position
        early, self._early = self._early, []
        for future, at, since in early:
            if since > position:
                self._early.append((future, at, since))
            else:
                future.set_result(answer(self.shard.pull(at)))

    def do_copy(self, piece: Array, **what: Any) -> None:
        self._copies.put(piece, **what)

    def do_give(self, who: str, save: int) -> Message:
        return answer(self._copies.bytes_of(who, save))

    # ----------------------------------------------------------------- the supervisor

    def do_sharing(self, n: int) -> None:
        self._n_loading = n

    def do_where(self) -> Message:
        return answer(position=self.position)

    def do_dump(self) -> Message:
        return answer(self.shard.table, self.shard.row_state)

    def do_save(self, save: int, ends_interval: bool, n_before: int) -> Awaitable[Message]:
        """Fix the content now, write it at the rate of the throttle, then vote."""
        self.do_stop()
        content = self.shard.start_save(ends_interval, n_before)
        return self._written(save, content, self._save_rate)

    def _written(self, save: int, content: Arrays, rate: float) -> Awaitable[Message]:
        pieces = written(self._store.part(self._who, save), content)
        return self._begin(save, lambda: throttled(pieces, lambda: rate), lambda: vote(content))

    def do_load(self, position: int) -> Awaitable[Message]:
        """Go back to the last committed save."""
        image: Arrays = {}
        self.do_stop()
        self._store.install(self._who)
        pieces = reading(self._store.image(self._who), image)
        back = partial(self._go_back, image, position)
        return self._begin(LOAD, lambda: throttled(pieces, self._load_rate), back)

    def _load_rate(self) -> float:
        """An even share of what all have together, up to its own link."""
        return min(self._load_alone, self._load_together / self._n_loading)

    def _go_back(self, image: Arrays, position: int) -> Message:
        self.shard.restore(image)
        self.position = position
        return answer()

    def do_commit(self, save: int, to_peers: bool = False) -> None:
        if self._captured.pop(save, None) is None:
            self.shard.commit()
            self._store.install(self._who)
        elif to_peers:
            self._copies.commit(save)
        else:
            self._store.install(self._who, until=save)

    def do_abandon(self, save: int) -> None:
        self.do_stop(save)
        self._copies.drop(save)
        if self._captured.pop(save, None) is None:
            self.shard.abandon()
        self._store.install(self._who, until=save)

    # ----------------------------------------------------------------- behind the job

    def do_capture(self, save: int, seconds: float) -> Awaitable[Message]:
        """Copy the content in memory while the job stands still."""
        content = self._captured[save] = {}
        source = {"table": self.shard.table, "row_state": self.shard.row_state}
        pieces, rate = copying(source, content), self._rate(seconds)
        return self._begin(save, lambda: throttled(pieces, lambda: rate), answer)

    def _rate(self, seconds: float) -> float:
        """At which the bytes of the largest shard take so long."""
        return self._image_bytes / seconds if seconds > 0 else inf

    def do_write(self, save: int, seconds: float, peers: Sequence[str]) -> Awaitable[Message]:
        """Write what was captured, to the memory of peers or to a file, then vote."""
        content = self._captured[save]
        if not peers:
            return self._written(save, content, self._rate(seconds))
        self._copies.hold(self._who, save, content)
        rate = self._rate(seconds / len(peers))
        send = partial(self._copies.send, self._who, save, peers, lambda: rate)
        return self._begin(save, send, lambda: vote(content))

    def do_lend(self, who: str, save: int, peer: str, seconds: float) -> Awaitable[Message]:
        """Send a replacement the copy that is held here of its rows."""
        rate = self._rate(seconds)
        send = partial(self._copies.send, who, save, [peer], lambda: rate)
        return self._begin(save, send, answer)

    def do_recall(self, save: int, position: int, **_: Any) -> Message:
        """Go back to a copy that is held here."""
        self.do_stop()
        self._captured.clear()
        return self._go_back(self._copies.arrays(self._who, save), position)


def vote(content: Arrays) -> Message:
    """What was written: bytes of rows, of optimiser state and of layers."""
    return answer(bytes=sum(array.nbytes for name, array in content.items() if name != "rows"))


def sub_saves_of(plain: Mapping[str, Any] | None) -> SubSaves | None:
    """How priority saving cuts an interval, from plain fields; None: saves are whole."""
    if plain is None:
        return None
    return SubSaves(**{**plain, "small_tables": SmallTables(plain["small_tables"])})
