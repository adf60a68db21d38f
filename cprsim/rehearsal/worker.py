"""A process of the job: a spare until the supervisor makes it a server or a trainer.

It dies with whoever forked it (the fork server, which dies with the supervisor), and by itself when
the supervisor closes the connection. Heartbeats, transfers and requests take turns in one thread
(`EventLoop`), so that a process that hangs sends no heartbeats either.
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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from cprsim.kernel.loops import Array
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.messages import (
    Channel,
    Message,
    closed_channel,
    connect,
    listen,
)

OnMessage = Callable[[Any, Message], None]
OnClosed = Callable[[Any], None]
PR_SET_PDEATHSIG = 1


def _nothing(channel: Channel) -> None:
    pass


class EventLoop:
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
        """Stop listening to a channel, and close it."""
        if self._channels.pop(channel, None) is not None:
            self._selector.unregister(channel.socket)
        channel.close()

    def listen(self, server: socket.socket, on_connected: Callable[[Channel], None]) -> None:
        """Accept connections."""
        self._selector.register(server, selectors.EVENT_READ, (server, on_connected))

    def at(self, instant: float, action: Callable[[], None]) -> None:
        """Run an action at an instant of the monotonic clock [s]."""
        heapq.heappush(self._timers, (instant, next(self._number), action))

    def every(self, period: float, action: Callable[[], None]) -> None:
        """Run an action periodically [s]; instants that were missed are skipped."""

        def tick(instant: float) -> None:
            action()
            following = instant + period * max(1, int((monotonic() - instant) // period) + 1)
            self.at(following, lambda: tick(following))

        begin = monotonic()
        self.at(begin, lambda: tick(begin))

    def turn(self, until: float) -> None:
        """Wait for events, at most until an instant, and handle those that are due."""
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
        if isinstance(who, tuple):
            server, on_connected = who
            connection, _ = server.accept()
            on_connected(Channel(connection))
            return
        if who not in self._channels:
            return  # removed by what was served before it in this turn
        if events & selectors.EVENT_WRITE:
            who.flush()
        on_message, on_closed = self._channels[who]
        who.deliver(on_message)
        if who.closed and who in self._channels:
            self.remove(who)
            on_closed(who)


class WorkerRole(Protocol):
    """What a worker does once it is no longer a spare: a server's work or a trainer's.

    A message KIND of the supervisor is handled by its method `do_KIND`.
    """

    address: str  # of its socket; empty: it has none

    def advance(self) -> None:
        """Do the next piece of work, or wait for the next event."""

    def account(self) -> dict[str, float]:
        """Its own counters."""


@dataclass(frozen=True, slots=True, eq=False)
class Inherited:
    """What a forked process inherits from its parent."""

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

    def __init__(self, inherited: Inherited, address: str, roles: Roles) -> None:
        self.inherited, self.loop, self._roles = inherited, EventLoop(), roles
        self.folder = Path(address).parent
        self.supervisor = connect(address)
        self.loop.add(self.supervisor, self._on_message, lambda channel: os._exit(0))
        self.role: WorkerRole | None = None

    def run(self) -> None:
        """Work until the supervisor closes the connection."""
        while True:
            if self.role is None:
                self.loop.turn(inf)
            else:
                self.role.advance()

    def _on_message(self, channel: Channel, message: Message) -> None:
        if message.kind == "reserve":
            self.loop.every(float(message.fields["heartbeat"]), self._beat)
        elif message.kind == "assign":
            self._assign(message)
        elif self.role is not None:
            getattr(self.role, f"do_{message.kind}")(message.fields)

    def _assign(self, message: Message) -> None:
        if self.role is None:  # else a recovery was cut off that had asked before
            self.role = self._roles[message.fields["role"]](self, message.fields)
        self.answer(message.fields, "assigned", address=self.role.address)

    def answer(
        self, asked: Mapping[str, Any], kind: str, arrays: Iterable[Array] = (), **fields: Any
    ) -> None:
        """Answer a question of the supervisor."""
        self.supervisor.send(kind, arrays, re=asked["ask"], **fields)

    def _beat(self) -> None:
        account = {} if self.role is None else self.role.account()
        self.supervisor.send("beat", at=monotonic(), account=account)

    def listen(self, name: str, on_message: OnMessage) -> str:
        """Listen to the other processes of the run; the address."""
        address = str(self.folder / f"{name}.sock")
        self.loop.listen(listen(address), lambda channel: self.loop.add(channel, on_message))
        return address

    def connected(self, address: str, on_message: OnMessage) -> Channel:
        """A channel; a closed one where its peer has died: the supervisor will notice."""
        try:
            channel = connect(address)
        except OSError:
            return closed_channel()
        self.loop.add(channel, on_message)
        return channel

    def report_error(self, text: str) -> None:
        """Send the supervisor an error that ends the run."""
        self.supervisor.send("error", text=text)


Roles = Mapping[str, Callable[[Worker, Mapping[str, Any]], WorkerRole]]


def main(inherited: Inherited, address: str, parent: int, roles: Roles) -> None:
    """Main function of a forked process; it never returns."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    gc.freeze()
    gc.disable()
    worker: Any = None
    try:
        worker = Worker(inherited, address, roles)
        worker.run()
    except Exception:
        if worker is not None:
            worker.report_error(traceback.format_exc(limit=-3))
    finally:
        os._exit(1)
