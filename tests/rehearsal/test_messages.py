"""Frames survive any cut; a peer that does not read blocks nobody."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from cprsim.rehearsal.messages import Assembler, Channel, Message, connect, listen, packed


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
    address = str(tmp_path / "a.sock")
    server = listen(address)
    channel = connect(address)
    channel.close()
    server.close()
    with pytest.raises(OSError, match="refused"):
        connect(address)
