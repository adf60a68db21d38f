"""A process of the job: a spare until the supervisor makes it a server or a trainer.

It dies with whoever forked it (the fork server, which dies with the supervisor), and by itself when
the supervisor closes the connection. Heartbeats, transfers and requests take turns in one event
loop, so that a process that hangs sends no heartbeats either.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from cprsim.errors import CprsimError
from cprsim.kernel.loops import Array
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.wire import Message, Peer, connect, forever, listen

PR_SET_PDEATHSIG = 1


class WorkerRole(Protocol):
    """What a worker does once it is no longer a spare: a server's work or a trainer's.

    A message KIND, whoever sends it, is handled by the method `do_KIND`.
    """

    position: int  # of the job, as far as it knows


@dataclass(frozen=True, slots=True, eq=False)
class Inherited:
    """What a forked process inherits from its parent."""

    material: Material
    table: Array  # (n_rows, d) at the start of the run
    dense: Array


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent dies."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Worker:
    """A forked process: its connections, its heartbeats, and its role once it has one."""

    supervisor: Peer

    def __init__(self, inherited: Inherited, roles: Roles) -> None:
        self.inherited, self._roles = inherited, roles
        self.role: WorkerRole | None = None

    async def work(self, supervisor: str) -> None:
        """Do what one is told, until the supervisor is gone."""
        asyncio.get_running_loop().set_exception_handler(self._report)
        server = await listen(address_of(supervisor, os.getpid()), lambda: Peer(self._handle))
        self.supervisor = await connect(supervisor, self._handle, lambda: os._exit(0))
        async with server:
            if not self.supervisor.closed:  # else the run was over before this process was there
                await forever()

    def _handle(self, peer: Peer, message: Message) -> Any:
        who = self if message.kind in ("reserve", "assign") else self.role
        if who is None:  # what a spare is told is meant for its predecessor
            return None
        return getattr(who, f"do_{message.kind}")(*message.arrays, **message.fields)

    async def do_reserve(self, heartbeat_s: float) -> None:
        """Send heartbeats from now on; instants that were missed are skipped."""
        due_at = monotonic()
        while True:
            position = 0 if self.role is None else self.role.position
            self.supervisor.send("beat", at=monotonic(), position=position)
            due_at += heartbeat_s * (1 + max(0.0, (monotonic() - due_at) // heartbeat_s))
            await asyncio.sleep(due_at - monotonic())

    def do_assign(self, role: str, **orders: Any) -> None:
        """Take a role; nothing where a recovery was cut off that had asked before."""
        self.role = self.role or self._roles[role](self, **orders)

    def _report(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Send the supervisor an error that ends the run."""
        error = context.get("exception")
        known = error is None or isinstance(error, CprsimError)
        trace = "" if known else "".join(traceback.format_exception(error, limit=-3))
        self.supervisor.send("error", text=trace or context["message"])


Roles = Mapping[str, Callable[..., WorkerRole]]


def address_of(supervisor: str, pid: int) -> str:
    """Where a process listens, in the folder where its supervisor does."""
    return str(Path(supervisor).parent / f"w{pid}.sock")


def main(inherited: Inherited, supervisor: str, parent: int, roles: Roles) -> None:
    """Main function of a forked process; it never returns."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    gc.freeze()
    gc.disable()
    try:
        asyncio.run(Worker(inherited, roles).work(supervisor))
    finally:
        os._exit(1)
