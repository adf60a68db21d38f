"""Settings of numba; imported when a function is compiled.

Machine code is kept in `__pycache__`, in NUMBA_CACHE_DIR, or else in the user's cache. A folder
there is named by a digest of the sources, so that a change in any of them compiles anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, cast

import numba
import numba.extending
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

OF_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
UNCOUNTED: dict[str, Any] = {
    "_nrt": False
}  # references to arrays: counting takes longer than most steps
# a part has no arrays to fuse, and no caller in C: without both it compiles a fifth sooner
OF_PART = OF_ALL | UNCOUNTED | {"no_rewrites": True, "no_cfunc_wrapper": True}
FOLDER_PREFIX = "cprsim-"


class _NoPlace:
    """Where the code of a part is set up to run: nowhere."""

    def set_env(self, *_: Any) -> None: ...


class _CodeOfPart(JITCodeLibrary):
    """Code of a part, linked unoptimised into the functions that call it.

    A calling function is optimised and compiled as a whole. numba would first compile each part
    with its callees, then the whole, and has no option against it: 28 s of CPU time, not 13.
    """

    codegen = _NoPlace()

    def finalize(self) -> None:
        """Link the code that the part calls."""
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


def dispatcher_of(
    function: Callable[..., Any], parts: dict[Callable[..., Any], bool],
    omitted: list[Callable[..., Any]], *, counts: bool,
) -> Any:  # fmt: skip
    """What compiles a function on its first call, and keeps the machine code.

    `parts` are those that numba does not know yet; it is empty afterwards. `counts`: references to
    arrays.
    """
    config: Any = numba.config
    if config.DISABLE_JIT:
        return function
    while parts:
        of_part, is_inlined = parts.popitem()
        numba.extending.register_jitable(
            **OF_PART, pipeline_class=_PartCompiler, forceinline=is_inlined
        )(of_part)
    while omitted:
        numba.extending.overload(omitted.pop())(_leave_out)
    before, config.CACHE_DIR = config.CACHE_DIR, str(_folder_of(function))
    try:
        options = OF_ALL if counts else OF_ALL | UNCOUNTED
        return numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = before


def is_kept(function: Callable[..., Any]) -> bool:
    """Whether there is machine code of an earlier process."""
    return any(_folder_of(function).rglob(f"*.{function.__qualname__}-*.nbi"))


def _folder_of(function: Callable[..., Any]) -> Path:
    """Return the folder of its machine code; next to the sources, remove the code of older ones."""
    room, config = Path(function.__code__.co_filename).parent, cast(Any, numba.config)
    digest = sha256(numba.__version__.encode())
    for source in sorted(room.glob("*.py")):
        digest.update(sha256(source.read_bytes()).digest())
    name, kept = FOLDER_PREFIX + digest.hexdigest()[:16], room / "__pycache__"
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR) / name
    if not os.access(room, os.W_OK):
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / name
    for old in kept.glob(FOLDER_PREFIX + "*"):
        if old.name != name:
            rmtree(old, ignore_errors=True)
    return kept / name


def _leave_out(*_: Any) -> Callable[..., None]:
    return _nothing


def _nothing(*_: Any) -> None:
    return None
