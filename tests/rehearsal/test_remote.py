"""Processes of several nodes under one supervisor: two agents, here on one machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cprsim.records import EventKind
from cprsim.rehearsal.curve import HOST
from cprsim.rehearsal.material import fresh_model
from cprsim.rehearsal.orders import Kill
from cprsim.rehearsal.remote import AgentAt, RemoteNodes
from cprsim.rehearsal.supervisor import Supervisor
from tests.rehearsal import making

pytestmark = pytest.mark.long
pytest.importorskip("zmq")
TRAINER = making.N_SERVERS


@contextmanager
def two_agents(folder: Path, key: str) -> Iterator[list[AgentAt]]:
    command = [sys.executable, "-m", "cprsim.rehearsal.agent", folder, HOST, key, str(os.getpid())]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        yield [AgentAt(HOST, one.stdout.readline().strip()) for one in started if one.stdout]
    finally:
        for one in started:
            one.kill()
            one.communicate()


@pytest.mark.parametrize("rolls_back", [True, False], ids=["full", "partial"])
def test_a_run_over_two_nodes_is_what_the_kernel_makes_of_its_log(
    tmp_path: Path, rolls_back: bool
) -> None:
    """A server dies, one hangs, then the trainer dies with another; later a run without deaths."""
    what, test = making.material(optimizer="adagrad")
    todo = making.orders(
        what, Kill(0.4, (1,)), Kill(1.2, (2,), stops=True), Kill(2.2, (0, TRAINER)),
        rolls_back=rolls_back, over_tcp=True,
    )  # fmt: skip
    with RemoteNodes(what, tmp_path, two_agents, lambda _: None) as nodes:
        for number, orders in enumerate((todo, replace(todo, kills=()))):
            job = Supervisor(nodes, what, orders, nodes.folder / f"run-{number}", fresh_model(what))
            ran = job.run()
            assert {node._link for node in job._node.values()} == set(nodes._links)
            assert all(abs(link.ahead_s) < 0.05 for link in nodes._links)  # they share a clock
            measured, beside = making.beside_replay(ran, what, test)
            assert beside.agrees
            assert ran.n_false_alarms == 0
            assert (measured.log.kind == EventKind.FAILED).sum() == 4 * (number == 0)
    assert list(tmp_path.iterdir()) == []
