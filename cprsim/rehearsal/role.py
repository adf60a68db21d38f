"""Common part of servers and trainers: a state that is saved, loaded, and copied to peers.

supervisor   capture, then write -> bytes, then commit or abandon;  load;  stop;  where;  dump
             recall (a save in memory)
peers        copy (a state);  give -> a copy
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from math import inf
from pathlib import Path
from typing import Any

from cprsim.rehearsal.store import Arrays, SaveFiles, reading, written
from cprsim.rehearsal.wire import call, throttled

LOAD = 0  # the number of a transfer that is no save


class WorkerRole:
    """The work of a server or a trainer, apart from training."""

    def __init__(self, who: str, store: Path, position: int, state: Callable[[], Arrays]) -> None:
        self.position = position
        self._who, self._store, self._state = who, SaveFiles(store), state
        self._transfers: dict[asyncio.Task[Any], int] = {}  # and their saves
        self._captured: dict[int, Arrays] = {}  # what is to be written, by save
        self._copies: dict[tuple[str, int], Arrays] = {}  # by whose they are, and by save

    def _begin(self, save: int, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a transfer in parallel with others."""
        task = asyncio.create_task(work)
        self._transfers[task] = save
        task.add_done_callback(self._transfers.pop)
        return task

    def do_stop(self, save: int | None = None) -> None:
        """Abandon the transfers of one save, or all transfers in progress."""
        for task, of in self._transfers.items():
            if save in (None, of):
                task.cancel()

    def do_where(self) -> int:
        return self.position

    def do_dump(self) -> Arrays:
        return self._state()

    # ----------------------------------------------------------------- saves

    def _content(self, ends_interval: bool, n_before: int) -> Arrays:
        """A copy of the content of a save; `n_before` saves were committed before it."""
        raise NotImplementedError

    async def do_capture(self, save: int, rate: float, ends_interval: bool, n_before: int) -> None:
        """Fix the content of a save while the job is stopped."""
        content = self._captured[save] = self._content(ends_interval, n_before)
        await asyncio.sleep(size_of(content) / rate)

    def do_write(self, save: int, rate: float, peers: Sequence[str]) -> asyncio.Task[int]:
        """Write the captured content to peers' memory or to a file; returns the state's bytes."""
        return self._begin(save, self._write(save, self._captured.pop(save), rate, peers))

    async def _write(self, save: int, content: Arrays, rate: float, peers: Sequence[str]) -> int:
        if peers:
            self._copies[self._who, save] = content
            await asyncio.sleep(size_of(content) / rate)
            await asyncio.gather(*(call(peer, "copy", self._who, save, content) for peer in peers))
        elif content:
            await throttled(written(self._store.part(self._who, save), content), lambda: rate)
        return size_of({name: array for name, array in content.items() if name != "rows"})

    def do_commit(self, save: int, to_peers: bool) -> None:
        if to_peers:
            self._copies = {key: copy for key, copy in self._copies.items() if key[1] >= save}
        else:
            self._store.install(self._who)

    def do_abandon(self, save: int) -> None:
        self.do_stop(save)
        self._captured.pop(save, None)
        self._copies = {key: copy for key, copy in self._copies.items() if key[1] != save}

    def do_copy(self, who: str, save: int, content: Arrays) -> None:
        self._copies[who, save] = content

    def do_give(self, who: str, save: int) -> Arrays:
        return self._copies[who, save]

    # ----------------------------------------------------------------- back to one

    def _load_rate(self) -> float:
        return inf

    def _go_back(self, image: Arrays, position: int) -> None:
        for name, array in self._state().items():
            array[:] = image[name]
        self.position = position

    def do_load(self, position: int) -> asyncio.Task[None]:
        """Restore the last save that was committed to files."""
        self.do_stop()
        return self._begin(LOAD, self._load(position))

    async def _load(self, position: int) -> None:
        image: Arrays = {}
        self._store.install(self._who)
        await throttled(reading(self._store.image(self._who), image), self._load_rate)
        self._go_back(image, position)

    def do_recall(self, save: int, rate: float, position: int, peer: str) -> asyncio.Task[None]:
        """Restore a copy in memory, held here or else by a peer."""
        self.do_stop()
        self._captured.clear()
        return self._begin(LOAD, self._recall(save, rate, position, peer))

    async def _recall(self, save: int, rate: float, position: int, peer: str) -> None:
        if (self._who, save) not in self._copies:
            copy = await call(peer, "give", self._who, save)
            await asyncio.sleep(size_of(copy) / rate)
            self._copies[self._who, save] = copy
        self._go_back(self._copies[self._who, save], position)


def size_of(arrays: Arrays) -> int:
    """Bytes of some arrays."""
    return sum(array.nbytes for array in arrays.values())
