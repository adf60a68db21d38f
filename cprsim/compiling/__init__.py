"""Loops compiled by numba: the one way in which this package compiles.

Functions are marked here. numba takes a third of a second to import, so it is, by `by_numba`, when
the first of them is compiled. A loop that may be interpreted is, as long as all that it has been
given in this process takes Python less than three seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from logging import getLogger
from os import environ
from types import FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED_S = 3.0  # of Python, from which on to compile is worth its time
ELEMENT_S = 3e-7  # of Python, to read or write one element of an array
COMPILING = "cprsim: compiling the simulation, once on this machine; this takes some ten seconds"

parts: list[tuple[Callable[..., Any], bool]] = []  # numba does not know them yet; which are inlined


class Compiled:
    """A function that is compiled on its first call; its machine code serves the next process."""

    answer: ClassVar[bool | None] = None  # of `pays`, within a block of `always`

    def __init__(
        self, function: Callable[..., Any], *, is_slow: bool = False, for_much: bool = False
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function  # as Python has it
        self.python_s = 0.0  # that it was interpreted
        self._is_slow, self._for_much = is_slow, for_much

    def __call__(self, *args: Any, **named: Any) -> Any:
        sizes = (one.size for one in args if isinstance(one, np.ndarray))
        if self._for_much and not self.pays(ELEMENT_S * sum(sizes)):
            with np.errstate(all="ignore"):
                return self.py_func(*args)
        return self.code(*args, **named)

    @cached_property
    def code(self) -> Any:
        """What numba makes of it; stderr says so where that takes long."""
        from cprsim.compiling.by_numba import dispatcher_of, is_kept

        dispatcher = dispatcher_of(self.py_func, parts, counts=not self._is_slow)
        if self._is_slow and not is_kept(dispatcher):
            getLogger("cprsim").warning(COMPILING)
        return dispatcher

    def pays(self, python_s: float) -> bool:
        """Whether to run machine code, given so much more to do; else that is interpreted."""
        if self.answer is not None:
            return self.answer
        self.python_s += python_s
        return self.python_s >= INTERPRETED_S and environ.get("NUMBA_DISABLE_JIT", "0") == "0"

    def expect(self, python_s: float) -> bool:
        """Compile what is to come, if all of it is too much to interpret; whether it is."""
        if self.python_s + python_s >= INTERPRETED_S:
            self.python_s = INTERPRETED_S
        return self.pays(0.0)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where another compiled function calls this one."""
        return self.code._numba_type_


@contextmanager
def always(*, machine_code: bool) -> Iterator[None]:
    """Within the block nothing is interpreted, or all: for measurements and comparisons."""
    before = Compiled.answer
    Compiled.answer = machine_code
    try:
        yield
    finally:
        Compiled.answer = before


def compiled(function: F) -> F:
    """Compile on the first call, and keep the machine code for the next process."""
    return cast(F, Compiled(function))


def compiled_for_much(function: F) -> F:
    """The same where much is handed to it: its time is about that of reading all arrays once."""
    return cast(F, Compiled(function, for_much=True))


def slow_to_compile(function: F) -> F:
    """The same for what takes the compiler long. It makes no arrays (`part`)."""
    return cast(F, Compiled(function, is_slow=True))


def part(function: F) -> F:
    """Compile a function into the compiled functions that call it; Python calls it as it is.

    It makes no arrays, and counts no references to those it is given.
    """
    parts.append((function, False))
    return function


def inlined(function: F) -> F:
    """The same, into the very place of each call: for what is called in few places."""
    parts.append((function, True))
    return function


def parts_of(module: ModuleType) -> None:
    """Each function of a module is a part of those that call it."""
    for function in vars(module).values():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            part(function)
