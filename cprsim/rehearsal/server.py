"""An embedding server: a shard in memory for trainers; saves and loads through a throttle.

trainer      pull (places) -> rows;  push (places, samples, gradients) -> ack
supervisor   save -> saved | failed;  commit, abandon;  load -> loaded;  sharing;  where, dump
             behind the job: capture -> captured;  write -> saved | failed
             after it: stop;  lend (to a replacement) -> lent;  recall -> loaded
peers        copy (a piece) -> kept;  give (a copy) -> given
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.records import SmallTables, SubSaves
from cprsim.rehearsal.copies import HeldCopies, after, copying, sending
from cprsim.rehearsal.material import image_bytes
from cprsim.rehearsal.messages import Channel, Message
from cprsim.rehearsal.shard import Shard, initial_rows
from cprsim.rehearsal.store import (
    Arrays,
    SaveFiles,
    Throttle,
    ThrottledTransfer,
    chunk_bytes,
    reading,
    written,
)
from cprsim.rehearsal.worker import Worker


@dataclass(frozen=True, slots=True, eq=False)
class _UnderWay:
    """A transfer, the question that it answers, and what is done when it is over."""

    ask: int
    save: int
    transfer: ThrottledTransfer
    done: Callable[[], None]


class Server:
    """The work of an embedding server."""

    def __init__(self, worker: Worker, orders: Mapping[str, Any]) -> None:
        self._worker, self._loop = worker, worker.loop
        self._number = int(orders["number"])
        inherited = worker.inherited
        rows = initial_rows(inherited.material, inherited.table, self._number)
        self.shard = Shard(inherited.material, self._number, rows, sub_saves_of(orders))
        self._store = SaveFiles(Path(orders["store"]))
        self._saves = Throttle(inf, float(orders["save_rate"]))
        together, alone = orders["load_rates"]
        self._loads = Throttle(float(together), float(alone))
        self._under_way: list[_UnderWay] = []
        self._captured: dict[int, Arrays] = {}  # content of saves behind the job
        self._early: list[tuple[Channel, Message]] = []  # pulls of rows that are not there yet
        self._copies = HeldCopies()
        self._image_bytes = image_bytes(inherited.material)
        self.position = int(orders["position"])
        self._account = {"pushes": 0.0, "saved_s": 0.0, "loaded_s": 0.0, "bytes_saved": 0.0}
        self.address = worker.listen(orders["name"], self._serve)

    @property
    def _who(self) -> str:
        return str(self._number)

    def account(self) -> dict[str, float]:
        return self._account

    def advance(self) -> None:
        self._loop.turn(min((one.transfer.deadline for one in self._under_way), default=inf))
        for one in tuple(self._under_way):
            if one in self._under_way and monotonic() >= one.transfer.deadline:
                self._move(one)

    def _begin(
        self,
        fields: Mapping[str, Any],
        pieces: Iterator[int],
        throttle: Throttle,
        done: Callable[[], None],
    ) -> None:
        """Move bytes through a throttle, beside what else is under way."""
        transfer = ThrottledTransfer(pieces, throttle)
        save = int(fields.get("save", 0))
        self._under_way.append(_UnderWay(int(fields["ask"]), save, transfer, done))

    def _move(self, one: _UnderWay) -> None:
        """Move the next piece of a transfer."""
        try:
            goes_on = one.transfer.step()
        except OSError as error:
            self._stop(one)
            self._worker.supervisor.send("failed", re=one.ask, why=error.strerror or "")
            return
        except CheckpointError as error:
            self._stop(one)
            self._worker.report_error(str(error))
            return
        if not goes_on:
            self._under_way.remove(one)
            one.done()

    def _stop(self, one: _UnderWay) -> None:
        one.transfer.cancel()
        self._under_way.remove(one)

    def _stop_all(self) -> None:
        for one in tuple(self._under_way):
            self._stop(one)

    # ----------------------------------------------------------------- trainers

    def _serve(self, channel: Channel, message: Message) -> None:
        fields = message.fields
        if message.kind == "pull":
            self._pull(channel, message)
        elif message.kind == "push":
            self._push(message)
            channel.send("ack")
        elif message.kind == "copy":
            self._copies.receive(channel, message)
        elif message.kind == "give":
            copy = self._copies.bytes_of(str(fields["who"]), int(fields["save"]))
            channel.send("given", (np.frombuffer(copy, np.uint8),), seq=fields["seq"])

    def _pull(self, channel: Channel, message: Message) -> None:
        """Answer with rows; who is a batch ahead of what came from another trainer has to wait."""
        if int(message.fields["position"]) > self.position:
            self._early.append((channel, message))
        else:
            rows = self.shard.pull(message.arrays[0])
            channel.send("rows", (rows,), seq=message.fields["seq"])

    def _push(self, message: Message) -> None:
        """Take a batch, once: trainers in step send one again where the other may have died."""
        position = int(message.fields["position"])
        if position <= self.position:
            return
        rate, n_before = float(message.fields["rate"]), int(message.fields["n_before"])
        rows, samples, gradients = message.arrays
        self.shard.push(rows, samples, gradients, rate, n_before)
        self.position = position
        self._account["pushes"] += 1
        early, self._early = self._early, []
        for channel, waiting in early:
            self._pull(channel, waiting)

    # ----------------------------------------------------------------- the supervisor

    def do_sharing(self, fields: Mapping[str, Any]) -> None:
        self._loads.n_flows = int(fields["n"])

    def do_stop(self, fields: Mapping[str, Any]) -> None:
        self._stop_all()

    def do_where(self, fields: Mapping[str, Any]) -> None:
        self._worker.answer(fields, "here", position=self.position)

    def do_dump(self, fields: Mapping[str, Any]) -> None:
        arrays = (self.shard.table, self.shard.row_state)
        self._worker.answer(fields, "dumped", arrays, account=self._account)

    def do_save(self, fields: Mapping[str, Any]) -> None:
        """Fix the content now, write it at the rate of the throttle, then vote."""
        began = monotonic()
        self._stop_all()
        content = self.shard.start_save(bool(fields["ends_interval"]), int(fields["n_before"]))
        pieces = written(self._store.part(self._who, int(fields["save"])), content)

        def vote() -> None:
            self._account["saved_s"] += monotonic() - began
            self._vote(fields, content)

        self._begin(fields, pieces, self._saves, vote)

    def _vote(self, fields: Mapping[str, Any], content: Arrays) -> None:
        n_bytes = sum(array.nbytes for name, array in content.items() if name != "rows")
        self._account["bytes_saved"] += n_bytes
        self._worker.answer(fields, "saved", bytes=n_bytes)

    def do_load(self, fields: Mapping[str, Any]) -> None:
        """Go back to the last committed save."""
        began = monotonic()
        self._stop_all()
        self._store.install(self._who)
        image: Arrays = {}

        def restored() -> None:
            self._account["loaded_s"] += monotonic() - began
            self._go_back(fields, image)

        self._begin(fields, reading(self._store.image(self._who), image), self._loads, restored)

    def _go_back(self, fields: Mapping[str, Any], image: Arrays) -> None:
        self.shard.restore(image)
        self.position = int(fields["position"])
        self._worker.answer(fields, "loaded")

    def do_commit(self, fields: Mapping[str, Any]) -> None:
        number = int(fields["save"])
        if self._captured.pop(number, None) is None:
            self.shard.commit()
            self._store.install(self._who)
        elif fields["to_peers"]:
            self._copies.commit(number)
        else:
            self._store.install(self._who, until=number)

    def do_abandon(self, fields: Mapping[str, Any]) -> None:
        number = int(fields["save"])
        for one in tuple(self._under_way):
            if one.save == number:
                self._stop(one)
        self._copies.drop(number)
        if self._captured.pop(number, None) is None:
            self.shard.abandon()
        self._store.install(self._who, until=number)

    # ----------------------------------------------------------------- behind the job

    def do_capture(self, fields: Mapping[str, Any]) -> None:
        """Copy the content in memory while the job stands still."""
        content: Arrays = {}
        self._captured[int(fields["save"])] = content
        source = {"table": self.shard.table, "row_state": self.shard.row_state}
        throttle = Throttle(inf, self._rate(fields["seconds"]))
        captured = partial(self._worker.answer, fields, "captured")
        self._begin(fields, copying(source, content), throttle, captured)

    def _rate(self, seconds: float) -> float:
        """At which the bytes of the largest shard take so long."""
        return self._image_bytes / seconds if seconds > 0 else inf

    def do_write(self, fields: Mapping[str, Any]) -> None:
        """Write what was captured, to files or to the memory of peers, then vote."""
        number = int(fields["save"])
        content = self._captured[number]
        if not fields["to_peers"]:
            throttle = Throttle(inf, self._rate(fields["seconds"]))
            pieces = written(self._store.part(self._who, number), content)
            self._begin(fields, pieces, throttle, lambda: self._vote(fields, content))
            return
        self._copies.hold(self._who, number, content)
        peers = list(fields["peers"])
        throttle = Throttle(inf, self._rate(fields["seconds"] / len(peers)))
        self._send(fields, self._who, peers, throttle, lambda: self._vote(fields, content))

    def do_lend(self, fields: Mapping[str, Any]) -> None:
        """Send a replacement the copy that is held here of its rows."""
        throttle = Throttle(inf, self._rate(fields["seconds"]))
        lent = partial(self._worker.answer, fields, "lent")
        self._send(fields, str(fields["who"]), [fields["peer"]], throttle, lent)

    def _send(
        self,
        fields: Mapping[str, Any],
        who: str,
        addresses: list[str],
        throttle: Throttle,
        done: Callable[[], None],
    ) -> None:
        """Send a copy to peers; it is done when it is through and all have acknowledged it."""
        number = int(fields["save"])
        copy = self._copies.bytes_of(who, number)
        all_have_it = after(len(addresses) + 1, done)

        def kept(channel: Channel, message: Message) -> None:
            self._loop.remove(channel)
            all_have_it()

        channels = [self._worker.connected(address, kept) for address in addresses]
        pieces = sending(copy, who, number, channels, chunk_bytes(len(copy)))
        self._begin(fields, pieces, throttle, all_have_it)

    def do_recall(self, fields: Mapping[str, Any]) -> None:
        """Go back to a copy that is held here."""
        self._stop_all()
        self._captured.clear()
        try:
            image = self._copies.arrays(self._who, int(fields["save"]))
        except CheckpointError as error:
            self._worker.report_error(str(error))
            return
        self._go_back(fields, image)


def sub_saves_of(orders: Mapping[str, Any]) -> SubSaves | None:
    """How priority saving cuts an interval, from plain fields; None: saves are whole."""
    plain = orders["sub_saves"]
    if plain is None:
        return None
    return SubSaves(**{**plain, "small_tables": SmallTables(plain["small_tables"])})


def first_image(shard: Shard) -> Arrays:
    """What is saved of a shard at the start of the run."""
    return {"table": np.array(shard.table), "row_state": np.array(shard.row_state)}
