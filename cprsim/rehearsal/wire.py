"""The one protocol of a rehearsal: methods of other processes, called over Unix sockets.

A frame is its length (8 bytes) and a pickle: number of the question, name of the method, arguments.
An answer repeats the number. All who send are processes of one session, in a folder that only its
owner may enter; an address is the path of a Unix socket there.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import Any, TypeVar

LENGTH_PREFIX = struct.Struct("<Q")
ANSWER = ""

T = TypeVar("T")
Handler = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]


class Peer(asyncio.Protocol):
    """The process at the other end of a connection; `handle` serves its requests.

    The result of a handler, or of the coroutine or task that it returns, answers the question; None
    does where it raises OSError. It is not answered where that is cancelled or needs a process that
    has died: the asker learns of the death itself.
    """

    def __init__(
        self, handle: Handler | None = None, on_lost: Callable[[], None] | None = None
    ) -> None:
        self._handle, self._on_lost = handle, on_lost
        self._bytes = bytearray()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)

    @property
    def closed(self) -> bool:
        """Whether the process has ended, or was never connected."""
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
        self._bytes += data
        while len(self._bytes) >= LENGTH_PREFIX.size:
            end = LENGTH_PREFIX.size + LENGTH_PREFIX.unpack_from(self._bytes)[0]
            if len(self._bytes) < end:
                break
            with memoryview(self._bytes)[LENGTH_PREFIX.size : end] as frame:
                message = pickle.loads(frame)
            del self._bytes[:end]
            self.take(*message)

    def take(self, number: int, kind: str, args: tuple[Any, ...], fields: dict[str, Any]) -> None:
        if kind != ANSWER:
            assert self._handle is not None, f"this connection serves no requests: {kind}"
            handle = self._handle
            self._conclude(number, lambda: handle(kind, args, fields))
        elif (future := self._waiting.pop(number, None)) and not future.done():
            future.set_result(args[0])

    def _conclude(self, number: int, result: Callable[[], Any]) -> None:
        """Answer with the result of a handler, now or when it is available."""
        try:
            answer = result()
        except (asyncio.CancelledError, ConnectionError):
            return
        except OSError:
            answer = None
        except Exception as error:
            context = {"message": str(error), "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return
        if isinstance(answer, Awaitable):
            done = asyncio.ensure_future(answer)
            done.add_done_callback(lambda future: self._conclude(number, future.result))
        elif number:
            self._write(number, ANSWER, answer)

    def send(self, kind: str, /, *args: Any, **fields: Any) -> None:
        """Send a message; no effect if the process has ended."""
        self._write(0, kind, *args, **fields)

    def ask(self, kind: str, /, *args: Any, **fields: Any) -> asyncio.Future[Any]:
        """Send a question and return its answer. Raises ConnectionError if the process dies."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.closed:
            _gone(future)
        else:
            number = next(self._numbers)
            self._waiting[number] = future
            self._write(number, kind, *args, **fields)
        return future

    def _write(self, number: int, kind: str, /, *args: Any, **fields: Any) -> None:
        if self._transport is not None:
            frame = pickle.dumps((number, kind, args, fields), protocol=5)
            self._transport.writelines([LENGTH_PREFIX.pack(len(frame)), frame])

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _gone(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_exception(ConnectionError("the process has ended"))
        future.exception()  # it may be that nobody waits


async def connect(
    address: str, handle: Handler | None = None, on_lost: Callable[[], None] | None = None
) -> Peer:
    """Connect to the listener at an address; returns a closed peer if nothing listens."""
    peer = Peer(handle, on_lost)
    with suppress(OSError):
        await asyncio.get_running_loop().create_unix_connection(lambda: peer, address)
    return peer


async def listen(address: str, peer: Callable[[], Peer]) -> asyncio.Server:
    """Listen for processes that connect."""
    return await asyncio.get_running_loop().create_unix_server(peer, address)


async def call(address: str, kind: str, *args: Any) -> Any:
    """Ask the listener at an address, over a new connection."""
    peer = await connect(address)
    try:
        return await peer.ask(kind, *args)
    finally:
        peer.close()


async def forever() -> Any:
    """Wait until cancelled."""
    await asyncio.Event().wait()


async def patient(answered: Awaitable[T]) -> T:
    """An answer; if its process dies, wait for the cancellation that follows the detection."""
    try:
        return await answered
    except ConnectionError:
        answer: T = await forever()
        return answer


async def answers(peers: Iterable[Peer], kind: str, *args: Any, **fields: Any) -> list[Any]:
    """The answers of all these, with patience."""
    return await patient(asyncio.gather(*(peer.ask(kind, *args, **fields) for peer in peers)))


async def cancelled(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel the tasks that are not done, and wait for their end."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def first_of(*works: Awaitable[Any]) -> Any:
    """The result of the first that is done; the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task.result() for task in tasks if task.done())
    finally:
        await cancelled(tasks)


async def throttled(pieces: Iterable[int], rate: Callable[[], float]) -> None:
    """Move pieces, whose bytes are yielded, at a rate [bytes/s] that may change meanwhile.

    Lateness is caught up: deadlines follow from the bytes, not from when pieces were moved.
    """
    due_at = monotonic()
    for n_bytes in pieces:
        due_at += n_bytes / rate()
        await asyncio.sleep(due_at - monotonic())
