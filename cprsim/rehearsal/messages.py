"""Messages between processes: framed, typed, and without pickle.

    magic (4) | length of the header (4) | length of the body (8) | header (JSON) | body

The header says the kind, plain fields, and type and shape of each array; the body is the memory of
the arrays, one after the other. All who send are processes of one session, in a folder that only
its owner may enter; an address is the path of a Unix socket there.
"""

from __future__ import annotations

import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from cprsim.kernel.loops import Array

MAGIC = b"CPR1"
HEAD = struct.Struct("<4sIQ")
CHUNK_BYTES = 1 << 18
MOST_PIECES = 64  # of one call; the system takes up to 1024
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One message: what it is, plain fields, and arrays."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()


def packed(message: Message) -> list[bytes | memoryview]:
    """The pieces of a frame; arrays are not copied where they are contiguous."""
    arrays = [np.ascontiguousarray(array) for array in message.arrays]
    shapes = [[array.dtype.str, list(array.shape)] for array in arrays]
    header = json.dumps({"kind": message.kind, "fields": dict(message.fields), "arrays": shapes})
    encoded = header.encode()
    body = [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]
    n_bytes = sum(piece.nbytes for piece in body)
    return [HEAD.pack(MAGIC, len(encoded), n_bytes) + encoded, *body]


class Assembler:
    """Makes messages of the bytes of a stream, in whatever pieces they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are complete now."""
        self._bytes += data
        found = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def _next(self) -> Message | None:
        if len(self._bytes) < HEAD.size:
            return None
        magic, n_header, n_body = HEAD.unpack_from(self._bytes)
        assert magic == MAGIC
        begin, end = HEAD.size + n_header, HEAD.size + n_header + n_body
        if len(self._bytes) < end:
            return None
        header = bytes(self._bytes[HEAD.size : begin])
        body = bytes(self._bytes[begin:end])
        del self._bytes[:end]
        return _message(header, body)


def _message(header: bytes, body: bytes) -> Message:
    plain = json.loads(header)
    arrays, at = [], 0
    for dtype, shape in plain["arrays"]:
        arrays.append(np.frombuffer(body, dtype, prod(shape), at).reshape(shape))
        at += arrays[-1].nbytes
    return Message(plain["kind"], plain["fields"], tuple(arrays))


class Channel:
    """One end of a connection that never blocks: what can't be sent yet waits here."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.closed = False
        self._out: deque[memoryview] = deque()
        self._assembler = Assembler()

    def deliver(self, on_message: Callable[[Channel, Message], None]) -> None:
        """Hand over what has come in."""
        for message in self.receive():
            on_message(self, message)

    @property
    def has_more_to_send(self) -> bool:
        """Whether something waits until the peer has room for it."""
        return bool(self._out) and not self.closed

    def send(self, kind: str, arrays: Iterable[Array] = (), **fields: Any) -> None:
        """Send, now or as the peer has room; nothing happens where the peer is gone."""
        pieces = packed(Message(kind, fields, tuple(arrays)))
        self._out += [memoryview(piece) for piece in pieces]
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the peer has room."""
        while self._out and not self.closed:
            try:
                n = self.socket.sendmsg(islice(self._out, MOST_PIECES))
            except BlockingIOError:
                return
            except OSError:
                self.closed = True
                return
            while n:
                piece = self._out.popleft()
                if n < piece.nbytes:
                    self._out.appendleft(piece[n:])
                n -= min(n, piece.nbytes)

    def receive(self) -> list[Message]:
        """What has come in; `closed` is set where the peer has closed."""
        found: list[Message] = []
        while not self.closed:
            try:
                data = self.socket.recv(CHUNK_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.closed = True
            found += self._assembler.feed(data)
            if len(data) < CHUNK_BYTES:
                break
        return found

    def close(self) -> None:
        """Let go of the connection."""
        self.closed = True
        self.socket.close()


def listen(address: str) -> socket.socket:
    """A socket that others find at an address."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(address)
    server.listen(64)
    server.setblocking(False)
    return server


def connect(address: str) -> Channel:
    """A channel to whoever listens there. Raises OSError where nobody does."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return Channel(connection)


def closed_channel() -> Channel:
    """A channel whose peer is gone."""
    channel = Channel(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    channel.close()
    return channel


def pid_of(connection: socket.socket) -> int:
    """The process at the other end of a Unix socket, as the kernel knows it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return int(CREDENTIALS.unpack(raw)[0])
