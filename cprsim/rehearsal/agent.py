"""A node's part in a rehearsal on several machines: it forks, watches and kills processes there.

    python -m cprsim.rehearsal.agent FOLDER HOST PUBLIC_KEY PARENT    its address on stdout

Processes talk to it as they would to the supervisor, over a private socket; it passes on what they
say, and what they are told. To the supervisor it is a server over TCP, encrypted (`curve`).

    supervisor   open (a group) -> opened;  close -> closed;  clock -> told;  fork
                 to (a process: a message);  signal (a process)
    to it        greeted (a process);  of (a process: a message);  died (a process)
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

from cprsim.rehearsal.curve import CurveGate, CurveListener, CurvePeer, RunKeys
from cprsim.rehearsal.material import read_material
from cprsim.rehearsal.messages import Message
from cprsim.rehearsal.nodes import ForkServer, ProcessGroup, WorkerProcess
from cprsim.rehearsal.worker import die_with_parent

Tell = Callable[..., None]  # the supervisor: kind, arrays, fields


class RelayedProcess(WorkerProcess):
    """A process of this node whose messages go on to the supervisor."""

    def __init__(self, group: RelayedGroup, tell: Tell) -> None:
        super().__init__(group)
        self._tell = tell
        self.number = -1  # once it has greeted

    def take(self, message: Message) -> None:
        if message.kind == "hello":
            super().take(message)
        else:
            about = {"kind": message.kind, "fields": dict(message.fields)}
            self._tell("of", message.arrays, process=self.number, message=about)

    def connection_lost(self, error: Exception | None) -> None:
        self._tell("died", process=self.number)


class RelayedGroup(ProcessGroup):
    """The processes of a run on this node."""

    def __init__(self, fork_server: ForkServer, name: str, tell: Tell) -> None:
        super().__init__(fork_server, name)
        self._tell = tell

    def connected(self) -> RelayedProcess:
        return RelayedProcess(self, self._tell)

    def greet(self, node: WorkerProcess, key: str) -> None:
        super().greet(node, key)
        if node in self.nodes and isinstance(node, RelayedProcess):
            node.number = len(self.nodes) - 1
            self._tell("greeted", process=node.number, pid=node.pid)


class NodeAgent:
    """Does what the supervisor says, on this node."""

    def __init__(self, fork_server: ForkServer, host: str, key: str) -> None:
        self._fork_server = fork_server
        self._ends = CurveGate(RunKeys(key, "")), CurveListener(host)
        self.address = self._ends[1].address
        self._supervisor: CurvePeer | None = None
        self._group: RelayedGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve for ever."""
        for end in self._ends:
            asyncio.get_running_loop().add_reader(end.socket, self._turn)
        self._turn()
        await asyncio.Event().wait()

    def _turn(self) -> None:
        for end in self._ends:
            end.deliver(self._on_message)

    def _tell(self, kind: str, arrays: Any = (), **fields: Any) -> None:
        """Tell the supervisor; sending may hide that something has come in."""
        assert self._supervisor is not None
        self._supervisor.send(kind, arrays, **fields)
        asyncio.get_running_loop().call_soon(self._turn)

    def _on_message(self, peer: CurvePeer, message: Message) -> None:
        fields, self._supervisor = message.fields, peer
        if message.kind == "clock":
            self._tell("told", re=fields["ask"], at=monotonic())
        elif message.kind == "open":
            self._do(self._open(str(fields["name"]), int(fields["ask"])))
        elif self._group is None:
            return
        elif message.kind == "fork":
            self._group.fork(1)
        elif message.kind == "to":
            about = fields["message"]
            self._group.nodes[int(fields["process"])].send(about["kind"], **about["fields"])
        elif message.kind == "signal":
            self._group.nodes[int(fields["process"])].signal(int(fields["number"]))
        elif message.kind == "close":
            self._do(self._close(self._group, int(fields["ask"])))

    def _do(self, what: Any) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, name: str, ask: int) -> None:
        self._group = RelayedGroup(self._fork_server, name, self._tell)
        await self._group.open()
        self._tell("opened", re=ask)

    async def _close(self, group: RelayedGroup, ask: int) -> None:
        await group.close()
        self._tell("closed", re=ask)


def main() -> None:
    """Warm the node's fork server, say where the agent is found, and serve until it is killed."""
    folder, host, key, parent = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ForkServer(read_material(Path(folder))) as fork_server:
        agent = NodeAgent(fork_server, host, key)
        os.write(1, f"{agent.address}\n".encode())
        asyncio.run(agent.serve())


if __name__ == "__main__":
    main()
