"""Items by a number, the smallest first, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from cprsim.compiling import uncounted
from cprsim.simulate.numbers import NONE

HEAP = np.dtype(
    [
        ("n", "i8"),  # of the first row: how many are in it
        ("item", "i8"),  # at this place
        ("place", "i8"),  # of this item, counted from 1; 0: it is not in it
        ("key", "f8"),  # of this item
        ("order", "i8"),  # of this item among those with one key
    ],
    align=True,
)
"""Each item is in it once at most."""

Heap = Any  # (n_room,) of HEAP, for items below n_room


@uncounted
def first_of(heap: Heap) -> int:
    """The item with the smallest key; NONE where there is none."""
    return int(heap[0].item) if heap[0].n > 0 else NONE


@uncounted
def put(heap: Heap, item: int, key: float, order: int) -> None:
    """Have an item in it, with this key from now on."""
    heap[item].key, heap[item].order = key, order
    if heap[item].place == 0:
        heap[heap[0].n].item = item
        heap[0].n += 1
        heap[item].place = heap[0].n
    _sift(heap, item)


@uncounted
def drop(heap: Heap, item: int) -> None:
    """Have an item in it no more."""
    place = heap[item].place
    if place == 0:
        return
    heap[0].n -= 1
    last = heap[heap[0].n].item
    heap[item].place = 0
    if last != item:
        heap[place - 1].item, heap[last].place = last, place
        _sift(heap, last)


@uncounted
def _is_before(heap: Heap, one: int, other: int) -> bool:
    if heap[one].key == heap[other].key:
        return bool(heap[one].order < heap[other].order)
    return bool(heap[one].key < heap[other].key)


@uncounted
def _sift(heap: Heap, item: int) -> None:
    """Move an item to where it belongs."""
    at = heap[item].place - 1
    while at > 0 and _is_before(heap, item, heap[(at - 1) // 2].item):
        heap[at].item = heap[(at - 1) // 2].item
        heap[heap[at].item].place = at + 1
        at = (at - 1) // 2
    while 2 * at + 1 < heap[0].n:
        below = 2 * at + 1
        if below + 1 < heap[0].n and _is_before(heap, heap[below + 1].item, heap[below].item):
            below += 1
        if not _is_before(heap, heap[below].item, item):
            break
        heap[at].item = heap[below].item
        heap[heap[at].item].place = at + 1
        at = below
    heap[at].item, heap[item].place = item, at + 1
