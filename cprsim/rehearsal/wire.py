"""The one protocol of a rehearsal: framed messages over Unix sockets, sent, asked and answered.

    magic (4) | length of the header (4) | length of the body (8) | header (JSON) | body

The header says the kind, plain fields, and type and shape of each array; the body is the memory of
the arrays, one after the other, without pickle. A question has a number, which its answer repeats.
All who send are processes of one session, in a folder that only its owner may enter; an address is
the path of a Unix socket there.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from math import prod
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from cprsim.kernel.loops import Array

MAGIC = b"CPR2"
HEAD = struct.Struct("<4sIQ")
ANSWER = "answer"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """What it is, plain fields, arrays, and the number of a question; 0: nobody waits."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()
    number: int = 0


def answer(*arrays: Array, **fields: Any) -> Message:
    """What a handler answers to a question."""
    return Message(ANSWER, fields, arrays)


def packed(message: Message) -> list[bytes | memoryview]:
    """The pieces of a frame."""
    arrays = [np.ascontiguousarray(array) for array in message.arrays]
    shapes = [(array.dtype.str, array.shape) for array in arrays]
    header = json.dumps([message.kind, message.number, dict(message.fields), shapes]).encode()
    body = [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]
    n_bytes = sum(piece.nbytes for piece in body)
    return [HEAD.pack(MAGIC, len(header), n_bytes) + header, *body]


class Assembler:
    """Makes messages of the bytes of a stream, in whatever pieces they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are complete now."""
        self._bytes += data
        found, at = [], 0
        while len(self._bytes) - at >= HEAD.size:
            magic, n_header, n_body = HEAD.unpack_from(self._bytes, at)
            assert magic == MAGIC
            begin, body = at + HEAD.size, at + HEAD.size + n_header
            if len(self._bytes) < body + n_body:
                break
            at = body + n_body
            found.append(_message(bytes(self._bytes[begin:body]), bytes(self._bytes[body:at])))
        del self._bytes[:at]
        return found


def _message(header: bytes, body: bytes) -> Message:
    kind, number, fields, shapes = json.loads(header)
    arrays, at = [], 0
    for dtype, shape in shapes:
        arrays.append(np.frombuffer(body, dtype, prod(shape), at).reshape(shape))
        at += arrays[-1].nbytes
    return Message(kind, fields, tuple(arrays), number)


Handler = Callable[["Peer", Message], Any]


def unhandled(peer: Peer, message: Message) -> Any:
    """Nobody asks over a connection that questions go out by."""
    raise AssertionError(message.kind)


class Peer(asyncio.Protocol):
    """The process at the other end of a connection.

    What a handler returns, or the coroutine or task that it returns, answers the question. It is
    not answered where that is cancelled or needs a process that has died: who asks finds out.
    """

    def __init__(self, handle: Handler = unhandled, on_lost: Callable[[], None] | None = None):
        self._handle, self._on_lost = handle, on_lost
        self._assembler = Assembler()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._numbers = count(1)

    @property
    def closed(self) -> bool:
        """Whether the process has ended, or was never there."""
        return self._transport is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        for future in self._waiting.values():
            _gone(future)
        self._waiting.clear()
        if self._on_lost is not None:
            self._on_lost()

    def data_received(self, data: bytes) -> None:
        for message in self._assembler.feed(data):
            self.take(message)

    def take(self, message: Message) -> None:
        """Take in a message."""
        if message.kind != ANSWER:
            self._conclude(message.number, lambda: self._handle(self, message))
        elif (future := self._waiting.pop(message.number, None)) and not future.done():
            future.set_result(message)

    def _conclude(self, number: int, result: Callable[[], Any]) -> None:
        """Answer with the result of a handler, now or once it is there."""
        try:
            found = result()
        except (asyncio.CancelledError, ConnectionError):
            return
        except OSError as error:
            found = answer(failed=error.strerror or "")
        except Exception as error:
            context = {"message": str(error), "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return
        if isinstance(found, Awaitable):
            done = asyncio.ensure_future(found)
            done.add_done_callback(lambda one: self._conclude(number, one.result))
        elif number:
            found = found or answer()
            self._write(Message(ANSWER, found.fields, found.arrays, number))

    def send(self, kind: str, /, *arrays: Array, **fields: Any) -> None:
        """Send a message; nothing happens where the process has ended."""
        self._write(Message(kind, fields, arrays))

    def ask(self, kind: str, /, *arrays: Array, **fields: Any) -> asyncio.Future[Message]:
        """Send a question; its answer. Raises ConnectionError where the process dies before."""
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self.closed:
            _gone(future)
        else:
            number = next(self._numbers)
            self._waiting[number] = future
            self._write(Message(kind, fields, arrays, number))
        return future

    def _write(self, message: Message) -> None:
        if self._transport is not None:
            self._transport.writelines(packed(message))

    def close(self) -> None:
        """Let go of the connection."""
        if self._transport is not None:
            self._transport.abort()


def _gone(future: asyncio.Future[Message]) -> None:
    if not future.done():
        future.set_exception(ConnectionError("the process has ended"))
        future.exception()  # it may be that nobody waits


async def connect(
    address: str, handle: Handler = unhandled, on_lost: Callable[[], None] | None = None
) -> Peer:
    """Who listens at an address; a peer that is closed where nobody does."""
    peer = Peer(handle, on_lost)
    with suppress(OSError):
        await asyncio.get_running_loop().create_unix_connection(lambda: peer, address)
    return peer


async def listen(address: str, peer: Callable[[], Peer]) -> asyncio.Server:
    """Be there for processes that connect."""
    return await asyncio.get_running_loop().create_unix_server(peer, address)


async def forever() -> Any:
    """Wait until one is cancelled."""
    await asyncio.Event().wait()


async def patient(answered: Awaitable[T]) -> T:
    """An answer; who has died never gives one: it will be noticed, and ends the wait."""
    try:
        return await answered
    except ConnectionError:
        found: T = await forever()
        return found


async def cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel what is not done, and wait until it is."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def throttled(pieces: Iterable[int], rate: Callable[[], float]) -> None:
    """Move pieces, whose bytes are yielded, at a rate [bytes/s] that may change meanwhile.

    Lateness is caught up: deadlines follow from the bytes, not from when pieces were moved.
    """
    due_at = monotonic()
    for n_bytes in pieces:
        due_at += n_bytes / rate()
        await asyncio.sleep(due_at - monotonic())
