"""The papers' results again: ours beside the published numbers, each with its provenance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cprsim.reproduce import emulation, production
from cprsim.reproduce.rendering import Reproduction

REPRODUCTIONS: dict[str, Callable[[Path], Reproduction]] = {
    "emulation": emulation.reproduce,
    "production": production.reproduce,
}
"""What can be reproduced, by name; each takes the folder with the shipped scenarios."""

__all__ = ["REPRODUCTIONS", "Reproduction"]
