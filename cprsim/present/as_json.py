"""Numbers of ``--json``: those that there are not are null, never NaN or Infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cprsim.codec import finite_or_none


class HasInterval(Protocol):
    """A number with an interval."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def interval(
    estimate: HasInterval, scaled: Callable[[float], float] = float
) -> dict[str, float | None]:
    """Mean, low and high; each null where it is not finite.

    Parameters
    ----------
    scaled : is applied to each of the three, such as a price
    """
    return {
        name: finite_or_none(scaled(getattr(estimate, name))) for name in ("mean", "low", "high")
    }
