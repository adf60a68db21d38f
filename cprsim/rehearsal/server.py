"""An embedding server: a shard in memory for trainers; saves and loads through a throttle.

trainer      pull (places) -> rows;  push (places, gradients) -> ack
supervisor   save -> saved | failed;  commit, abandon;  load -> loaded;  where, dump
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.records import SmallTables, SubSaves
from cprsim.rehearsal.messages import Channel, Message, address_in, listen
from cprsim.rehearsal.shard import Shard, initial_rows
from cprsim.rehearsal.store import (
    ActiveFlows,
    Arrays,
    SaveFiles,
    Throttle,
    ThrottledTransfer,
    reading,
    written,
)
from cprsim.rehearsal.worker import Worker


class Server:
    """The work of an embedding server."""

    def __init__(self, worker: Worker, orders: Mapping[str, Any]) -> None:
        self._worker, self._loop = worker, worker.loop
        self._number, self._slot = int(orders["number"]), int(orders["slot"])
        inherited = worker.inherited
        rows = initial_rows(inherited.material, inherited.table, self._number)
        self.shard = Shard(inherited.material, self._number, rows, sub_saves_of(orders))
        self._store = SaveFiles(Path(orders["store"]))
        self._saves = Throttle(inf, float(orders["save_rate"]))
        self._loads = Throttle(*(float(rate) for rate in orders["load_rates"]))
        self._flows = ActiveFlows(Path(orders["flows"]), int(orders["n_slots"]))
        self._transfer: ThrottledTransfer | None = None
        self._done: Callable[[], None] = lambda: None
        self.position = int(orders["position"])
        self._account = {"pushes": 0.0, "saved_s": 0.0, "loaded_s": 0.0, "bytes_saved": 0.0}
        self.address = address_in(worker.folder, f"{orders['name']}.sock")
        self._loop.listen(listen(self.address), self._greet)

    @property
    def _who(self) -> str:
        return str(self._number)

    def account(self) -> dict[str, float]:
        return self._account

    def advance(self) -> None:
        transfer = self._transfer
        self._loop.turn(inf if transfer is None else transfer.deadline)
        self._move_what_is_due()

    def _move_what_is_due(self) -> None:
        transfer = self._transfer
        if transfer is not None and monotonic() >= transfer.deadline:
            self._move(transfer)

    def _move(self, transfer: ThrottledTransfer) -> None:
        """Move the next piece of a transfer."""
        try:
            goes_on = transfer.step()
        except OSError as error:
            self._stop_transfer()
            self._worker.supervisor.send("failed", re=self._ask, why=error.strerror or "")
            return
        except CheckpointError as error:
            self._stop_transfer()
            self._worker.report_error(str(error))
            return
        if not goes_on:
            self._transfer = None
            self._done()

    def _stop_transfer(self) -> None:
        if self._transfer is not None:
            self._transfer.cancel()
            self._transfer = None

    # ----------------------------------------------------------------- trainers

    def _greet(self, channel: Channel) -> None:
        self._loop.add(channel, self._serve)

    def _serve(self, channel: Channel, message: Message) -> None:
        fields = message.fields
        if message.kind == "pull":
            channel.send("rows", (self.shard.pull(message.arrays[0]),), seq=fields["seq"])
        elif message.kind == "push":
            rows, gradients = message.arrays
            self.shard.push(rows, gradients, float(fields["rate"]))
            self.position = int(fields["position"])
            self._account["pushes"] += 1
            channel.send("ack", seq=fields["seq"])

    # ----------------------------------------------------------------- the supervisor

    def on_message(self, channel: Channel, message: Message) -> None:
        fields = message.fields
        if message.kind == "save":
            self._save(channel, fields)
        elif message.kind == "commit":
            self.shard.commit()
            self._store.install(self._who)
        elif message.kind == "abandon":
            self._stop_transfer()
            self.shard.abandon()
            self._store.install(self._who)
        elif message.kind == "load":
            self._load(channel, fields)
        elif message.kind == "where":
            channel.send("here", re=fields["ask"], position=self.position)
        elif message.kind == "dump":
            arrays = (self.shard.table, self.shard.row_state)
            channel.send("dumped", arrays, re=fields["ask"], account=self._account)

    def _save(self, channel: Channel, fields: Mapping[str, Any]) -> None:
        """Fix the content now, write it at the rate of the throttle, then vote."""
        began = monotonic()
        self._stop_transfer()
        self._ask = fields["ask"]
        content = self.shard.start_save(bool(fields["ends_interval"]), int(fields["n_before"]))
        n_bytes = sum(array.nbytes for name, array in content.items() if name != "rows")
        pieces = written(self._store.part(self._who, int(fields["save"])), content)
        self._transfer = ThrottledTransfer(pieces, self._saves, self._flows, self._slot)

        def vote() -> None:
            self._account["saved_s"] += monotonic() - began
            self._account["bytes_saved"] += n_bytes
            channel.send("saved", re=fields["ask"], bytes=n_bytes)

        self._done = vote

    def _load(self, channel: Channel, fields: Mapping[str, Any]) -> None:
        """Go back to the last committed save."""
        began = monotonic()
        self._stop_transfer()
        self._ask = fields["ask"]
        self._store.install(self._who)
        image: Arrays = {}
        pieces = reading(self._store.image(self._who), image)
        self._transfer = ThrottledTransfer(pieces, self._loads, self._flows, self._slot)

        def restored() -> None:
            self.shard.restore(image)
            self.position = int(fields["position"])
            self._account["loaded_s"] += monotonic() - began
            channel.send("loaded", re=fields["ask"])

        self._done = restored

    _ask = 0


def sub_saves_of(orders: Mapping[str, Any]) -> SubSaves | None:
    """How priority saving cuts an interval, from plain fields; None: saves are whole."""
    plain = orders["sub_saves"]
    if plain is None:
        return None
    return SubSaves(**{**plain, "small_tables": SmallTables(plain["small_tables"])})


def first_image(shard: Shard) -> Arrays:
    """What is saved of a shard at the start of the run."""
    return {"table": np.array(shard.table), "row_state": np.array(shard.row_state)}
