"""Loops compiled by numba: the one way in which this package compiles.

Functions are marked here. numba takes a third of a second to import, so it is, by `by_numba`, when
the first of them is called. A part stays what it is for Python, so that loops can be interpreted
too: where little is to be done that is sooner over than to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from logging import getLogger
from os import W_OK, access, environ
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from cprsim.compiling import marked

F = TypeVar("F", bound=Callable[..., Any])

LOADING_S = 0.5  # to import numba, and load machine code that is kept
COMPILING_S = 3.0  # of interpreting, from which on to compile is worth its time
UNCOUNTED = {"_nrt": False}
ELEMENT_S = 3e-7  # to read or write one element of an array in Python
ANNOUNCED = "cprsim: compiling the simulation, once on this machine; this takes some ten seconds"


class Compiled:
    """A function that is compiled on its first call; its machine code serves the next process.

    Where little is to be done, its caller may have it interpreted instead (`pays`), unless the
    block of an `always` says otherwise.
    """

    answer: ClassVar[bool | None] = None  # of `pays`, within such a block

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], announced: bool = False
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function  # as Python has it
        self.interpreted_s = 0.0  # so far
        self._options, self._announced = options, announced
        self.is_there = False

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not self.is_there and self._announced and not self._is_kept():
            getLogger("cprsim").warning(ANNOUNCED)
        self.is_there = True
        return self.code(*args, **named)

    @cached_property
    def code(self) -> Any:
        """What numba makes of it."""
        from cprsim.compiling.by_numba import dispatcher_of

        return dispatcher_of(self.py_func, self._options)

    def pays(self, more_s: float = 0.0) -> bool:
        """Whether machine code is there, or all that is interpreted here would take too long."""
        if self.answer is not None:
            return self.answer
        if self.is_there:
            return True
        by_then_s = self.interpreted_s + more_s
        if by_then_s <= LOADING_S or environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            return False
        return by_then_s > COMPILING_S or self._is_kept()

    def _is_kept(self) -> bool:
        """Whether an earlier process has kept its machine code; mostly seen without numba."""
        source = Path(self.py_func.__code__.co_filename)
        given, beside = environ.get("NUMBA_CACHE_DIR"), source.parent / "__pycache__"
        named = f"{source.stem}.{self.py_func.__qualname__}-*.nbi"
        there = Path(given).rglob(named) if given else beside.glob(named)
        if not any(there) and (given or access(source.parent, W_OK)):
            return False
        from cprsim.compiling.by_numba import is_kept

        return is_kept(self.code)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where another compiled function calls this one."""
        return self.code._numba_type_


class CompiledForMuch(Compiled):
    """A function that is interpreted until it has been given so much that compiling pays."""

    def __call__(self, *args: Any) -> Any:
        n_elements = sum(one.size for one in args if isinstance(one, np.ndarray))
        more_s = ELEMENT_S * n_elements
        if self.pays(more_s):
            return super().__call__(*args)
        self.interpreted_s += more_s
        with np.errstate(all="ignore"):
            return self.py_func(*args)


@contextmanager
def always(*, machine_code: bool) -> Iterator[None]:
    """Within the block `pays` says this alone: for measurements and comparisons of either."""
    before = Compiled.answer
    Compiled.answer = machine_code
    try:
        yield
    finally:
        Compiled.answer = before


def compiled(function: F) -> F:
    """Compile on the first call, and keep the machine code for the next process."""
    return cast(F, Compiled(function, {}))


def compiled_for_much(function: F) -> F:
    """The same where much is handed to it: its time is about that of reading all arrays once."""
    return cast(F, CompiledForMuch(function, {}))


def announced(function: F) -> F:
    """The same for what takes the compiler long: stderr says so. It makes no arrays (`part`)."""
    return cast(F, Compiled(function, UNCOUNTED, announced=True))


def part(function: F) -> F:
    """Compile a function into the compiled functions that call it; Python calls it as it is.

    It makes no arrays, and counts no references to those it is given: to count those of twenty
    arrays takes longer than most steps of a simulation.
    """
    marked.parts.append((function, UNCOUNTED))
    return function


def inlined(function: F) -> F:
    """The same, into the very place of each call: for what is called in few places."""
    marked.parts.append((function, {**UNCOUNTED, "forceinline": True}))
    return function


def shared(module: ModuleType, folder: Path) -> None:
    """Let compiled functions of a folder call those of a module, which are plain Python else."""
    depends(folder, module)
    for function in vars(module).values():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            part(function)


def depends(folder: Path, *modules: ModuleType) -> None:
    """Machine code of a folder is out of date as soon as one of these modules changes."""
    marked.shared_files[folder].update(Path(str(module.__file__)) for module in modules)
