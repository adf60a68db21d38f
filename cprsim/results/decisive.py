"""Records of an answer's sensitivity: break-evens, assumptions, spares and limits."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.files import Endless
from cprsim.job.records import Estimate

WITHOUT = "none"  # what is tried in place of a scope's share


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The value of an unknown input where another option becomes the cheapest; None: no value."""

    key: str
    unit: str
    low: float  # low, high: between which it lies, in `unit`
    high: float
    at: float | None
    becomes: str | None  # the option that is cheapest beyond `at`
    simulated: bool  # whether each value was simulated; else prices alone were changed


@dataclass(frozen=True, slots=True)
class Assumption:
    """An input that is assumed or recalled, and the answer at another value of it."""

    key: str
    mark: str
    value: str  # as the scenario says it
    tried: str  # `WITHOUT`: such failures are left out
    overhead: Endless  # of the choice, as a share of useful time
    overhead_tried: Endless  # the least, at the other value
    choice: str
    choice_tried: str  # the same unless another surely costs less


@dataclass(frozen=True, slots=True)
class SpareNeed:
    """How many spares change the answer, as jobs wait for them."""

    system: str  # or strategy
    n_spares: int
    n_now: int
    overhead: Estimate  # with so many spares
    is_best: bool  # with them; else they take half of the overhead of `system`


@dataclass(frozen=True, slots=True)
class HeldLimit:
    """A limit of a loss, and the upper bound that is compared with it."""

    quantity: str  # in words
    column: str  # of results that has it; `pls`, or that of a metric's loss
    most: float
    mean: float
    bound: float
    bound_words: str

    @property
    def sentence(self) -> str:
        limit = f"{self.bound_words}; limit {self.most:g}"
        return f"Expected {self.quantity}: {self.mean:.3g}; at most {self.bound:.3g} ({limit})."

    @property
    def cell(self) -> str:
        """The bound and the limit, marked if the bound exceeds it."""
        words = "limit" if self.bound <= self.most else "over"
        return f"{self.quantity} {self.bound:.3g} ({words} {self.most:g})"
