"""Places the agents of a rehearsal by Ray: one on each node of a cluster, which has cprsim too.

An actor starts the agent's process and holds it: the agent ends with the actor, the actor with the
program that asked for it, whoever kills that. Nothing else of a rehearsal goes through Ray.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from cprsim.errors import ParameterError, WorkerError
from cprsim.rehearsal.nodes import START_S
from cprsim.rehearsal.remote import AgentAt, Launch

ANSWER_S = 5.0  # at most until a cluster answers
AUTO = "auto"


def agents_by_ray(address: str) -> Launch:
    """How to start an agent on each node of a cluster.

    Parameters
    ----------
    address : of the cluster, ``HOST:PORT``; ``auto``: the one that this machine is a node of

    Raises
    ------
    ParameterError : Ray is not installed, or no cluster answers there
    """
    try:
        _ray()
    except ImportError:
        raise ParameterError("--address needs Ray: pip install 'cprsim[ray]'") from None
    if address != AUTO:
        _require_answer(address)

    @contextmanager
    def launch(folder: Path, key: str) -> Iterator[list[AgentAt]]:
        with _cluster(address) as nodes:
            holders = _holders(nodes)  # an actor ends when nobody has it any more
            yield _started(holders, str(folder), key)
            del holders

    return launch


def _ray() -> Any:
    """Ray, which ships no types. Raises ImportError where it is not installed."""
    return import_module("ray")


def _require_answer(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), ANSWER_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ParameterError(
            f"--address: no Ray cluster answers at {address!r} ({error}); it is HOST:PORT as "
            "`ray start --head` says it, or auto"
        ) from None


@contextmanager
def _cluster(address: str) -> Iterator[list[str]]:
    """Its living nodes while the block lasts. Raises ParameterError where there is none."""
    ray = _ray()
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise ParameterError(f"--address {address}: {first}") from None
    try:
        yield [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    finally:
        ray.shutdown()


def _holders(nodes: list[str]) -> list[Any]:
    """An actor on each node."""
    on = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    actor = _ray().remote(num_cpus=0, max_restarts=0)(AgentHolder)
    return [actor.options(scheduling_strategy=on(node, soft=False)).remote() for node in nodes]


def _started(holders: list[Any], folder: str, key: str) -> list[AgentAt]:
    """Their agents. Raises WorkerError, with what it said, where one does not start."""
    ray = _ray()
    try:
        told = ray.get([one.start.remote(folder, key) for one in holders], timeout=2 * START_S)
    except ray.exceptions.RayError as error:
        raise WorkerError(f"a node of the cluster can't start its agent: {error}") from error
    return [AgentAt(host, address) for host, address in told]


class AgentHolder:
    """On a node: starts the agent's process, which ends with this one."""

    def start(self, folder: str, key: str) -> tuple[str, str]:
        """Start the agent; the node's host, and the agent's address."""
        if not Path(folder).is_dir():
            raise WorkerError(f"it does not see {folder}: name one by --shared that all nodes see")
        host = str(_ray().util.get_node_ip_address())
        command = [sys.executable, "-m", "cprsim.rehearsal.agent", folder, host, key]
        self._process = subprocess.Popen(
            [*command, str(os.getpid())], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_S)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            raise WorkerError(f"the agent on {host} did not start")
        return host, line.strip()
