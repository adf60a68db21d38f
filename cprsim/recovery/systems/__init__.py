"""All recovery systems by name: the strategies of the paper, then those of the literature.

Then those of every Python file of the folder that the environment names as CPRSIM_SYSTEMS: a
system of your own is one file there, which has it as `SYSTEM`, or several as the tuple `SYSTEMS`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from cprsim.errors import ParameterError
from cprsim.recovery import paper
from cprsim.recovery.system import System
from cprsim.recovery.systems import announced, behind, elastic, memory, parity, written

SYSTEMS_PATH = "CPRSIM_SYSTEMS"
ROOMS = (announced, behind, elastic, memory, parity, written)
SYSTEMS: dict[str, System] = {
    system.name: system for room in (paper, *ROOMS) for system in room.SYSTEMS
}
N_SHIPPED = len(SYSTEMS)  # the first ones; a user's follow


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


for _system in (
    _user_systems(Path(os.environ[SYSTEMS_PATH])) if os.environ.get(SYSTEMS_PATH) else ()
):
    if _system.name in SYSTEMS:
        raise ParameterError(f"there is a recovery system `{_system.name}` already")
    SYSTEMS[_system.name] = _system
