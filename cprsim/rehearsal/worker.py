"""A process of the job: a spare until the supervisor makes it a server or a trainer.

It dies with whoever forked it (the nursery, which dies with the supervisor), and by itself when
the supervisor closes the connection. Heartbeats, transfers and requests take turns in one thread
(`Hub`), so that a process that hangs sends no heartbeats either.
"""

from __future__ import annotations

import ctypes
import gc
import heapq
import os
import selectors
import signal
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from cprsim.kernel.loops import Array
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.messages import Channel, Message, connect

OnMessage = Callable[[Channel, Message], None]
OnClosed = Callable[[Channel], None]
PR_SET_PDEATHSIG = 1


def _nothing(channel: Channel) -> None:
    pass


class Hub:
    """Channels and timers of one process; nothing in it blocks. Messages come before timers."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._channels: dict[Channel, tuple[OnMessage, OnClosed]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def add(self, channel: Channel, on_message: OnMessage, on_closed: OnClosed = _nothing) -> None:
        """Listen to a channel."""
        self._channels[channel] = on_message, on_closed
        self._selector.register(channel.socket, selectors.EVENT_READ, channel)

    def remove(self, channel: Channel) -> None:
        """Listen to it no more, and close it."""
        if self._channels.pop(channel, None) is not None:
            self._selector.unregister(channel.socket)
        channel.close()

    def listen(self, server: socket.socket, on_connected: Callable[[Channel], None]) -> None:
        """Take in whoever connects."""
        self._selector.register(server, selectors.EVENT_READ, (server, on_connected))

    def at(self, instant: float, action: Callable[[], None]) -> None:
        """Do something at an instant of the monotonic clock [s]."""
        heapq.heappush(self._timers, (instant, next(self._number), action))

    def every(self, period: float, action: Callable[[], None]) -> None:
        """Do something on a grid of instants; those that were missed are left out."""

        def tick(instant: float) -> None:
            action()
            following = instant + period * max(1, int((monotonic() - instant) // period) + 1)
            self.at(following, lambda: tick(following))

        begin = monotonic()
        self.at(begin, lambda: tick(begin))

    def turn(self, until: float) -> None:
        """Wait for the next thing to do, at most until an instant; do what there is."""
        for channel in self._channels:
            events = selectors.EVENT_READ
            if channel.has_more_to_send:
                events |= selectors.EVENT_WRITE
            if self._selector.get_key(channel.socket).events != events:
                self._selector.modify(channel.socket, events, channel)
        soonest = min(until, self._timers[0][0]) if self._timers else until
        wait = soonest - monotonic()
        ready = self._selector.select(max(0.0, min(wait, 3600.0)))
        for key, events in ready:
            self._serve(key.data, events)
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()

    def _serve(
        self, who: Channel | tuple[socket.socket, Callable[[Channel], None]], events: int
    ) -> None:
        if not isinstance(who, Channel):
            server, on_connected = who
            connection, _ = server.accept()
            on_connected(Channel(connection))
            return
        if who not in self._channels:
            return  # removed by what was served before it in this turn
        if events & selectors.EVENT_WRITE:
            who.flush()
        on_message, on_closed = self._channels[who]
        for message in who.receive():
            on_message(who, message)
        if who.closed and who in self._channels:
            self.remove(who)
            on_closed(who)


class Duty(Protocol):
    """What a worker does once it is no spare any more."""

    address: str  # where others find it; empty: nobody has to

    def on_message(self, channel: Channel, message: Message) -> None:
        """Do what the supervisor asks."""

    def advance(self) -> None:
        """Go on with what it has to do, or wait for the next thing."""

    def account(self) -> dict[str, float]:
        """What it has counted itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Heirloom:
    """What a forked process has from its parent."""

    material: Material
    table: Array  # (n_rows, d) at the start of the run
    dense: Array  # (n_dense,)


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends, however it ends; end at once where it already has."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Worker:
    """One process: its connection to the supervisor, its heartbeats, its duty."""

    def __init__(self, heirloom: Heirloom, address: str, key: str) -> None:
        self.heirloom, self.hub = heirloom, Hub()
        self.folder = Path(address.partition(":")[2]).parent
        self.supervisor = connect(address)
        self.hub.add(self.supervisor, self._on_message, lambda channel: os._exit(0))
        self.duty: Duty | None = None
        self.supervisor.send("hello", key=key)

    def run(self) -> None:
        """Work until the supervisor says that it is over."""
        while True:
            if self.duty is None:
                self.hub.turn(inf)
            else:
                self.duty.advance()

    def _on_message(self, channel: Channel, message: Message) -> None:
        if message.kind == "reserve":
            self.hub.every(float(message.fields["heartbeat"]), self._beat)
        elif message.kind == "assign":
            self._assign(channel, message)
        elif message.kind == "end":
            os._exit(0)
        elif self.duty is not None:
            self.duty.on_message(channel, message)

    def _assign(self, channel: Channel, message: Message) -> None:
        from cprsim.rehearsal.server import Server
        from cprsim.rehearsal.trainer import TrainerProcess

        duty = Server if message.fields["role"] == "server" else TrainerProcess
        self.duty = duty(self, message.fields)
        channel.send("assigned", re=message.fields["ask"], address=self.duty.address)

    def _beat(self) -> None:
        account = {} if self.duty is None else self.duty.account()
        self.supervisor.send("beat", at=monotonic(), account=account)

    def complain(self, text: str) -> None:
        """Tell the supervisor what can't go on."""
        self.supervisor.send("error", text=text)


def main(heirloom: Heirloom, address: str, key: str, parent: int) -> None:
    """What a forked process does; it never returns."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to answer
    gc.freeze()
    gc.disable()
    worker: Any = None
    try:
        worker = Worker(heirloom, address, key)
        worker.run()
    except Exception:
        if worker is not None:
            worker.complain(traceback.format_exc(limit=-3))
    finally:
        os._exit(1)
