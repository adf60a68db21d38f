"""The code that a scenario names: found without running it, and run where that is allowed.

A scenario may come from anybody, and to import a module is to run it. What lies below the working
directory is taken for the user's own; anything else, installed packages included, needs the user's
word.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from cprsim.errors import ScenarioError
from cprsim.measuring.protocol import OwnTrainer
from cprsim.scenario.reading import LoadedScenario

KEY = "kernel.trainer"
FLAG = "--allow-code"
Factory = Callable[[int, Mapping[str, Any]], OwnTrainer]
INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


def require_allowed(loaded: LoadedScenario, allowed: bool, here: Path) -> None:
    """Make sure that the code of a scenario may be run; nothing of it is."""
    named = _named(loaded)
    if named is None:
        return
    file = find_code(named.partition(":")[0], here)
    if file is None:
        raise _error(
            loaded, f"`{named}` is not there: no module of that name in {here} or installed"
        )
    if not allowed and not is_own(file, here):
        raise _error(
            loaded,
            f"`{named}` would run {file}, which does not stand below the working directory; "
            f"{FLAG} allows it",
        )


def find_code(module: str, here: Path) -> Path | None:
    """The file of a module, found by its name alone; None where there is none."""
    where: list[str] = [str(here), *sys.path]
    file = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, where)  # a dotted name would ask for its parent's code
        if spec is None:
            return None
        file = Path(spec.origin).resolve() if spec.origin and spec.has_location else None
        where = _inside(spec, part, where)
    return file


def _inside(spec: ModuleSpec, part: str, where: list[str]) -> list[str]:
    """Where what a package holds is looked for."""
    if spec.submodule_search_locations is None:
        return []
    if spec.origin is not None:
        return list(spec.submodule_search_locations)
    # a package without __init__.py
    return [str(Path(one) / part) for one in where if (Path(one) / part).is_dir()]


def is_own(file: Path, here: Path) -> bool:
    """Whether a file stands below the working directory, and not where packages are installed."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in INSTALLED]
    return file.is_relative_to(here.resolve()) and not any(map(file.is_relative_to, installed))


def make_trainer(loaded: LoadedScenario, seed: int, here: Path) -> OwnTrainer:
    """Import the factory that the scenario names, and make the trainer of one seed."""
    kernel, named = loaded.scenario.kernel, _named(loaded)
    assert kernel is not None
    assert named is not None
    trainer = _factory(loaded, named, here)(seed, dict(kernel.options or {}))
    missing = [name for name in _wanted() if not hasattr(trainer, name)]
    if missing:
        kind = type(trainer).__name__
        raise _error(loaded, f"`{named}` made a {kind} without {', '.join(missing)}")
    return trainer


def _factory(loaded: LoadedScenario, named: str, here: Path) -> Factory:
    module, _, name = named.partition(":")
    if str(here) not in sys.path:  # a script's first path is its own folder, not the user's
        sys.path.insert(0, str(here))
    try:
        factory: Factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise _error(loaded, f"`{named}` can't be imported: {error}") from error
    return factory


def _wanted() -> list[str]:
    return [name for name in vars(OwnTrainer) if not name.startswith("_")]


def _named(loaded: LoadedScenario) -> str | None:
    kernel = loaded.scenario.kernel
    return None if kernel is None else kernel.trainer


def _error(loaded: LoadedScenario, message: str) -> ScenarioError:
    return ScenarioError.at(loaded.place(KEY), message, KEY)
