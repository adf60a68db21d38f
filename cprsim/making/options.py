"""Options that commands and functions of Python share, and what they mean for a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

# Bounds of numbers, for the options of commands and the annotations of functions alike.
SEED = {"ge": 0}
BOOTSTRAP = {"ge": 0, "le": 100_000}
WORKERS = {"ge": 1, "le": 1_000}


def shortcuts(seed: int | None, replications: int | None) -> list[str]:
    """What ``--seed`` and ``--replications`` mean as overrides of the scenario."""
    overrides = []
    if seed is not None:
        overrides.append(f"--seed simulation.seed={seed}")
    if replications is not None:
        overrides.append(f"--replications simulation.replications={replications}")
    return overrides
