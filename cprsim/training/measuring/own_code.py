"""The code that a scenario names: found without running it, and run where that is allowed.

A scenario may come from anybody, and importing a module runs it. Code below the working directory
counts as the user's own; any other, installed packages included, needs the user's permission.
"""

from __future__ import annotations

import importlib
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from cprsim.scenario.reading import LoadedScenario
from cprsim.training.measuring.protocol import OwnTrainer

TRAINER_KEY = "kernel.trainer"
FLAG = "--allow-code"
INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


def require_allowed(loaded: LoadedScenario, allowed: bool, folder: Path) -> None:
    """Make sure that the code of a scenario may be run; nothing of it is."""
    factory = None if loaded.scenario.kernel is None else loaded.scenario.kernel.trainer
    if factory is None:
        return
    # the outermost package alone: a dotted name would ask for its parents' code
    spec = PathFinder.find_spec(re.split("[.:]", factory)[0], [str(folder), *sys.path])
    if spec is None:
        message = f"`{factory}` is not there: no module of that name in {folder} or installed"
        raise loaded.error(TRAINER_KEY, message)
    files = [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
    foreign = [file for file in files if not is_own(Path(file).resolve(), folder)]
    if foreign and not allowed:
        raise loaded.error(
            TRAINER_KEY,
            f"`{factory}` would run {foreign[0]}, which does not stand below the working "
            f"directory; {FLAG} allows it",
        )


def is_own(file: Path, folder: Path) -> bool:
    """Whether a file stands below the working directory, and not where packages are installed."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in INSTALLED]
    return file.is_relative_to(folder.resolve()) and not any(map(file.is_relative_to, installed))


def make_trainer(loaded: LoadedScenario, seed: int, folder: Path) -> OwnTrainer:
    """Import the factory that the scenario names, and make the trainer of one seed."""
    kernel = loaded.scenario.kernel
    assert kernel is not None
    factory_name = str(kernel.trainer)
    module, _, name = factory_name.partition(":")
    if str(folder) not in sys.path:  # a script's first path is its own folder, not the user's
        sys.path.insert(0, str(folder))
    try:
        factory: Callable[[int, Mapping[str, Any]], OwnTrainer] = getattr(
            importlib.import_module(module), name
        )
    except (ImportError, AttributeError) as error:
        message = f"`{factory_name}` can't be imported: {error}"
        raise loaded.error(TRAINER_KEY, message) from error
    trainer = factory(seed, dict(kernel.options or {}))
    needed = [name for name in vars(OwnTrainer) if not name.startswith("_")]
    missing = [name for name in needed if not hasattr(trainer, name)]
    if missing:
        made = f"`{factory_name}` made a {type(trainer).__name__}"
        raise loaded.error(TRAINER_KEY, f"{made} without {', '.join(missing)}")
    return trainer
