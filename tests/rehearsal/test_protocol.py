"""What the processes of a run share: frames, throttles, files of saves, spares, steps."""

import asyncio
import pickle
from collections.abc import Iterator
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from cprsim.errors import ResultError
from cprsim.rehearsal.in_step import counts
from cprsim.rehearsal.nodes import SpareNodes
from cprsim.rehearsal.store import Arrays, SaveFiles, read, write, written
from cprsim.rehearsal.wire import LENGTH_PREFIX, Peer, connect, listen, throttled

GAPS = np.arange(30, dtype=np.int32).reshape(10, 3)[:, 1]
ARRAYS = (np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(0), GAPS)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_messages_come_through_in_pieces_of_any_size(size: int) -> None:
    found: list[Any] = []
    frame = pickle.dumps((0, "push", ARRAYS, {"rate": 0.1}))
    sent = (LENGTH_PREFIX.pack(len(frame)) + frame) * 3
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
        address, asked = str(tmp_path / "a.sock"), Peer(handle)
        server = await listen(address, lambda: asked)
        peer = await connect(address)
        large = np.arange(1_000_000)  # more than a socket takes at once
        later, doubled = peer.ask("later"), await peer.ask("double", large)
        assert (doubled == 2 * large).all()
        assert await later == 2
        assert await peer.ask("full") is None
        never = peer.ask("never")
        asked.close()
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


def content(value: float, n: int = 4, **rows: Any) -> Arrays:
    table = np.full((n, 2), value, np.float32)
    return rows | {"table": table, "row_state": np.zeros((n, 0), np.float32)}


def test_what_is_committed_whole_counts_in_order_and_what_is_torn_is_not_loaded(
    tmp_path: Path,
) -> None:
    store = SaveFiles(tmp_path)
    write(store.image("1"), content(0))
    write(store.part("1", 8), content(8))
    for number, row in ((9, 2), (10, 2), (11, 0)):
        write(store.part("1", number), content(number, 1, rows=np.array([row])))
    unfinished = written(store.part("1", 12), content(12))
    next(unfinished)
    unfinished.close()  # its server died
    for number in range(8, 13):
        store.commit(number)
    write(store.part("1", 13), content(13))
    store.install("1")
    path = store.image("1")
    assert read(path)["table"][:, 0].tolist() == [11, 8, 10, 8]
    good = path.read_bytes()
    flipped = [
        good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :] for at in range(0, len(good), 41)
    ]
    for bad in (*flipped, good[:-1], good[:5], b"", good + b"x"):
        path.write_bytes(bad)
        with pytest.raises(ResultError, match="image-1 is torn or damaged"):
            read(path)


@pytest.mark.parametrize(
    ("n_free", "steps", "given", "n_given_at_repairs"),
    [  # the third node may be back before the last slot has noticed
        (1, "lose 1, lose 2, lose 0, ask 2, ask 0, ask 1, wait 1", [2, 0, 1], [1, 2]),
        (0, "lose 1, lose 1, ask 1, ask 1, wait 1", [1], [0]),
        (inf, "lose 1, ask 1, wait 1", [], []),  # nobody waits
    ],
)
def test_spares_go_to_who_asks_first_once_and_are_back_after_repair(
    n_free: float, steps: str, given: list[int], n_given_at_repairs: list[int]
) -> None:
    served: list[int] = []
    at_repairs: list[int] = []

    async def course() -> None:
        spares = SpareNodes(
            n_free, lambda: at_repairs.append(len(served)), lambda slot, at: served.append(slot)
        )
        begin = monotonic()
        for number, step in enumerate(steps.split(", ")):
            what, slot = step[:-2], int(step[-1])
            if what == "lose":
                spares.lose(slot, begin + 0.01 * (number + 1))
            elif what == "ask":
                spares.ask(slot, monotonic())
            else:
                assert (await spares.given(slot) >= begin) == (n_free < inf)

    asyncio.run(course())
    assert (served, at_repairs[:2]) == (given, n_given_at_repairs)


WHOLE, PART = (128, True), (128, False)  # what who has a batch in hand answers to a halt


@pytest.mark.parametrize(
    ("stand", "count"),
    [
        ([WHOLE, WHOLE], True),  # one who is dead may have counted it
        ([WHOLE], True),
        ([WHOLE, (256, None)], True),
        ([WHOLE, PART], False),  # then nobody has
        ([PART], False),
        ([WHOLE, (128, None)], False),  # that one had not begun it
    ],
)
def test_a_batch_counts_where_all_who_live_have_all_of_it(
    stand: list[tuple[int, bool | None]], count: bool
) -> None:
    assert counts(stand) == count
