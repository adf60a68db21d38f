"""Mutants of a function: each differs from it in one small thing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

ORDER = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
MEMBER = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
OPPOSITE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A function of a module with one thing changed."""

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


def mutants_of(
    function: ast.FunctionDef, others: Callable[[ast.AST], Iterator[ast.AST]] | None = None
) -> Iterator[Mutant]:
    """All mutants of a function, or those of `others`; its words and annotations are dropped."""
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
            for other in (others or instead_of)(node):
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


def further_instead_of(node: ast.AST) -> Iterator[ast.AST]:
    """What else may: it has more to do with objects and statements than with numbers."""
    match node:
        case ast.Compare(left, [op], comparators) if type(op) in MEMBER:
            yield ast.Compare(left, [MEMBER[type(op)]()], comparators)
        case ast.If(test, body, [_, *_] as orelse):
            yield ast.If(test, orelse, body)
        case ast.If() | ast.For() | ast.While():
            yield ast.Return(None)
            yield ast.Pass()
        case ast.Expr():
            yield ast.Return(None)
        case ast.Raise():
            yield ast.Pass()


def one_left_out(terms: list[ast.expr]) -> Iterator[list[ast.expr]]:
    if len(terms) > 1:
        for n in range(len(terms)):
            yield terms[:n] + terms[n + 1 :]
