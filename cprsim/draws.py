"""What each save, load, detection and rescheduling takes, drawn before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cprsim.failures.distributions import Constant
from cprsim.records import Costs, Duration, Floats, Ints, Transfer
from cprsim.streams import stream


@dataclass(slots=True)
class Draws:
    """The nth draw of one duration in each replication of a block.

    Draws are made for the whole block at once, nth after nth, so that a value depends on (seed,
    block, name, replication, n) alone, not on the strategy or the engine that asks.
    """

    duration: Duration
    seed: int
    block: int
    name: str
    n_replications: int  # of a block
    n_blocks: int = 1  # consecutive ones from `block` on, their replications side by side
    fixed_h: float | None = field(init=False)
    _table: Floats = field(init=False, repr=False)  # (n_drawn, n_replications)
    _sums: Floats = field(init=False, repr=False)  # (n_drawn + 1, n_replications) of those before

    def __post_init__(self) -> None:
        self.fixed_h = self.duration.mean_h if isinstance(self.duration, Constant) else None
        width = self.n_replications * self.n_blocks
        self._table, self._sums = np.zeros((0, width)), np.zeros((1, width))

    def hours(self, replication: int, n: int) -> float:
        """The nth draw of one replication [h]; both count from 0."""
        if self.fixed_h is not None:
            return self.fixed_h
        if n >= len(self._table):
            self._extend(n)
        return float(self._table[n, replication])

    def of(self, replication: Ints, n: Ints) -> Floats:
        """The nth draw of each of some replications [h], both (n_asked,)."""
        if self.fixed_h is not None:
            return np.full(len(replication), self.fixed_h)
        if len(n) and n.max() >= len(self._table):
            self._extend(int(n.max()))
        return self._table[n, replication]

    def sum_before(self, replication: Ints, n: Ints) -> Floats:
        """Sum of the draws before the nth of each of some replications [h], both (n_asked,)."""
        if self.fixed_h is not None:
            return n * np.float64(self.fixed_h)
        if len(n) and n.max() >= len(self._sums):
            self._extend(int(n.max()))
        return self._sums[n, replication]

    def _extend(self, n: int) -> None:
        wanted = max(n + 1, 2 * len(self._table))
        of_blocks = [self._drawn(self.block + i, wanted) for i in range(self.n_blocks)]
        self._table = np.hstack(of_blocks)
        self._sums = np.vstack([np.zeros(self._table.shape[1]), self._table.cumsum(axis=0)])

    def _drawn(self, block: int, n: int) -> Floats:
        rng = stream(self.seed, block, self.name)
        return np.stack([self.duration.sample(rng, self.n_replications) for _ in range(n)])


@dataclass(frozen=True, slots=True)
class CostDraws:
    """The draws of all costs of a block of replications; a `Transfer` where storage decides."""

    save_stall: Draws | Transfer
    save_background: Draws | Transfer | None
    load: Draws | Transfer
    detect: Draws
    reschedule: Draws

    @classmethod
    def of(
        cls, costs: Costs, seed: int, block: int, n_replications: int, n_blocks: int = 1
    ) -> CostDraws:
        def draws(duration: Duration, name: str) -> Draws:
            return Draws(duration, seed, block, f"costs/{name}", n_replications, n_blocks)

        def draws_or_transfer(cost: Duration | Transfer, name: str) -> Draws | Transfer:
            return cost if isinstance(cost, Transfer) else draws(cost, name)

        return cls(
            save_stall=draws_or_transfer(costs.save_stall, "save/stall"),
            save_background=None
            if costs.save_background is None
            else draws_or_transfer(costs.save_background, "save/background"),
            load=draws_or_transfer(costs.load, "load"),
            detect=draws(costs.detect, "detect"),
            reschedule=draws(costs.reschedule, "reschedule"),
        )
