"""Draws that only some are kept of: in pieces, so that memory follows what is kept.

A stream is the same whether its numbers are drawn at once or piece after piece, so that who asks
for some replications of a block gets those that the whole block has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from cprsim.records import Floats, Ints

PIECE = 2**18  # numbers that are drawn at once where not all are kept

Numbers = TypeVar("Numbers", Floats, Ints)
Kept = slice | Ints
"""Which of some draws are kept: a slice with both ends, or their places in order."""


def drawn(
    sample: Callable[[int], Numbers], n: int, kept: Kept | None, into: Numbers | None = None
) -> Numbers:
    """Some of `n` draws; all of them are drawn.

    Parameters
    ----------
    sample : draws so many, the same at once as in pieces
    kept : None for all
    into : (n_kept,) where they go; a new array where there is none
    """
    if kept is None:
        return sample(n)
    out = into
    for begin, end in pieces(n):
        piece = sample(end - begin)
        to, mine = _within(kept, begin, end)
        if out is None:
            out = np.empty(n_kept(kept, n), piece.dtype)
        out[to] = piece[mine]
    return sample(0) if out is None else out


def integers(
    rng: np.random.Generator, low: int, high: int, n: int, kept: Kept | None = None
) -> Ints:
    """Some of `n` random integers from `low` to below `high`; all of them are drawn."""

    def sample(size: int) -> Ints:
        return rng.integers(low, high, size)

    return drawn(sample, n, kept)


def pieces(n: int) -> Iterator[tuple[int, int]]:
    """Where the pieces of `n` draws begin and end."""
    for begin in range(0, n, PIECE):
        yield begin, min(begin + PIECE, n)


def n_kept(kept: Kept | None, n: int) -> int:
    """How many of `n` draws are kept."""
    if kept is None:
        return n
    return kept.stop - kept.start if isinstance(kept, slice) else len(kept)


def _within(kept: Kept, begin: int, end: int) -> tuple[slice, slice | Ints]:
    """Where what is kept of the draws from `begin` to `end` goes, and its places among them."""
    if isinstance(kept, slice):
        first, last = max(kept.start, begin), min(kept.stop, end)
        last = max(first, last)
        return slice(first - kept.start, last - kept.start), slice(first - begin, last - begin)
    to = slice(*np.searchsorted(kept, [begin, end]).tolist())
    return to, kept[to] - begin
