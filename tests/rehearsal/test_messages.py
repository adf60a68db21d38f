"""Frames survive any cut, and what is no frame is refused."""

from __future__ import annotations

import pickle
import socket
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import WorkerError
from cprsim.rehearsal.messages import (
    Assembler,
    Channel,
    Message,
    MessageError,
    address_in,
    connect,
    listen,
    packed,
)


def as_bytes(message: Message) -> bytes:
    return b"".join(bytes(piece) for piece in packed(message))


A_MESSAGE = Message(
    "push", {"seq": 7, "rate": 0.1}, (np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(0))
)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_messages_come_through_in_pieces_of_any_size(size: int) -> None:
    sent = as_bytes(A_MESSAGE) * 3
    assembler, found = Assembler(), []
    for first in range(0, len(sent), size):
        found += assembler.feed(sent[first : first + size])
    assert [message.kind for message in found] == ["push"] * 3
    assert found[2].fields == {"seq": 7, "rate": 0.1}
    assert (found[2].arrays[0] == A_MESSAGE.arrays[0]).all()
    assert found[2].arrays[1].shape == (0,)


def test_a_slice_with_gaps_arrives_as_it_looks() -> None:
    every_third = np.arange(30, dtype=np.int32).reshape(10, 3)[:, 1]
    (found,) = Assembler().feed(as_bytes(Message("rows", {}, (every_third,))))
    assert found.arrays[0].tolist() == every_third.tolist()


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        raise AssertionError("it was pickled or unpickled")


def test_objects_are_neither_sent_nor_taken() -> None:
    with pytest.raises(TypeError):
        packed(Message("x", {"what": Evil()}))
    with pytest.raises(MessageError):
        Assembler().feed(pickle.dumps({"a": 1}) + b"\0" * 64)
    whole = as_bytes(Message("x", {}, (np.zeros(1, np.float32),)))
    with pytest.raises(MessageError):
        Assembler().feed(whole.replace(b'"<f4"', b'"|O8"'[:5]))


def test_a_header_that_lies_about_its_body_is_refused() -> None:
    whole = as_bytes(Message("x", {}, (np.zeros(4, np.float32),)))
    with pytest.raises(MessageError):
        Assembler().feed(whole.replace(b"[4]", b"[5]"))


def test_a_peer_that_does_not_read_blocks_nobody() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    channel.send("rows", (np.zeros(1_000_000, np.float64),))
    assert channel.has_more_to_send
    other, got = Channel(theirs), []
    while not got:
        got += other.receive()
        channel.flush()
    assert got[0].arrays[0].shape == (1_000_000,)
    theirs.close()
    channel.send("more")
    assert channel.closed
    channel.close()


def test_a_socket_is_found_by_its_address(tmp_path: Path) -> None:
    address = address_in(tmp_path, "a.sock")
    server = listen(address)
    channel = connect(address)
    channel.close()
    server.close()
    with pytest.raises(OSError, match="refused"):
        connect(address)
    with pytest.raises(WorkerError, match="no transport"):
        connect("http://somewhere")
