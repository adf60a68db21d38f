"""All recovery systems by name: the strategies of the paper, then those of the literature.

Each file of this folder has a family of them as the tuple `SYSTEMS`. Then those of every Python
file of the folder that the environment names as CPRSIM_SYSTEMS: a system of your own is one file
there, which has it as `SYSTEM`, or several as the tuple `SYSTEMS`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules

from cprsim.errors import ParameterError
from cprsim.recovery import paper
from cprsim.recovery.system import System

SYSTEMS_PATH = "CPRSIM_SYSTEMS"
PAPER = {system.name: system for system in paper.SYSTEMS}


@cache
def shipped_systems() -> dict[str, System]:
    """Those that come with the program."""
    rooms = [import_module(f"{__name__}.{room.name}") for room in iter_modules(__path__)]
    return PAPER | {system.name: system for room in rooms for system in room.SYSTEMS}


@cache
def all_systems() -> dict[str, System]:
    """Those that come with the program, then the user's."""
    systems = dict(shipped_systems())
    if folder := os.environ.get(SYSTEMS_PATH):
        for system in _user_systems(Path(folder)):
            if system.name in systems:
                raise ParameterError(f"there is a recovery system `{system.name}` already")
            systems[system.name] = system
    return systems


class _Systems(Mapping[str, System]):
    """All systems, of which the paper's are there without the files of the others."""

    def __getitem__(self, name: str) -> System:
        return PAPER[name] if name in PAPER else all_systems()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(all_systems())

    def __len__(self) -> int:
        return len(all_systems())


SYSTEMS = _Systems()


def _user_systems(folder: Path) -> Iterator[System]:
    """Those of a user's folder."""
    if not folder.is_dir():
        raise ParameterError(f"{SYSTEMS_PATH} names {folder}, which is no folder")
    for file in sorted(folder.glob("*.py")):
        name = f"{__name__}.{file.stem}"
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # whatever a user's file does
            raise ParameterError(f"{file}: {type(error).__name__}: {error}") from error
        if hasattr(module, "SYSTEM"):
            yield module.SYSTEM
        yield from getattr(module, "SYSTEMS", ())


if os.environ.get(SYSTEMS_PATH):  # what is wrong with them is said by every command
    all_systems()
