"""How much memory one process may take for what it is asked, and how a user raises it."""

from __future__ import annotations

import os
from functools import lru_cache

from cprsim.errors import BudgetError, ParameterError, TooManyReplicationsError
from cprsim.units import SIZE

MEMORY = "CPRSIM_MEMORY"  # the environment variable that says so, such as "4 GB"
DEFAULT_MEMORY = "1 GB"


def memory_bytes() -> float:
    """Memory that the data of one process may take [bytes].

    Raises ParameterError where `CPRSIM_MEMORY` is no size above 0.
    """
    return _parsed(os.environ.get(MEMORY, DEFAULT_MEMORY))


@lru_cache(maxsize=8)
def _parsed(text: str) -> float:
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


def require_room(
    n_bytes: float, what: str, remedy: str, *, fewer_fit: bool = False, share: float = 0.5
) -> None:
    """Refuse what would take more than its share of the budget, before it is allocated.

    Parameters
    ----------
    n_bytes : that it will take
    what : it is, for the message: "the nodes of 12 failures"
    remedy : what would fit, with `{}` for how many times too much this is
    fewer_fit : whether it would take less for fewer replications at once
    share : of the budget, that it may take beside what else there is

    Raises
    ------
    BudgetError
        a `TooManyReplicationsError` where fewer fit
    """
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
