"""Recovery systems, one file each: every module here that defines `SYSTEM` is found."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from cprsim.recovery.system import System

SYSTEMS: dict[str, System] = {}


def register(system: System) -> System:
    """Make a system known under its name. Raises ValueError where the name is taken."""
    if system.name in SYSTEMS:
        raise ValueError(f"there is a system `{system.name}` already")
    SYSTEMS[system.name] = system
    return system


for _module in iter_modules(__path__, f"{__name__}."):
    register(import_module(_module.name).SYSTEM)
