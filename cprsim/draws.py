"""What each save, load, detection and rescheduling takes, drawn before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cprsim.failures.distributions import Constant
from cprsim.records import Costs, Duration, Floats, Transfer
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
    n_replications: int
    fixed_h: float | None = field(init=False)
    table: Floats = field(init=False, repr=False)  # (n_drawn, n_replications) [h]
    _rng: np.random.Generator | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self.fixed_h = self.duration.mean_h if isinstance(self.duration, Constant) else None
        self.table = np.zeros((0, self.n_replications))

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
        rng = self._rng = self._rng or stream(self.seed, self.block, self.name)
        n_more = max(n + 1, 2 * len(self.table)) - len(self.table)
        more = [self.duration.sample(rng, self.n_replications) for _ in range(n_more)]
        self.table = np.vstack([self.table, *more])


@dataclass(frozen=True, slots=True)
class CostDraws:
    """The draws of all costs of a block of replications; a `Transfer` where storage decides."""

    save_stall: Draws | Transfer
    save_background: Draws | Transfer | None
    load: Draws | Transfer
    detect: Draws
    reschedule: Draws

    @classmethod
    def of(cls, costs: Costs, seed: int, block: int, n_replications: int) -> CostDraws:
        def draws(duration: Duration, name: str) -> Draws:
            return Draws(duration, seed, block, f"costs/{name}", n_replications)

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
