"""Options that commands and functions of Python share, and what they mean for a scenario."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from cprsim.errors import ParameterError, one_line

if TYPE_CHECKING:
    from cprsim.results import Result

# Bounds of numbers, for the options of commands and the annotations of functions alike.
SEED = {"ge": 0}
STATE_NODES = {"ge": 1, "le": 100_000}
BOOTSTRAP = {"ge": 0, "le": 100_000}
DRAWS = {"ge": 2, "le": 400}
MEASURED_SEEDS = {"ge": 3, "le": 10_000}
WORKERS = {"ge": 1, "le": 1_000}

MOST_REPLAYED = 10**9  # no simulation has as many replications


def require_replication(number: int | None) -> None:
    """Raise ParameterError where ``--replay`` names no replication that could be drawn."""
    if number is not None and not 0 <= number <= MOST_REPLAYED:
        there_is_no = f"there is no {number}" if number < 0 else f"at most to {MOST_REPLAYED:,}"
        raise ParameterError(f"--replay: replications are numbered from 0, {there_is_no}")


def replay_number(replay: str | None, whole: Callable[[], Result]) -> int | None:
    """The replication that ``--replay`` names; None where it was not given.

    Raises ParameterError: it is neither a number nor a name, or no replication finished.
    """
    from cprsim.results.run import SHARES, worth_seeing

    if replay is None:
        return None
    if replay.lower() in SHARES:
        numbers = worth_seeing(whole())
        if not numbers:
            raise ParameterError(f"--replay {replay}: no replication finished; name one by number")
        return numbers[replay.lower()]
    if re.fullmatch(r"[+-]?\d{1,20}", replay, re.ASCII) is None:
        named = f"{one_line(replay)!r} is neither a number nor one of {', '.join(SHARES)}"
        raise ParameterError(f"--replay: {named}")
    return int(replay)


def shortcuts(seed: int | None, replications: int | None) -> list[str]:
    """What ``--seed`` and ``--replications`` mean as overrides of the scenario."""
    overrides = []
    if seed is not None:
        overrides.append(f"--seed simulation.seed={seed}")
    if replications is not None:
        overrides.append(f"--replications simulation.replications={replications}")
    return overrides
