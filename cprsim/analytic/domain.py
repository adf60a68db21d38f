"""What the closed forms accept: numbers outside a formula's domain raise `ParameterError`."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isclose

from cprsim.errors import ParameterError


def require_positive(**numbers: float) -> None:
    """Refuse a number that is not positive and finite."""
    for name, number in numbers.items():
        if not 0.0 < number < inf:
            raise ParameterError(f"{name} is {number}; it must be positive and finite")


def require_not_negative(**numbers: float) -> None:
    """Refuse a number that is negative or not finite."""
    for name, number in numbers.items():
        if not 0.0 <= number < inf:
            raise ParameterError(f"{name} is {number}; it must be finite and not negative")


def require_share(**shares: float) -> None:
    """Refuse a share or probability outside [0, 1]."""
    for name, share in shares.items():
        if not 0.0 <= share <= 1.0:
            raise ParameterError(f"{name} is {share}; it must lie between 0 and 1")


def require_count(least: int, most: float = inf, **counts: int) -> None:
    """Refuse a count that is not an integer from `least` to `most`."""
    for name, count in counts.items():
        if count != int(count) or not least <= count <= most:
            raise ParameterError(f"{name} is {count}; it must be an integer >= {least}, <= {most}")


def require_same_length(**sequences: Sequence[float]) -> None:
    """Refuse sequences that are empty or differ in length."""
    lengths = {name: len(sequence) for name, sequence in sequences.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ParameterError(f"one value per level is needed in each sequence: {lengths}")


def whole_intervals(useful_h: float, interval_h: float) -> int:
    """How many intervals make up the job; refuse a job that is no whole number of them."""
    require_positive(useful_h=useful_h, interval_h=interval_h)
    n_intervals = round(useful_h / interval_h)
    if n_intervals < 1 or not isclose(n_intervals * interval_h, useful_h, rel_tol=1e-9):
        raise ParameterError(f"{useful_h} h is no whole number of intervals of {interval_h} h")
    return n_intervals
