"""A process of the job: a spare until the supervisor makes it a server or a trainer.

It dies with whoever forked it (the nursery, which dies with the supervisor), and by itself when
the supervisor closes the connection.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import traceback
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from cprsim.kernel.loops import Array
from cprsim.rehearsal.hub import Hub
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.messages import Channel, Message, connect

PR_SET_PDEATHSIG = 1


class Duty(Protocol):
    """What a worker does once it is no spare any more."""

    address: str  # where others find it; empty: nobody has to

    def on_message(self, channel: Channel, message: Message) -> None:
        """Do what the supervisor asks."""

    def advance(self) -> None:
        """Go on with what it has to do, or wait for the next thing."""

    def account(self) -> dict[str, float]:
        """What it has counted itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Heirloom:
    """What a forked process has from its parent."""

    material: Material
    table: Array  # (n_rows, d) at the start of the run
    dense: Array  # (n_dense,)


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends, however it ends; end at once where it already has."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Worker:
    """One process: its connection to the supervisor, its heartbeats, its duty."""

    def __init__(self, heirloom: Heirloom, address: str, key: str) -> None:
        self.heirloom, self.hub = heirloom, Hub()
        self.folder = Path(address.partition(":")[2]).parent
        self.supervisor = connect(address)
        self.hub.add(self.supervisor, self._on_message, lambda channel: os._exit(0))
        self.duty: Duty | None = None
        self.supervisor.send("hello", key=key)

    def run(self) -> None:
        """Work until the supervisor says that it is over."""
        while True:
            if self.duty is None:
                self.hub.turn(inf)
            else:
                self.duty.advance()

    def _on_message(self, channel: Channel, message: Message) -> None:
        if message.kind == "reserve":
            self.hub.every(float(message.fields["heartbeat"]), self._beat)
        elif message.kind == "assign":
            self._assign(channel, message)
        elif message.kind == "end":
            os._exit(0)
        elif self.duty is not None:
            self.duty.on_message(channel, message)

    def _assign(self, channel: Channel, message: Message) -> None:
        from cprsim.rehearsal.server import Server
        from cprsim.rehearsal.trainer import TrainerProcess

        duty = Server if message.fields["role"] == "server" else TrainerProcess
        self.duty = duty(self, message.fields)
        channel.send("assigned", re=message.fields["ask"], address=self.duty.address)

    def _beat(self) -> None:
        account = {} if self.duty is None else self.duty.account()
        self.supervisor.send("beat", at=monotonic(), account=account)

    def complain(self, text: str) -> None:
        """Tell the supervisor what can't go on."""
        self.supervisor.send("error", text=text)


def main(heirloom: Heirloom, address: str, key: str, parent: int) -> None:
    """What a forked process does; it never returns."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to answer
    gc.freeze()
    gc.disable()
    worker: Any = None
    try:
        worker = Worker(heirloom, address, key)
        worker.run()
    except Exception:
        if worker is not None:
            worker.complain(traceback.format_exc(limit=-3))
    finally:
        os._exit(1)
