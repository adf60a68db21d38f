"""What numba is told, and where it keeps machine code; imported when something is to be compiled.

Machine code is kept beside the source and holds as long as no compiled file of the same folder
changes, nor a module that is shared with it.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numba
from numba.core.caching import InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.registry import cpu_target

from cprsim.compiling import marked

OF_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


class _OfRoom:
    """Where numba keeps the machine code of a function, and what tells that it is out of date."""

    _py_file: str

    def get_source_stamp(self) -> bytes:
        folder = Path(self._py_file).parent
        sources = [file.read_bytes() for file in sorted(folder.glob("*.py"))]
        compiled_here = [source for source in sources if marked.COMPILES in source]
        shared_here = [file.read_bytes() for file in sorted(marked.shared_files[folder])]
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


OF_PARTS: dict[str, Any] = {
    "pipeline_class": _PartCompiler,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def dispatcher_of(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What compiles a function on its first call, and keeps the machine code."""
    _know_parts()
    config: Any = numba.config  # numba's way to be told of other places
    before = config.CACHE_LOCATOR_CLASSES
    places = (GivenPlace, BesideSource, OfUser)
    config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{place.__name__}" for place in places)
    try:
        return numba.njit(cache=True, **OF_ALL, **options)(function)
    finally:
        config.CACHE_LOCATOR_CLASSES = before


def is_kept(dispatcher: Any) -> bool:
    """Whether there is machine code of an earlier process."""
    return bool(dispatcher._cache._cache_file._load_index())


_dispatchers: list[Any] = []  # of parts


def _know_parts() -> None:
    """Tell numba of the parts that it has not been told of yet."""
    config: Any = numba.config
    while marked.parts and not config.DISABLE_JIT:
        function, options = marked.parts.pop()
        dispatcher = numba.njit(**OF_ALL, **OF_PARTS, **options)(function)
        _dispatchers.append(dispatcher)  # numba's type of it does not keep it
        cpu_target.typing_context.insert_global(function, numba.types.Dispatcher(dispatcher))
