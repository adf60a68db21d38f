"""Mutants of `cprsim/simulate/transitions.py`: each differs from it in one small thing.

source --all_mutants--> mutants --module--> modules, on which either engine can run:
    SimPy's looks its functions up in the module at each call, and `as_python` gives it
    to the compiled engine, which runs as plain Python then.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from cprsim.compiling import Compiled
from cprsim.simulate import transitions
from cprsim.simulate.fast import recoveries, replications, saves, skipping
from cprsim.simulate.fast.loops import Interpreted, Loops
from tests.mutating import Mutant, mutants_of

SOURCE = Path(str(transitions.__file__))

LEFT_ALONE = {
    "copies_as_object",  # it only allocates
    "uniform",  # these two draw, and decide nothing
    "stream_keys",
}

# --------------------------------------------------------------------------- one mutant


def module_of(mutant: Mutant) -> ModuleType:
    """The whole module, with this function for its own."""
    module = ModuleType(f"{transitions.__name__}_mutated")
    exec(_original(), vars(module))
    exec(compile(mutant.source, f"<{mutant}>", "exec"), vars(module))
    return module


@cache
def _original() -> CodeType:
    return compile(SOURCE.read_text(), str(SOURCE), "exec", dont_inherit=True)


# --------------------------------------------------------------------------- all of them


def all_mutants() -> list[Mutant]:
    """All that there are, in the order of the source."""
    return [
        mutant
        for function in ast.parse(SOURCE.read_text()).body
        if isinstance(function, ast.FunctionDef) and function.name not in LEFT_ALONE
        for mutant in mutants_of(function)
    ]


# --------------------------------------------------------------------------- the compiled engine


def as_python(module: ModuleType) -> ModuleType:
    """The compiled engine as plain Python, with the transitions of a module."""
    engine = ModuleType("compiled_as_python")
    parts = (saves, recoveries, skipping, replications)
    for part in parts:
        vars(engine).update(vars(part))
    for name, value in list(vars(engine).items()):
        function = getattr(value, "py_func", value)
        if getattr(function, "__module__", None) in {part.__name__ for part in parts} and (
            isinstance(function, FunctionType)
        ):
            plain = FunctionType(function.__code__, vars(engine), name, function.__defaults__)
            setattr(engine, name, plain)
        elif getattr(transitions, name, None) is value and isinstance(value, FunctionType):
            setattr(engine, name, getattr(module, name))
    return engine


def loops_of(engine: ModuleType) -> type[Loops]:
    """What runs one of `as_python`."""
    changed = Compiled(vars(engine)["run"], {})

    class Mutated(Interpreted):
        def _do(self, loop: Compiled, *given: Any) -> Any:
            return super()._do(changed, *given)

    return Mutated
