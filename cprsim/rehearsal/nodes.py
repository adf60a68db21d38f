"""The processes of a session as the supervisor knows them: forked, watched, killed, replaced."""

from __future__ import annotations

import asyncio
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf, isinf
from pathlib import Path
from time import monotonic
from typing import Any

from cprsim.errors import WorkerError
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.wire import Peer, listen
from cprsim.rehearsal.worker import address_of
from cprsim.results.folder import remove_leftovers, scratch_dir
from cprsim.version import PACKAGE

START_S = 120.0  # at most until the fork server is warm: it may have to compile
FORK_S = 30.0  # at most until a forked process has connected
MOST_PATH = 80  # characters of the folder that sockets lie in; a socket's name has 107
END_S = 10.0  # at most until all are gone
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class JobProcess(Peer):
    """One process: its address, and the instant of its last sign of life."""

    def __init__(self, group: ProcessGroup, on_message: Callable[..., None]) -> None:
        super().__init__(self._hear)
        self._group, self._on_message = group, on_message
        self.address, self.assigned = "", False
        self.noticed = asyncio.Event()  # that it is dead: it is given up
        self.beat_at = monotonic()
        self.position = 0  # of the job, as it said last
        self._pidfd = -1  # where it had ended before it was known

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        raw = transport.get_extra_info("socket").getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size
        )
        pid = int(CREDENTIALS.unpack(raw)[0])
        with suppress(ProcessLookupError):
            self._pidfd = os.pidfd_open(pid)
        self.address = address_of(self._group.address, pid)
        self._group.greet(self)

    def _hear(self, kind: str, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if kind == "beat":
            self.beat_at, self.position = args
        else:
            self._on_message(self, kind, *args)

    @property
    def given_up(self) -> bool:
        """Whether it counts as dead."""
        return self.noticed.is_set()

    def signal(self, number: int) -> None:
        """Send a signal to this process, and to no other that got its number later."""
        with suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, number)

    @property
    def is_dead(self) -> bool:
        if self._pidfd < 0:
            return True
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def forget(self) -> None:
        """Close the connection and the process's handle."""
        self.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class ProcessGroup:
    """The processes of one run; each is a spare until it is taken."""

    def __init__(self, fork_server: ForkServer, name: str) -> None:
        self._spares: asyncio.Queue[JobProcess] = asyncio.Queue()
        self._fork_server, self.address = fork_server, str(fork_server.folder / f"{name}.sock")
        self._nodes: list[JobProcess] = []
        self._n_forked = 0
        self._server: asyncio.Server | None = None

    async def open(self, on_message: Callable[..., None]) -> None:
        self._server = await listen(self.address, lambda: JobProcess(self, on_message))

    def greet(self, node: JobProcess) -> None:
        """Take in a process that has connected: it is a spare."""
        self._nodes.append(node)
        self._spares.put_nowait(node)

    def fork(self, n: int) -> None:
        for _ in range(n):
            self._fork_server.tell(f"{self.address}\n".encode())
            self._n_forked += 1

    async def take(self) -> JobProcess:
        """A living spare. Raises WorkerError where none comes up in time."""
        try:
            async with asyncio.timeout(FORK_S):
                while (node := await self._spares.get()).is_dead:
                    pass
        except TimeoutError:
            raise WorkerError("no process of the rehearsal came up") from None
        return node

    @property
    def _has_living(self) -> bool:
        server_runs = self._fork_server.process.poll() is None
        coming = self._n_forked > len(self._nodes) and server_runs
        return coming or not all(node.is_dead for node in self._nodes)

    async def close(self) -> None:
        """Kill all processes, those being started included, and wait until they have ended."""
        deadline = monotonic() + END_S
        while self._has_living and monotonic() < deadline:
            for node in self._nodes:
                node.signal(signal.SIGKILL)
            await asyncio.sleep(0.005)
        if self._server is not None:
            self._server.close()
        for node in self._nodes:
            node.forget()
        Path(self.address).unlink(missing_ok=True)


class ForkServer:
    """The parent of all workers, in the session's folder."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder, self.process = folder, process

    def tell(self, data: bytes) -> None:
        """Write to the standard input of its process."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError as error:
            raise WorkerError("the parent process of the rehearsal has ended") from error


@contextmanager
def forking(material: Material) -> Iterator[ForkServer]:
    """A warm fork server, which ends with the block; its folder is deleted."""
    parent = Path(tempfile.gettempdir())
    remove_leftovers(parent)  # of supervisors that were killed
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    command = [sys.executable, "-m", "cprsim.rehearsal.fork_server", str(os.getpid())]
    with scratch_dir(parent / "cprsim") as workplace:
        folder = workplace / "s"
        folder.mkdir(0o700)
        if len(str(folder)) > MOST_PATH:
            raise WorkerError(f"{parent} is too long a path for sockets: set TMPDIR to another")
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        ) as process:
            try:
                fork_server = ForkServer(folder, process)
                fork_server.tell(pickle.dumps(material))
                assert process.stdout is not None
                ready, _, _ = select.select([process.stdout], [], [], START_S)
                if not ready or process.stdout.readline() != b"warm\n":
                    raise WorkerError("the parent process of the rehearsal did not start")
                yield fork_server
            finally:
                process.kill()
                with suppress(OSError):  # what it has not read
                    assert process.stdin is not None
                    process.stdin.close()


# --------------------------------------------------------------------------- spares


class SpareNodes:
    """Nodes of a run as a scheduler counts them: free spares, nodes in repair, slots that wait.

    First come, first served.

    a slot: has a node --lose--> vacant --ask--> queued --(one is free)--> has a node
    """

    def __init__(
        self,
        n_free: float,
        on_repaired: Callable[[], None],
        on_given: Callable[[int, float], None],
    ) -> None:
        self._n_free, self._on_repaired, self._on_given = n_free, on_repaired, on_given
        self._vacant: dict[int, asyncio.Event] = {}  # slots; set when each gets its node
        self._queued: list[int] = []
        self._given_at: dict[int, float] = {}

    def lose(self, slot: int, repaired_at: float) -> None:
        """Mark a slot's node as failed; it is a spare again at a time of the monotonic clock."""
        if isinf(self._n_free) or slot in self._vacant:
            return
        self._vacant[slot] = asyncio.Event()
        delay_s = max(0.0, repaired_at - monotonic())
        asyncio.get_running_loop().call_later(delay_s, self._repaired)

    def ask(self, slot: int, at: float) -> None:
        """Queue a slot for a node from this instant on, at which its loss is known."""
        if slot in self._vacant and slot not in self._queued:
            self._queued.append(slot)
        self._give(at)

    async def given(self, slot: int) -> float:
        """Wait until a slot has a node; returns since when, -inf if it never had to ask."""
        if slot in self._vacant:
            await self._vacant[slot].wait()
        return self._given_at.get(slot, -inf)

    def _repaired(self) -> None:
        self._n_free += 1
        self._on_repaired()
        self._give(monotonic())

    def _give(self, at: float) -> None:
        while self._n_free and self._queued:
            slot = self._queued.pop(0)
            self._n_free -= 1
            self._given_at[slot] = at
            self._vacant.pop(slot).set()
            self._on_given(slot, at)
