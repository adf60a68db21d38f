"""How much memory one process may take for what it is asked, and how a user raises it."""

from __future__ import annotations

import os

from cprsim.errors import ParameterError
from cprsim.units import SIZE

MEMORY = "CPRSIM_MEMORY"  # the environment variable that says so, such as "4 GB"
DEFAULT_MEMORY = "1 GB"


def memory_bytes() -> float:
    """Memory that the data of one process may take [bytes].

    Raises ParameterError where `CPRSIM_MEMORY` is no size above 0.
    """
    text = os.environ.get(MEMORY, DEFAULT_MEMORY)
    try:
        size = SIZE.parse(text)
        if size <= 0:
            raise ParameterError("must be above 0")
    except ParameterError as error:
        raise ParameterError(f"{MEMORY}={text}: {error}") from None
    return size


def how_to_raise() -> str:
    """The end of a `BudgetError`'s message."""
    size = SIZE.format(memory_bytes())
    return f"the budget is {size}; {MEMORY}=... in the environment raises it"
