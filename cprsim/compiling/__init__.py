"""Loops compiled by numba: the one way in which this package compiles.

Functions are marked here. numba takes a third of a second to import, so it is, by `by_numba`, when
the first of them is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from logging import getLogger
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from cprsim.errors import ParameterError, watch

F = TypeVar("F", bound=Callable[..., Any])

COMPILING = "compiling the simulation, once on this machine"

parts: dict[Callable[..., Any], bool] = {}  # numba does not know them yet; which are inlined
omitted: list[Callable[..., Any]] = []  # which compiled functions leave out


class Compiled:
    """A function that is compiled on its first call; its machine code serves the next process."""

    def __init__(self, function: Callable[..., Any], *, is_slow: bool = False) -> None:
        update_wrapper(self, function)
        self._function, self._is_slow = function, is_slow

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.code(*args, **named)

    @cached_property
    def code(self) -> Any:
        """What numba makes of it; stderr says so where that takes long."""
        from cprsim.compiling.by_numba import dispatcher_of, is_kept

        is_new = self._is_slow and not is_kept(self._function)
        dispatcher = dispatcher_of(self._function, parts, omitted, counts=not self._is_slow)
        if self._is_slow and dispatcher is self._function:
            raise ParameterError(
                "NUMBA_DISABLE_JIT is set, and the simulation is compiled: unset it"
            )
        if is_new:
            watch.doing(COMPILING)
            if not watch.command:  # which shows what is done
                getLogger("cprsim").warning(f"cprsim: {COMPILING}; this takes some ten seconds")
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where another compiled function calls this one."""
        return self.code._numba_type_


def compiled(function: F) -> F:
    """Compile on the first call, and keep the machine code for the next process."""
    return cast(F, Compiled(function))


def slow_to_compile(function: F) -> F:
    """As `compiled`, for a function that compiles slowly. It makes no arrays (`part`)."""
    return cast(F, Compiled(function, is_slow=True))


def part(function: F) -> F:
    """Compile a function into the compiled functions that call it; Python calls it as it is.

    It makes no arrays, and counts no references to those it is given.
    """
    parts.setdefault(function, False)
    return function


def inlined(function: F) -> F:
    """As `part`, but inlined at each call site: for functions called in few places."""
    parts[function] = True
    return function


def left_out(function: F) -> F:
    """Compiled functions do nothing where they call this one, which returns nothing."""
    omitted.append(function)
    return function


def parts_of(*modules: ModuleType) -> None:
    """Each function of some modules is a part of those that call it."""
    for module in modules:
        for function in vars(module).values():
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                part(function)
