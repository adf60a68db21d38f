"""Results that a command makes again: the papers' beside ours, and those of the documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cprsim.reproduce import distribution, emulation, production
from cprsim.reproduce.rendering import Reproduction

REPRODUCTIONS: dict[str, Callable[[Path], Reproduction]] = {
    "emulation": emulation.reproduce,
    "production": production.reproduce,
    "distribution": distribution.reproduce,
}
"""What can be reproduced, by name; each takes the folder with the shipped scenarios."""

MISSING: dict[str, Callable[[], str]] = {"distribution": distribution.missing}
"""Of those that need data: says why they can't be run here; empty where they can."""

__all__ = ["MISSING", "REPRODUCTIONS", "Reproduction"]
