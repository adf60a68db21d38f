"""All recovery systems: the strategies of the paper, then those that the modules here define.

A module has a system as `SYSTEM`, or several as `SYSTEMS`.

So is every Python file of the folder that the environment names as CPRSIM_SYSTEMS: a system of your
own is one file there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from cprsim.errors import ParameterError
from cprsim.recovery import paper
from cprsim.recovery.system import System

FOLDER = "CPRSIM_SYSTEMS"
SYSTEMS: dict[str, System] = {one.name: one for one in paper.SYSTEMS}


def register(system: System) -> System:
    """Make a system known under its name. Raises ParameterError where the name is taken."""
    if system.name in SYSTEMS:
        raise ParameterError(f"there is a recovery system `{system.name}` already")
    SYSTEMS[system.name] = system
    return system


def _modules() -> Iterator[ModuleType]:
    for found in iter_modules(__path__, f"{__name__}."):
        yield import_module(found.name)
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    if not Path(folder).is_dir():
        raise ParameterError(f"{FOLDER} names {folder}, which is no folder")
    for file in sorted(Path(folder).glob("*.py")):
        name = f"{__name__}.{file.stem}"
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # whatever a user's file does
            raise ParameterError(f"{file}: {type(error).__name__}: {error}") from error
        yield module


for _module in _modules():
    if hasattr(_module, "SYSTEM"):
        register(_module.SYSTEM)
    if isinstance(_several := getattr(_module, "SYSTEMS", None), tuple):
        for _system in _several:
            register(_system)
