"""What the tests of closed forms share: random streams, and means held to theory."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from cprsim.streams import stream

SEED = 11


def draws(name: str) -> np.random.Generator:
    """The random numbers of one test."""
    return stream(SEED, 0, f"tests/analytic/{name}")


def assert_mean(values: Sequence[float] | np.ndarray, theory: float) -> None:
    """The mean of independent values lies within 4 standard errors of theory."""
    mean, standard_error = float(np.mean(values)), float(np.std(values, ddof=1) / sqrt(len(values)))
    print(f"mean {mean:.6g}, theory {theory:.6g}, SE {standard_error:.2g}, n {len(values)}")
    assert abs(mean - theory) <= 4.0 * standard_error, (
        f"mean {mean:.6g}, theory {theory:.6g}, standard error {standard_error:.3g}"
    )
