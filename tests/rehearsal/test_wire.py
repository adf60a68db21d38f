"""Frames survive any cut; a question to who dies ends; bytes take their time."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from cprsim.rehearsal.wire import LENGTH, Peer, connect, listen, throttled

GAPS = np.arange(30, dtype=np.int32).reshape(10, 3)[:, 1]
ARRAYS = (np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(0), GAPS)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_messages_come_through_in_pieces_of_any_size(size: int) -> None:
    found: list[Any] = []
    frame = pickle.dumps((0, "push", ARRAYS, {"rate": 0.1}))
    sent = (LENGTH.pack(len(frame)) + frame) * 3
    peer = Peer(lambda *message: found.append(message))
    for first in range(0, len(sent), size):
        peer.data_received(sent[first : first + size])
    assert [(kind, fields) for kind, _, fields in found] == [("push", {"rate": 0.1})] * 3
    for ours, theirs in zip(found[2][1], ARRAYS, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def handle(kind: str, args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    if kind == "double":
        return 2 * args[0]
    if kind == "full":
        raise OSError(28, "No space left on device")
    if kind == "later":
        return asyncio.sleep(0.01, 2)
    return asyncio.get_running_loop().create_future()  # for ever


def test_questions_are_answered_now_or_later_and_end_with_the_process_asked(
    tmp_path: Path,
) -> None:
    async def course() -> None:
        address, others = str(tmp_path / "a.sock"), []

        def accepted() -> Peer:
            others.append(Peer(handle))
            return others[-1]

        server = await listen(address, accepted)
        peer = await connect(address)
        large = np.arange(1_000_000)  # more than a socket takes at once
        later, doubled = peer.ask("later"), await peer.ask("double", large)
        assert (doubled == 2 * large).all()
        assert await later == 2
        assert await peer.ask("full") is None
        never = peer.ask("never")
        others[0].close()
        with pytest.raises(ConnectionError):
            await never
        server.close()
        for gone in (peer, await connect(address)):
            assert gone.closed
            gone.send("more")
            with pytest.raises(ConnectionError):
                await gone.ask("double")

    asyncio.run(course())


def test_bytes_go_at_a_rate_that_may_change_and_a_cancellation_abandons_them() -> None:
    moved: list[int] = []

    def pieces() -> Iterator[int]:
        for number in range(4):
            moved.append(number)
            yield 100

    async def course() -> None:
        rates = iter((2000.0, 4000.0, 2000.0, 4000.0))
        began = monotonic()
        await throttled(pieces(), lambda: next(rates))
        assert 0.15 <= monotonic() - began < 1.0
        task = asyncio.create_task(throttled(pieces(), lambda: 1.0))
        await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(course())
    assert moved == [0, 1, 2, 3, 0]
