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
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

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


class _NoPlace:
    """Where the code of a part is set up to run: nowhere."""

    def set_env(self, *_: Any) -> None: ...


class _CodeOfPart(JITCodeLibrary):
    """The code of a function that others are made of: handed to them as it is.

    They are optimised and made machine code as a whole; numba would do so with each part, and
    with all that it calls, before it does with the whole.
    """

    codegen = _NoPlace()

    def finalize(self) -> None:
        """Gather what the part calls."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Nowhere."""
        if not self._finalized:
            self.finalize()
        return 0


class _PartCompiler(CompilerBase):
    """What numba does with a function of Python, up to its code."""

    def define_pipelines(self) -> list[Any]:
        code_of, passes = cast(Any, _CodeOfPart), cast(Any, DefaultPassBuilder)  # without types
        name = self.state.func_id.func_qualname
        self.state.library = code_of(self.state.targetctx.codegen(), name)
        return [passes.define_nopython_pipeline(self.state)]


OF_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
OF_PARTS: dict[str, Any] = {
    "pipeline_class": _PartCompiler,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def compiled(function: F, **options: Any) -> F:
    """Compile on the first call, and keep the machine code for the next process."""
    config: Any = numba.config  # numba's way to be told of other places
    before = config.CACHE_LOCATOR_CLASSES
    places = (GivenPlace, BesideSource, OfUser)
    config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{place.__name__}" for place in places)
    try:
        return cast(F, numba.njit(cache=True, **OF_ALL, **options)(function))
    finally:
        config.CACHE_LOCATOR_CLASSES = before


def uncounted(function: F) -> F:
    """Compile a function that makes no arrays, and counts no references to those it is given.

    To count those of twenty arrays takes longer than most steps of a simulation.
    """
    return compiled(function, _nrt=False)


def part(function: F, **options: Any) -> F:
    """Compile a function into those compiled functions that call it; Python can't call it."""
    return cast(F, numba.njit(**OF_ALL, **OF_PARTS, **options)(function))


def uncounted_part(function: F) -> F:
    """The same of what `uncounted` functions call."""
    return part(function, _nrt=False)


def uncounted_inlined(function: F) -> F:
    """The same, into the very place of each call: for what is called in few places."""
    return part(function, _nrt=False, forceinline=True)


def shared(module: ModuleType, folder: Path) -> None:
    """Let compiled functions of a folder call those of a module, which are plain Python else."""
    depends(folder, module)
    options = {**OF_ALL, "_nrt": False, **OF_PARTS}  # of `uncounted_part`
    for function in vars(module).values():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            numba.extending.register_jitable(**options)(function)


def depends(folder: Path, *modules: ModuleType) -> None:
    """Machine code of a folder is out of date as soon as one of these modules changes."""
    _shared_files[folder].update(Path(str(module.__file__)) for module in modules)


def inlined(function: F) -> F:
    """Compile a part into the very place of each call: for steps of nanoseconds."""
    return part(function, forceinline=True)
