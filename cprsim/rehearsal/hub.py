"""The loop of a worker: connections, timers, nothing that blocks.

Heartbeats, transfers and requests of one process take turns in one thread, so that a process that
hangs sends no heartbeats either. Of what is due, messages come before timers.
"""

from __future__ import annotations

import heapq
import selectors
import socket
from collections.abc import Callable
from itertools import count
from time import monotonic

from cprsim.rehearsal.messages import Channel, Message

OnMessage = Callable[[Channel, Message], None]
OnClosed = Callable[[Channel], None]


def _nothing(channel: Channel) -> None:
    pass


class Hub:
    """Channels and timers of one process."""

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
