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
    estimate: HasInterval, scaled: Callable[[float], float] = float, *, mean: str = "mean"
) -> dict[str, float | None]:
    """Mean, low and high; each null where it is not finite.

    Parameters
    ----------
    scaled : is applied to each of the three, such as a price
    mean : the key of the first
    """
    numbers = {mean: estimate.mean, "low": estimate.low, "high": estimate.high}
    return {name: finite_or_none(scaled(value)) for name, value in numbers.items()}
