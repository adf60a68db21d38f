"""What each save, load, detection and rescheduling takes, drawn before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cprsim.budget import require_room
from cprsim.failures.distributions import Constant
from cprsim.records import Duration, Floats
from cprsim.streams import stream


@dataclass(slots=True)
class Draws:
    """The nth draw of one duration in each replication of a block, or in some of them.

    Draws are made for the whole block at once, nth after nth, so that a value depends on (seed,
    block, name, replication, n) alone, not on the strategy or the engine that asks, nor on who else
    is kept. Those that are kept are numbered from 0 on.
    """

    duration: Duration
    seed: int
    block: int
    name: str
    n_replications: int  # of the block
    kept: range | None = None  # the replications whose draws are wanted; None for all
    fixed_h: float | None = field(init=False)
    table: Floats = field(init=False, repr=False)  # (n_drawn, n_kept) [h]
    _rng: np.random.Generator | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self.fixed_h = self.duration.mean_h if isinstance(self.duration, Constant) else None
        n_kept = self.n_replications if self.kept is None else len(self.kept)
        self.table = np.zeros((0, n_kept))

    def hours(self, replication: int, n: int) -> float:
        """The nth draw of one replication [h]; both count from 0."""
        if self.fixed_h is not None:
            return self.fixed_h
        if n >= len(self.table):
            self.reach(n)
        return float(self.table[n, replication])

    def reach(self, n: int) -> None:
        """Have the nth draw in the table, and for a while those after it."""
        if self.fixed_h is not None or n < len(self.table):
            return
        n_before, n_kept = self.table.shape
        n_now = max(n + 1, 2 * n_before)
        require_room(
            8.0 * n_kept * (n_before + n_now),
            f"{n_now} draws of {self.name} for {n_kept} replications",
            "{} times fewer failures or saves would fit",
            fewer_fit=True,
        )
        rng = self._rng = self._rng or stream(self.seed, self.block, self.name)
        table = np.empty((n_now, n_kept))
        table[:n_before] = self.table
        mine = slice(None) if self.kept is None else slice(self.kept.start, self.kept.stop)
        for number in range(n_before, n_now):
            table[number] = self.duration.sample(rng, self.n_replications)[mine]
        self.table = table
