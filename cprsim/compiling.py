"""Loops compiled by numba: the one way in which this package compiles.

numba takes a third of a second to import, so a module of compiled loops is imported by who runs
them, when they run. Machine code is kept beside the source and holds as long as that one file does
not change: what is compiled together stands in one file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile on the first call, and keep the machine code for the next process."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile into every compiled function that calls it: for steps of nanoseconds."""
    return cast(F, numba.njit(nogil=True, error_model="numpy", forceinline=True)(function))
