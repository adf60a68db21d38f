"""Spares as they are counted: first come, first served, and back after repair."""

from __future__ import annotations

import asyncio
from math import inf
from time import monotonic

from cprsim.rehearsal.spares import SpareNodes


def course_of(n_free: float, *steps: tuple[str, int]) -> tuple[list[int], list[int]]:
    """Slots that were given nodes, and how many at each repair, after these steps."""
    given: list[int] = []
    at_repair: list[int] = []

    async def course() -> None:
        spares = SpareNodes(
            n_free, lambda: at_repair.append(len(given)), lambda slot, at: given.append(slot)
        )
        begin = monotonic()
        for number, (what, slot) in enumerate(steps):
            if what == "lose":
                spares.lose(slot, begin + 0.01 * (number + 1))
            elif what == "ask":
                spares.ask(slot, monotonic())
            else:
                assert (await spares.given(slot) >= begin) == (n_free < inf)

    asyncio.run(course())
    return given, at_repair


def test_a_slot_waits_for_the_next_repair_in_the_order_of_asking() -> None:
    steps = [("lose", 1), ("lose", 2), ("lose", 0), ("ask", 2), ("ask", 0), ("ask", 1)]
    given, at_repair = course_of(1, *steps, ("wait", 1))
    assert given == [2, 0, 1]
    assert at_repair[:2] == [1, 2]  # the third node may be back before the last slot has noticed


def test_a_slot_without_a_node_loses_none_and_asks_once() -> None:
    steps = [("lose", 1), ("lose", 1), ("ask", 1), ("ask", 1), ("wait", 1)]
    assert course_of(0, *steps) == ([1], [0])


def test_where_one_is_always_free_nobody_waits() -> None:
    assert course_of(inf, ("lose", 1), ("ask", 1), ("wait", 1)) == ([], [])
