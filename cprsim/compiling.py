"""Loops compiled by numba: the one way in which this package compiles.

numba takes a third of a second to import, so a module of compiled loops is imported by who runs
them, when they run. Machine code is kept beside the source and holds as long as no compiled file of
the same folder changes, nor a module that is shared with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numba.extending
from numba.core.caching import InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator

F = TypeVar("F", bound=Callable[..., Any])

COMPILES = b"cprsim.compiling import"  # in a file of compiled functions

_shared_files: defaultdict[Path, set[Path]] = defaultdict(set)  # by folder


class _OfRoom:
    """Where numba keeps the machine code of a function, and what tells that it is out of date."""

    _py_file: str

    def get_source_stamp(self) -> bytes:
        folder = Path(self._py_file).parent
        sources = [file.read_bytes() for file in sorted(folder.glob("*.py"))]
        compiled_here = [source for source in sources if COMPILES in source]
        shared_here = [file.read_bytes() for file in sorted(_shared_files[folder])]
        digests = [sha256(source).digest() for source in compiled_here + shared_here]
        return sha256(b"".join(digests)).digest()


class GivenPlace(_OfRoom, UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR, where it is set."""


class BesideSource(_OfRoom, InTreeCacheLocator):
    """``__pycache__``, where it can be written."""


class OfUser(_OfRoom, UserWideCacheLocator):
    """The user's own cache folder."""


def compiled(function: F, **options: Any) -> F:
    """Compile on the first call, and keep the machine code for the next process."""
    config: Any = numba.config  # numba's way to be told of other places
    before = config.CACHE_LOCATOR_CLASSES
    places = (GivenPlace, BesideSource, OfUser)
    config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{place.__name__}" for place in places)
    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_LOCATOR_CLASSES = before


def uncounted(function: F) -> F:
    """Compile a function that makes no arrays, and counts no references to those it is given.

    To count those of twenty arrays takes longer than most steps of a simulation.
    """
    return compiled(function, _nrt=False)


def shared(module: ModuleType, folder: Path) -> None:
    """Let compiled functions of a folder call those of a module, which are plain Python else."""
    depends(folder, module)
    for function in vars(module).values():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            numba.extending.register_jitable(error_model="numpy")(function)


def depends(folder: Path, *modules: ModuleType) -> None:
    """Machine code of a folder is out of date as soon as one of these modules changes."""
    _shared_files[folder].update(Path(str(module.__file__)) for module in modules)


def inlined(function: F) -> F:
    """Compile into every compiled function that calls it: for steps of nanoseconds."""
    return cast(F, numba.njit(nogil=True, error_model="numpy", forceinline=True)(function))
