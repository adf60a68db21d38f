"""The data of a rehearsal over TCP: ZeroMQ's sockets, encrypted and authenticated by CURVE.

Each server makes its own pair of keys and tells its public one with its address, over the private
socket to the supervisor; the run has one pair for whoever may connect. Whoever has other keys, or
none, is turned away in the handshake. The messages are the same as over Unix sockets.

An address is ``tcp://HOST:PORT KEY``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cprsim.errors import ParameterError
from cprsim.kernel.loops import Array
from cprsim.rehearsal.messages import Assembler, Message, MessageError, packed

GATE = "inproc://zeromq.zap.01"  # where ZeroMQ asks who may come in
HOST = "127.0.0.1"

_context: Any = None  # of this process
_context_of = 0


@dataclass(frozen=True, slots=True)
class RunKeys:
    """The pair of keys of those who may connect, in ZeroMQ's text form."""

    public: str
    secret: str


def require_zmq() -> None:
    """Raise ParameterError, and say what to install, where ZeroMQ's sockets are not there."""
    try:
        import zmq
    except ImportError:
        raise ParameterError("--tcp needs pyzmq: pip install 'cprsim[tcp]'") from None
    if not zmq.has("curve"):
        raise ParameterError("--tcp needs a ZeroMQ with CURVE; this one has none")


def fresh_keys() -> RunKeys:
    """A pair of keys for one run."""
    import zmq

    public, secret = zmq.curve_keypair()
    return RunKeys(public.decode(), secret.decode())


def _socket(kind: int) -> Any:
    """A socket of this process: a context does not outlive a fork."""
    import zmq

    global _context, _context_of
    if _context_of != os.getpid():
        _context, _context_of = zmq.Context(), os.getpid()
    made = _context.socket(kind)
    made.linger = made.sndhwm = made.rcvhwm = 0
    return made


def _received(frames: list[bytes]) -> list[Message]:
    return Assembler().feed(b"".join(frames))


def _frames(kind: str, arrays: Iterable[Array], fields: dict[str, Any]) -> list[Any]:
    return packed(Message(kind, fields, tuple(arrays)))


class CurveChannel:
    """One end of a connection, that of who connects. It never blocks; ZeroMQ queues."""

    has_more_to_send = False

    def __init__(self, address: str, keys: RunKeys) -> None:
        import zmq

        self.socket = _socket(zmq.DEALER)
        endpoint, _, server_key = address.partition(" ")
        self.socket.curve_serverkey = server_key.encode()
        self.socket.curve_publickey = keys.public.encode()
        self.socket.curve_secretkey = keys.secret.encode()
        self.socket.connect(endpoint)
        self.closed = False

    @property
    def has_input(self) -> bool:
        """Whether something has come in: its file tells that once only."""
        return not self.closed and bool(self.socket.poll(0))

    def send(self, kind: str, arrays: Iterable[Array] = (), **fields: Any) -> None:
        """Send a message; nothing happens where the peer is gone."""
        if not self.closed:
            self.socket.send_multipart(_frames(kind, arrays, fields))

    def flush(self) -> None:
        """Nothing waits here."""

    def deliver(self, on_message: Callable[[Any, Message], None]) -> None:
        """Hand over what has come in."""
        while self.has_input:
            try:
                found = _received(self.socket.recv_multipart())
            except MessageError:
                self.closed = True
                return
            for message in found:
                on_message(self, message)

    def close(self) -> None:
        """Let go of the connection."""
        self.closed = True
        self.socket.close()


class CurvePeer:
    """One of those who have connected, to answer to."""

    def __init__(self, socket: Any, name: bytes) -> None:
        self._socket, self._name = socket, name

    def send(self, kind: str, arrays: Iterable[Array] = (), **fields: Any) -> None:
        """Send a message; nothing happens where the peer is gone."""
        self._socket.send_multipart([self._name, *_frames(kind, arrays, fields)])


class CurveListener:
    """The end of all who connect to a server."""

    has_more_to_send = False
    closed = False

    def __init__(self, host: str = HOST) -> None:
        import zmq

        public, secret = zmq.curve_keypair()
        self.socket = _socket(zmq.ROUTER)
        self.socket.curve_server = True
        self.socket.curve_publickey, self.socket.curve_secretkey = public, secret
        self.socket.zap_domain = b"rehearsal"
        port = self.socket.bind_to_random_port(f"tcp://{host}")
        self.address = f"tcp://{host}:{port} {public.decode()}"
        self._peers: dict[bytes, CurvePeer] = {}

    @property
    def has_input(self) -> bool:
        """Whether something has come in: its file tells that once only."""
        return bool(self.socket.poll(0))

    def send(self, kind: str, arrays: Iterable[Array] = (), **fields: Any) -> None:
        """Nobody in particular is there: peers are answered to."""

    def flush(self) -> None:
        """Nothing waits here."""

    def deliver(self, on_message: Callable[[Any, Message], None]) -> None:
        """Hand over what has come in; what is no message is dropped."""
        while self.has_input:
            name, *frames = self.socket.recv_multipart()
            peer = self._peers.setdefault(name, CurvePeer(self.socket, name))
            try:
                found = _received(frames)
            except MessageError:
                continue
            for message in found:
                on_message(peer, message)

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()


class CurveGate:
    """Lets those in who have the run's key (ZeroMQ's authentication protocol, ZAP)."""

    has_more_to_send = False
    closed = False

    def __init__(self, keys: RunKeys) -> None:
        import zmq
        from zmq.utils import z85

        self._key = z85.decode(keys.public)
        self.socket = _socket(zmq.REP)
        self.socket.bind(GATE)

    @property
    def has_input(self) -> bool:
        """Whether somebody stands there."""
        return bool(self.socket.poll(0))

    def send(self, kind: str, arrays: Iterable[Array] = (), **fields: Any) -> None:
        """It sends answers alone."""

    def flush(self) -> None:
        """Nothing waits here."""

    def deliver(self, on_message: Callable[[Any, Message], None]) -> None:
        """Answer who is asked for; no message comes of it."""
        while self.has_input:
            version, number, _, _, _, mechanism, *keys = self.socket.recv_multipart()
            known = mechanism == b"CURVE" and keys == [self._key]
            status = (b"200", b"OK") if known else (b"400", b"unknown key")
            self.socket.send_multipart([version, number, *status, b"", b""])

    def close(self) -> None:
        """Let nobody in any more."""
        self.socket.close()
