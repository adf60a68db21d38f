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
from pathlib import Path
from time import monotonic
from typing import Any

from cprsim.errors import CprsimError
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.wire import Peer, connect, forever, listen
from cprsim.training.kernel.model import Dlrm

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent dies."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Worker:
    """A forked process: its connections, its heartbeats, and its role once it has one.

    A message KIND, whoever sends it, is handled by the method `do_KIND` of the role.
    """

    supervisor: Peer

    def __init__(self, material: Material, start: Dlrm) -> None:
        self.material, self.start = material, start
        self.role: Any = None

    async def work(self, supervisor: str) -> None:
        """Serve requests until the supervisor has ended."""
        asyncio.get_running_loop().set_exception_handler(self._report)
        server = await listen(address_of(supervisor, os.getpid()), lambda: Peer(self._handle))
        self.supervisor = await connect(supervisor, self._handle, lambda: os._exit(0))
        async with server:
            if not self.supervisor.closed:  # else the run was over before this process was there
                await forever()

    def _handle(self, kind: str, args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
        who = self if kind in ("reserve", "assign") else self.role
        if who is None:  # what a spare is told is meant for its predecessor
            return None
        return getattr(who, f"do_{kind}")(*args, **fields)

    async def do_reserve(self, heartbeat_s: float) -> None:
        """Send heartbeats from now on; missed instants are skipped."""
        due_at = monotonic()
        while True:
            position = 0 if self.role is None else self.role.position
            self.supervisor.send("beat", monotonic(), position)
            due_at += heartbeat_s * (1 + max(0.0, (monotonic() - due_at) // heartbeat_s))
            await asyncio.sleep(due_at - monotonic())

    def do_assign(self, role: Callable[..., Any], **orders: Any) -> None:
        """Take a role, unless a cut-off recovery assigned it before."""
        self.role = self.role or role(self, **orders)

    def _report(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Send the supervisor an error that ends the run."""
        error = context.get("exception")
        is_known = error is None or isinstance(error, CprsimError)
        trace = "" if is_known else "".join(traceback.format_exception(error, limit=-3))
        self.supervisor.send("error", trace or context["message"])


def address_of(supervisor: str, pid: int) -> str:
    """Socket of a process, in the folder of its supervisor's."""
    return str(Path(supervisor).parent / f"w{pid}.sock")


def main(worker: Worker, supervisor: str, parent: int) -> None:
    """Main function of a forked process; it never returns."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    gc.freeze()
    gc.disable()
    try:
        asyncio.run(worker.work(supervisor))
    finally:
        os._exit(1)
