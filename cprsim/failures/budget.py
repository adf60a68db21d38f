"""How much memory one process may take for what it is asked, and how a user raises it."""

from __future__ import annotations

import os

from cprsim.errors import BudgetError, ParameterError, TooManyReplicationsError
from cprsim.files.units import SIZE

MEMORY = "CPRSIM_MEMORY"  # the environment variable that says so, such as "4 GB"
DEFAULT_MEMORY = "1 GB"


def memory_bytes() -> float:
    """Memory that the data of one process may take [bytes]."""
    text = os.environ.get(MEMORY, DEFAULT_MEMORY)
    try:
        size = SIZE.parse(text)
    except ParameterError as error:
        raise ParameterError(f"{MEMORY}={text}: {error}") from None
    if size <= 0:
        raise ParameterError(f"{MEMORY}={text}: must be above 0")
    return size


def how_to_raise() -> str:
    """The end of a `BudgetError`'s message."""
    size = SIZE.format(memory_bytes())
    return f"the budget is {size}; {MEMORY}=... in the environment raises it"


def require_room(
    n_bytes: float, what: str, remedy: str, *, fewer_fit: bool = False, share: float = 0.5
) -> None:
    """Refuse what would take more than its share of the budget, before it is allocated."""
    most = share * memory_bytes()
    if n_bytes <= most:
        return
    kind = TooManyReplicationsError if fewer_fit else BudgetError
    raise kind(
        f"{what} would take {megabytes(n_bytes)} of memory, where {megabytes(most)} are left "
        f"for that: {remedy.format(f'{n_bytes / most:.3g}')}; {how_to_raise()}"
    )


def megabytes(n_bytes: float) -> str:
    """An amount of memory, for a message."""
    return f"{n_bytes / 1e6:,.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.3g} GB"
