"""Sockets over TCP let in who has the run's key, and nobody else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import astuple
from time import monotonic
from typing import Any

import numpy as np
import pytest

from cprsim.rehearsal import curve
from cprsim.rehearsal.curve import CurveChannel, CurveGate, CurveListener, RunKeys, fresh_keys
from cprsim.rehearsal.messages import HEAD, MAGIC, Message
from cprsim.rehearsal.worker import EventLoop

zmq = pytest.importorskip("zmq")
WAIT_S = 0.5


class Ends:
    """A listener that answers, and what came to it and back."""

    def __init__(self) -> None:
        self.keys, self.loop = fresh_keys(), EventLoop()
        self.gate, self.listener = CurveGate(self.keys), CurveListener()
        self.heard: list[Message] = []
        self.back: list[Message] = []
        self.loop.add(self.gate, self._answer)
        self.loop.add(self.listener, self._answer)

    def _answer(self, peer: Any, message: Message) -> None:
        self.heard.append(message)
        peer.send("echo", message.arrays, **message.fields)

    def connect(self, keys: RunKeys) -> CurveChannel:
        channel = CurveChannel(self.listener.address, keys)
        self.loop.add(channel, lambda _, message: self.back.append(message))
        return channel

    def wait(self, n_back: int) -> None:
        until = monotonic() + (20.0 if n_back else WAIT_S)
        while monotonic() < until and len(self.back) < max(n_back, 1):
            self.loop.turn(until)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    """In a context of its own: a process has one gate."""
    monkeypatch.setattr("cprsim.rehearsal.curve._context_of", 0)
    made = Ends()
    yield made
    for one in tuple(made.loop._channels):
        made.loop.remove(one)
    curve._context.destroy(0)


def test_messages_come_and_go(ends: Ends) -> None:
    channel, rows = ends.connect(ends.keys), np.arange(6, dtype=np.float32).reshape(2, 3)
    for number in range(50):
        channel.send("pull", (rows,), seq=number)
    ends.wait(50)
    assert [message.fields["seq"] for message in ends.back] == list(range(50))
    np.testing.assert_array_equal(ends.back[-1].arrays[0], rows)


def test_who_has_another_key_is_turned_away(ends: Ends) -> None:
    ends.connect(fresh_keys()).send("pull", seq=1)
    ends.wait(0)
    assert ends.heard == []


def test_who_encrypts_nothing_is_turned_away(ends: Ends) -> None:
    with zmq.Context() as context, context.socket(zmq.DEALER) as plain:
        plain.linger = 0
        plain.connect(ends.listener.address.partition(" ")[0])
        plain.send(b"hello")
        ends.wait(0)
    host, port = ends.listener.address.partition(" ")[0].removeprefix("tcp://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(HEAD.pack(MAGIC, 2, 0) + b"{}")
        ends.wait(0)
    assert ends.heard == []


def test_what_is_no_message_is_dropped(ends: Ends) -> None:
    channel = ends.connect(ends.keys)
    channel.socket.send(b"x" * 100)
    channel.send("pull", seq=7)
    ends.wait(1)
    assert [message.fields["seq"] for message in ends.heard] == [7]


def test_each_run_has_keys_of_its_own() -> None:
    one, two = (astuple(fresh_keys()) for _ in range(2))
    assert not set(one) & set(two)
