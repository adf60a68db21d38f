"""What numba is told; imported when something is to be compiled.

Machine code is kept where numba keeps it (``__pycache__``, or NUMBA_CACHE_DIR), and holds as long
as no source in the function's folder changes.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numba
import numba.extending
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.registry import CPUDispatcher, cpu_target

OF_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


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


class _Part(CPUDispatcher):
    """A part, compiled once for all numbers of a type: numba would do so for each constant."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a call of the part is, for types."""
        return super().get_call_template([*map(numba.types.unliteral, args)], kws)


OF_PARTS: dict[str, Any] = {
    "nopython": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_dispatchers: list[Any] = []  # of parts: numba's type of one does not keep it


def dispatcher_of(
    function: Callable[..., Any], parts: dict[Callable[..., Any], bool],
    omitted: list[Callable[..., Any]], *, counts: bool,
) -> Any:  # fmt: skip
    """What compiles a function on its first call, and keeps the machine code.

    `parts` are those that numba does not know yet; it is empty afterwards. `counts`: references to
    arrays, which takes longer than most steps of a simulation.
    """
    config: Any = numba.config
    if config.DISABLE_JIT:
        return function
    while parts:
        of_part, is_inlined = parts.popitem()
        options = OF_ALL | OF_PARTS
        if is_inlined:  # else as the function that calls it first
            options = options | {"forceinline": True}
        of = _Part(of_part, targetoptions=options, pipeline_class=_PartCompiler)
        _dispatchers.append(of)
        cpu_target.typing_context.insert_global(of_part, numba.types.Dispatcher(of))
    options = OF_ALL | {"_nrt": counts}
    while omitted:
        numba.extending.overload(omitted.pop())(_leave_out)
    dispatcher: Any = numba.njit(cache=True, **options)(function)
    sources = sorted(Path(function.__code__.co_filename).parent.glob("*.py"))
    digest = sha256(b"".join(sha256(one.read_bytes()).digest() for one in sources)).digest()
    dispatcher._cache._cache_file._source_stamp = digest
    return dispatcher


def is_kept(dispatcher: Any) -> bool:
    """Whether there is machine code of an earlier process."""
    return bool(dispatcher._cache._cache_file._load_index())


def _leave_out(*_: Any) -> Callable[..., None]:
    return _nothing


def _nothing(*_: Any) -> None:
    return None
