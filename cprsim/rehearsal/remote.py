"""The processes of a rehearsal on several machines, as the supervisor knows them.

Each node has an agent (`agent`), and the supervisor a connection to each: messages, signals and
deaths go through it. Files of saves lie in a folder that all nodes see; everything else is private
to its node. Instants that a process tells are those of its node's clock: the difference to the
supervisor's is measured by round trips at the start of each run, and taken to stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from time import monotonic
from typing import Any

from cprsim.errors import WorkerError
from cprsim.rehearsal.curve import CurveChannel, RunKeys, fresh_keys
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.messages import Message
from cprsim.rehearsal.nodes import END_S, START_S, JobProcess, JobProcesses
from cprsim.results.publish import remove_leftovers, workshop
from cprsim.whole_file import naming

ROUND_TRIPS = 20  # of which the shortest tells the clock


@dataclass(frozen=True, slots=True)
class AgentAt:
    """Where the agent of a node is found."""

    host: str  # others find the processes of this node there
    address: str


Launch = Callable[[Path, str], AbstractContextManager[list[AgentAt]]]
"""Agents of all nodes, while the block lasts, given the folder that they read and a public key."""


class NodeLink:
    """The connection to a node's agent."""

    def __init__(self, at: AgentAt, keys: RunKeys) -> None:
        self.host, self._channel = at.host, CurveChannel(at.address, keys)
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._numbers = count(1)
        self.ahead_s = 0.0  # of the node's clock before this one's
        self.on_message: Callable[[NodeLink, Message], None] | None = None

    async def open(self, name: str, on_message: Callable[[NodeLink, Message], None]) -> None:
        """Begin a run there, and compare the clocks."""
        self.on_message = on_message
        asyncio.get_running_loop().add_reader(self._channel.socket, self._turn)
        await self.ask("open", name=name)
        trips = [await self._round_trip() for _ in range(ROUND_TRIPS)]
        self.ahead_s = min(trips)[1]

    async def _round_trip(self) -> tuple[float, float]:
        """Its length, and how far the node's clock is ahead if it stood there half-way."""
        began = monotonic()
        told = await self.ask("clock")
        ended = monotonic()
        return ended - began, float(told.fields["at"]) - (began + ended) / 2

    async def close(self) -> None:
        """End the run there: all processes are killed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ask("close"), END_S)
        asyncio.get_running_loop().remove_reader(self._channel.socket)

    def send(self, kind: str, **fields: Any) -> None:
        """Send the agent a message; sending may hide that something has come in."""
        self._channel.send(kind, **fields)
        asyncio.get_running_loop().call_soon(self._turn)

    async def ask(self, kind: str, **fields: Any) -> Message:
        """Send a request, and wait for the answer. Raises WorkerError where none comes."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(kind, ask=number, **fields)
            return await asyncio.wait_for(self._waiting[number], START_S)
        except TimeoutError:
            raise WorkerError(f"the node {self.host} does not answer any more") from None
        finally:
            del self._waiting[number]

    def _turn(self) -> None:
        self._channel.deliver(self._take)

    def _take(self, channel: CurveChannel, message: Message) -> None:
        future = self._waiting.get(int(message.fields.get("re", 0)))
        if future is not None:
            future.set_result(message)
        elif self.on_message is not None:
            self.on_message(self, message)

    def disconnect(self) -> None:
        """Let go of the connection."""
        self._channel.close()


class RemoteProcess(JobProcess):
    """A process of another node."""

    is_dead = False

    def __init__(self, link: NodeLink, number: int, pid: int) -> None:
        super().__init__()
        self._link, self._number = link, number
        self.pid, self.host = pid, link.host

    def send(self, kind: str, **fields: Any) -> None:
        about = {"kind": kind, "fields": fields}
        self._link.send("to", process=self._number, message=about)

    def signal(self, number: int) -> None:
        self._link.send("signal", process=self._number, number=number)

    def relayed(self, message: Message) -> None:
        """Take in what the agent has passed on; its instants become those of this clock."""
        about = message.fields["message"]
        fields = dict(about["fields"])
        if "at" in fields:
            fields["at"] = float(fields["at"]) - self._link.ahead_s
        self.take(Message(str(about["kind"]), fields, message.arrays))


class RemoteGroup(JobProcesses):
    """The processes of one run, spread over the nodes."""

    def __init__(self, links: Iterable[NodeLink], name: str) -> None:
        super().__init__()
        self._links, self._name = list(links), name
        self._in_turn = cycle(self._links)
        self._processes: dict[tuple[NodeLink, int], RemoteProcess] = {}

    async def open(self) -> None:
        await asyncio.gather(*(link.open(self._name, self._take) for link in self._links))

    def fork(self, n: int) -> None:
        for _ in range(n):
            next(self._in_turn).send("fork")

    async def close(self) -> None:
        await asyncio.gather(*(link.close() for link in self._links))

    def _take(self, link: NodeLink, message: Message) -> None:
        who = link, int(message.fields.get("process", -1))
        if message.kind == "greeted":
            self._processes[who] = RemoteProcess(link, who[1], int(message.fields["pid"]))
            self._spares.append(self._processes[who])
            self._greeted.set()
        elif who in self._processes and message.kind == "died":
            self._processes[who].is_dead = True
        elif who in self._processes and message.kind == "of":
            self._processes[who].relayed(message)


class RemoteNodes:
    """The nodes of a session, and its folder that they all see; both end with the `with` block."""

    def __init__(
        self, material: Material, shared: Path, launch: Launch, say: Callable[[str], None]
    ) -> None:
        self._material, self._shared, self._launch, self._say = material, shared, launch, say

    def __enter__(self) -> RemoteNodes:
        remove_leftovers(self._shared)
        with ExitStack() as stack:
            self.folder = stack.enter_context(workshop(self._shared / "cprsim"))
            with naming(self.folder):
                self._material.write(self.folder)
            keys = fresh_keys()
            agents = stack.enter_context(self._launch(self.folder, keys.public))
            self._links = [NodeLink(one, keys) for one in agents]
            self._say(f"nodes: {', '.join(one.host for one in agents)}")
            for link in self._links:
                stack.callback(link.disconnect)
            self._stack = stack.pop_all()
        return self

    def group(self, name: str) -> RemoteGroup:
        """The processes of a run."""
        return RemoteGroup(self._links, name)

    def __exit__(self, *error: object) -> None:
        self._stack.close()
