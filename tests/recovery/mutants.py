"""Mutants of `cprsim/simulate/transitions.py`: each differs from it in one small thing.

source --all_mutants--> mutants --module--> modules, on which either engine can run:
    SimPy's looks its functions up in the module at each call, and `as_python` gives it
    to the compiled engine, which runs as plain Python then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cprsim.simulate import transitions
from cprsim.simulate.fast import recoveries, replications, saves, skipping
from cprsim.simulate.numbers import as_objects

SOURCE = Path(str(transitions.__file__))

LEFT_ALONE = {
    "copies_as_object",  # it only allocates
    "uniform",  # these two draw, and decide nothing
    "stream_keys",
}

ORDER = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
OPPOSITE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}

# --------------------------------------------------------------------------- one mutant


@dataclass(frozen=True, slots=True)
class Mutant:
    """A function of the module with one thing changed."""

    function: str
    line: int
    was: str
    turned: str
    source: str  # of the function

    def __str__(self) -> str:
        return f"{self.function}, line {self.line}: `{self.was}` -> `{self.turned}`"

    @property
    def what(self) -> tuple[str, str, str]:
        """What is changed, wherever the line stands."""
        return self.function, self.was, self.turned

    def module(self) -> ModuleType:
        """The whole module, with this function for its own."""
        module = ModuleType(f"{transitions.__name__}_mutated")
        exec(_original(), vars(module))
        exec(compile(self.source, f"<{self}>", "exec"), vars(module))
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


def mutants_of(function: ast.FunctionDef) -> Iterator[Mutant]:
    if ast.get_docstring(function) is not None:
        del function.body[0]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    as_it_is = ast.unparse(function)
    for parent in list(ast.walk(function)):
        for node, put in places_of(parent):
            was = parent if isinstance(node, ast.Constant) else node
            was_text = ast.unparse(was)
            for other in instead_of(node):
                put(other)
                source = ast.unparse(ast.fix_missing_locations(function))
                if source != as_it_is:
                    turned = ast.unparse(parent if was is parent else other)
                    line = getattr(node, "lineno", function.lineno)
                    yield Mutant(function.name, line, was_text, turned, source)
            put(node)


def places_of(parent: ast.AST) -> Iterator[tuple[ast.AST, Any]]:
    """What stands in a node, each with a function that puts something else there."""
    for name, value in ast.iter_fields(parent):
        if name == "annotation":
            continue
        if isinstance(value, list):
            for place, node in enumerate(value):
                if isinstance(node, ast.AST):
                    yield node, lambda other, at=value, n=place: at.__setitem__(n, other)
        elif isinstance(value, ast.AST):
            yield value, lambda other, name=name: setattr(parent, name, other)


def instead_of(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(left, ops, comparators):
            for n, op in enumerate(ops):
                for kind in ORDER.get(type(op), ()):
                    yield ast.Compare(left, [*ops[:n], kind(), *ops[n + 1 :]], comparators)
        case ast.BoolOp(op, values):
            yield ast.UnaryOp(ast.Not(), node)
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for rest in one_left_out(values):
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.If(test, body, orelse) if not isinstance(test, ast.Compare | ast.BoolOp):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Call(ast.Name("min" | "max" as called), args):
            yield ast.Call(ast.Name("max" if called == "min" else "min"), args, [])
            for rest in one_left_out(args):
                yield rest[0] if len(rest) == 1 else ast.Call(ast.Name(called), rest, [])
        case ast.BinOp(left, op, right):
            yield left
            if isinstance(op, ast.Add | ast.Sub):
                yield right if isinstance(op, ast.Add) else ast.UnaryOp(ast.USub(), right)
            if type(op) in OPPOSITE:
                yield ast.BinOp(left, OPPOSITE[type(op)](), right)
        case ast.Return(ast.Constant(bool())):
            pass  # the constant is turned
        case ast.Return(ast.Call(ast.Name("bool"), [value])):
            yield ast.Return(ast.UnaryOp(ast.Not(), value))
        case ast.Return(ast.Tuple(elts)):
            yield ast.Return(ast.Tuple([ast.Name("NONE"), *elts[1:]], ast.Load()))
        case ast.Return(value) if value is not None:
            yield ast.Return(ast.BinOp(value, ast.Add(), ast.Constant(1)))
        case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def one_left_out(terms: list[ast.expr]) -> Iterator[list[ast.expr]]:
    if len(terms) > 1:
        for n in range(len(terms)):
            yield terms[:n] + terms[n + 1 :]


# --------------------------------------------------------------------------- the compiled engine


def as_python(module: ModuleType) -> ModuleType:
    """The compiled engine as plain Python, with the transitions of a module."""
    engine = ModuleType("compiled_as_python")
    for part in (saves, recoveries, skipping, replications):
        vars(engine).update(vars(part))
    for name, value in list(vars(engine).items()):
        if hasattr(value, "py_func"):
            function = value.py_func
            plain = FunctionType(function.__code__, vars(engine), name, function.__defaults__)
            setattr(engine, name, plain)
        elif getattr(transitions, name, None) is value and isinstance(value, FunctionType):
            setattr(engine, name, getattr(module, name))
    compiled_alike: Any = engine
    run_plain, uniform = compiled_alike.run, transitions.uniform

    def run(numbers: np.ndarray, *arguments: Any) -> int:
        attributes = [
            one.view(np.recarray) if isinstance(one, np.ndarray) and one.dtype.names else one
            for one in arguments
        ]
        with np.errstate(all="ignore"):
            return int(run_plain([as_objects(numbers[0])], *attributes))

    compiled_alike.run = run
    compiled_alike.uniform = lambda key, n: uniform(int(key), int(n))  # numpy's would overflow
    return engine
