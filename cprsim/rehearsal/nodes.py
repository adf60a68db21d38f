"""The processes of a session as the supervisor knows them: forked, watched, killed."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

from cprsim.errors import WorkerError
from cprsim.files import naming
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.messages import Assembler, Message, packed, pid_of
from cprsim.results.folder import remove_leftovers, workshop
from cprsim.version import PACKAGE

START_S = 120.0  # at most until the fork server is warm: it may have to compile
FORK_S = 30.0  # at most until a forked process has connected
MOST_PATH = 80  # characters of the folder that sockets lie in; a socket's name has 107
END_S = 10.0  # at most until all are gone


class JobProcess(asyncio.Protocol):
    """One process: where it answers, when it last gave a sign of life."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group
        self._assembler = Assembler()
        self._transport: asyncio.Transport | None = None
        self._pidfd = -1
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._numbers = count(1)
        self.pid = 0
        self.slot: int | None = None
        self.address, self.assigned, self.given_up = "", False, False
        self.beat_at = monotonic()
        self.account: dict[str, float] = {}
        self.on_message: Callable[[JobProcess, Message], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.pid = pid_of(transport.get_extra_info("socket"))
        with suppress(ProcessLookupError):
            self._pidfd = os.pidfd_open(self.pid)
        self._group.greet(self)

    def data_received(self, data: bytes) -> None:
        for message in self._assembler.feed(data):
            self.take(message)

    def take(self, message: Message) -> None:
        """Take in a message of the process."""
        fields = message.fields
        if message.kind == "beat":
            self.beat_at, self.account = float(fields["at"]), dict(fields["account"])
        elif "re" in fields:
            future = self._waiting.pop(int(fields["re"]), None)
            if future is not None and not future.done():
                future.set_result(message)
        elif self.on_message is not None:
            self.on_message(self, message)

    async def ask(self, kind: str, **fields: Any) -> Message:
        """Send a request and wait for the answer; a process that has died never answers."""
        number = next(self._numbers)
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self.send(kind, ask=number, **fields)
            return await future
        finally:
            self._waiting.pop(number, None)

    def send(self, kind: str, **fields: Any) -> None:
        """Send a message; nothing happens where the process has ended."""
        if self._transport is not None and not self._transport.is_closing():
            for piece in packed(Message(kind, fields)):
                self._transport.write(piece)

    def signal(self, number: int) -> None:
        """Send a signal to this process, and to no other that got its number later."""
        with suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, number)

    @property
    def is_dead(self) -> bool:
        """Whether the process has ended."""
        if self._pidfd < 0:
            return True
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def forget(self) -> None:
        """Close the connection and the process's handle."""
        if self._transport is not None:
            self._transport.abort()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class ProcessGroup:
    """The processes of one run; each is a spare until it is taken."""

    def __init__(self, fork_server: ForkServer, name: str) -> None:
        self._spares: deque[JobProcess] = deque()
        self._greeted = asyncio.Event()
        self._fork_server, self.address = fork_server, str(fork_server.folder / f"{name}.sock")
        self.nodes: list[JobProcess] = []
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Be there for processes that connect."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: JobProcess(self), self.address)

    def greet(self, node: JobProcess) -> None:
        """Take in a process that has connected: it is a spare."""
        self.nodes.append(node)
        self._spares.append(node)
        self._greeted.set()

    def fork(self, n: int) -> None:
        """Ask for some more processes."""
        for _ in range(n):
            self._fork_server.fork(self.address)

    async def take(self) -> JobProcess:
        """A living spare. Raises WorkerError where none comes up in time."""
        deadline = monotonic() + FORK_S
        while True:
            while self._spares:
                node = self._spares.popleft()
                if not node.is_dead:
                    return node
            self._greeted.clear()
            try:
                await asyncio.wait_for(self._greeted.wait(), deadline - monotonic())
            except TimeoutError:
                raise WorkerError("no process of the rehearsal came up") from None

    async def close(self) -> None:
        """Kill all processes, and wait until they have ended."""
        if self._server is not None:
            self._server.close()
        deadline = monotonic() + END_S
        while any(not node.is_dead for node in self.nodes) and monotonic() < deadline:
            for node in self.nodes:  # those that have come just now, too
                node.signal(signal.SIGKILL)
            await asyncio.sleep(0.005)
        for node in self.nodes:
            node.forget()
        Path(self.address).unlink(missing_ok=True)


class ForkServer:
    """The parent of all workers, and the session's folder; both end with the `with` block."""

    def __init__(self, material: Material) -> None:
        self._material = material

    def __enter__(self) -> ForkServer:
        there = Path(tempfile.gettempdir())
        remove_leftovers(there)  # of supervisors that were killed
        self._stack = ExitStack()
        self.folder = self._stack.enter_context(workshop(there / "cprsim")) / "s"
        try:
            self.folder.mkdir(0o700)
            if len(str(self.folder)) > MOST_PATH:
                raise WorkerError(f"{there} is too long a path for sockets: set TMPDIR to another")
            with naming(there):
                self._material.write(self.folder)
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        }
        module = "cprsim.rehearsal.fork_server"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(self.folder), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_S)
        if not ready or self._process.stdout.readline() != "warm\n":
            raise WorkerError("the parent process of the rehearsal did not start")

    _process: subprocess.Popen[str] | None = None

    def fork(self, address: str) -> None:
        """Fork one process, which connects to an address."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{address}\n")
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerError("the parent process of the rehearsal is gone") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        self._stack.close()
