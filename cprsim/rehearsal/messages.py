"""Messages between processes: framed, typed, and without pickle.

    magic (4) | length of the header (4) | length of the body (8) | header (JSON) | body

The header says the kind, plain fields, and type and shape of each array; the body is the memory of
the arrays, one after the other. What does not fit its own description closes the connection.
An address names its transport: ``unix:PATH``.
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
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import WorkerError
from cprsim.kernel.loops import Array

MAGIC = b"CPR1"
HEAD = struct.Struct("<4sIQ")
MOST_HEADER_BYTES = 1 << 20
MOST_BODY_BYTES = 1 << 33
DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1")
CHUNK_BYTES = 1 << 18
MOST_PIECES = 64  # of one call; the system takes up to 1024
UNIX = "unix:"
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class MessageError(WorkerError):
    """Bytes that are no message: the connection is of no use any more."""


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
        """The messages that are complete now. Raises MessageError for what is no frame."""
        self._bytes += data
        found = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def _next(self) -> Message | None:
        if len(self._bytes) < HEAD.size:
            return None
        magic, n_header, n_body = HEAD.unpack_from(self._bytes)
        if magic != MAGIC or n_header > MOST_HEADER_BYTES or n_body > MOST_BODY_BYTES:
            raise MessageError("a peer sent what is no message of this protocol")
        begin, end = HEAD.size + n_header, HEAD.size + n_header + n_body
        if len(self._bytes) < end:
            return None
        header = bytes(self._bytes[HEAD.size : begin])
        body = bytes(self._bytes[begin:end])
        del self._bytes[:end]
        return _message(header, body)


def _message(header: bytes, body: bytes) -> Message:
    try:
        plain = json.loads(header)
        arrays, at = [], 0
        for dtype, shape in plain["arrays"]:
            if dtype not in DTYPES or min(shape, default=0) < 0:
                raise ValueError(f"an array of {dtype} {shape}")
            n = prod(shape)
            arrays.append(np.frombuffer(body, dtype, n, at).reshape(shape))
            at += n * np.dtype(dtype).itemsize
        if at != len(body):
            raise ValueError(f"{len(body)} bytes for arrays of {at}")
        return Message(str(plain["kind"]), dict(plain["fields"]), tuple(arrays))
    except (ValueError, KeyError, TypeError) as error:
        raise MessageError(f"a peer sent a damaged message: {error}") from error


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


def _path_of(address: str) -> str:
    if not address.startswith(UNIX):
        raise WorkerError(f"no transport for the address {address!r}; there is unix:PATH")
    return address.removeprefix(UNIX)


def listen(address: str) -> socket.socket:
    """A socket that others find at an address."""
    path = _path_of(address)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    server.listen(64)
    server.setblocking(False)
    return server


def connect(address: str) -> Channel:
    """A channel to whoever listens there. Raises OSError where nobody does."""
    path = _path_of(address)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return Channel(connection)


def closed_channel() -> Channel:
    """A channel whose peer is gone."""
    channel = Channel(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    channel.close()
    return channel


def address_in(folder: Path, name: str) -> str:
    """Address of a socket in a folder that only its owner may enter."""
    return f"{UNIX}{folder / name}"


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a Unix socket, as the kernel knows them."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid, uid, _ = CREDENTIALS.unpack(raw)
    return pid, uid
