"""No regular expression of the package can be made to take long, however long and odd the text.

Every pattern is found here by itself, also a new one: compiled ones in modules, calls of `re` in
the code, patterns of the schema, and those that the JSON Schema gives to editors.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cprsim
from cprsim import units
from cprsim.scenario import json_schema
from tests import attacking

pytestmark = pytest.mark.long

PACKAGE = Path(cprsim.__file__).parent
METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
OF_PANDAS = ("contains", "match", "fullmatch", "extract", "extractall", "replace", "split")
PATIENCE_S = 240  # of the clock, for all patterns: a hang, not a slow machine

# The most characters that reach a pattern, where its callers look at the length first.
LIMITS = {units._QUANTITY.pattern: units.MAX_TEXT}


@dataclass(frozen=True)
class Found:
    """A pattern of the package, and how it is used."""

    where: str
    pattern: str
    flags: int
    methods: tuple[str, ...]
    most: int = attacking.LENGTHS[-1]


@cache
def sources() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def nodes() -> list[ast.AST]:
    return [node for tree in sources().values() for node in ast.walk(tree)]


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def written(path: Path, node: ast.expr) -> object:
    """What an argument is: written out, or a constant of its module; None where neither."""
    try:
        return eval(ast.unparse(node), vars(importlib.import_module(module_of(path))))
    except NameError:
        return None


@cache
def methods_by_name() -> dict[str, set[str]]:
    """What the package calls on anything of a name, or attribute of that name."""
    found: dict[str, set[str]] = {}
    for node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for kind in ("id", "attr"):
                found.setdefault(getattr(node.func.value, kind, ""), set()).add(node.func.attr)
    return found


def methods_called_on(name: str) -> tuple[str, ...]:
    """What the package calls on the pattern of that name; all that matters where nothing is."""
    called = methods_by_name().get(name, set())
    return tuple(one for one in METHODS if one in called) or ("match", "fullmatch", "search")


def importable_modules() -> list[str]:
    """Modules of the package; without `cprsim.torch` where PyTorch is not installed."""
    modules = [module_of(path) for path in sources() if path.stem != "__main__"]
    has_torch = importlib.util.find_spec("torch") is not None
    return [name for name in modules if has_torch or not name.startswith("cprsim.torch")]


def compiled_patterns() -> Iterator[Found]:
    for module in importable_modules():
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, re.Pattern):
                methods = methods_called_on(name)
                flags = value.flags & ~re.UNICODE
                said = value.pattern
                text = said.decode("ascii") if isinstance(said, bytes) else said
                most = LIMITS.get(text, attacking.LENGTHS[-1])
                yield Found(f"{module}.{name}", text, flags, methods, most)


def calls_of_re() -> Iterator[tuple[Path, ast.Call, str]]:
    for path, tree in sources().items():
        for node in ast.walk(tree):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and getattr(node.func.value, "id", "") == "re":
                yield path, node, node.func.attr


def inline_patterns() -> Iterator[Found]:
    for path, call, method in calls_of_re():
        if method in METHODS:
            where = f"{module_of(path)}:{call.lineno}"
            said = written(path, call.args[0])
            assert isinstance(said, str), f"{where}: write the pattern plainly, or name a constant"
            yield Found(where, said, 0, (method,))


def patterns_for_pandas() -> Iterator[Found]:
    """Of `column.str.contains(...)` and its like."""
    for path, tree in sources().items():
        for node in ast.walk(tree):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if not is_call or node.func.attr not in OF_PANDAS:
                continue
            if getattr(node.func.value, "attr", "") == "str" and node.args:
                where = f"{module_of(path)}:{node.lineno}"
                plain = any(key.arg == "regex" and not key.value.value for key in node.keywords)
                if plain or node.func.attr in ("split", "replace"):
                    continue  # which take no pattern unless told
                said = written(path, node.args[0])
                assert isinstance(said, str), f"{where}: regex=False, or write the pattern plainly"
                yield Found(where, said, 0, ("search",))


def patterns_of_the_schema() -> Iterator[Found]:
    """Of pydantic, and of the JSON Schema that editors use: these search."""

    def below(node: Any, where: str) -> Iterator[Found]:
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                yield Found(f"schema:{where}", node["pattern"], 0, ("search",))
            for key in node.get("patternProperties", {}):
                yield Found(f"schema:{where}", key, 0, ("search",))
            for key, value in node.items():
                yield from below(value, f"{where}.{key}")
        elif isinstance(node, list):
            for i, value in enumerate(node):
                yield from below(value, f"{where}.{i}")

    yield from below(json_schema(), "")


def patterns_of_fields() -> Iterator[Found]:
    """`pattern=` of any call in the package, where it is written out or names a constant."""
    for path, tree in sources().items():
        for node in ast.walk(tree):
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "pattern":
                    where = f"{module_of(path)}:{node.lineno}"
                    yield Found(where, str(written(path, keyword.value)), 0, ("search",))


def patterns_of_units() -> Iterator[Found]:
    for dimension in units.DIMENSIONS:
        yield Found(f"cprsim.units: {dimension.what}", dimension.pattern, 0, ("search",))


@cache
def all_patterns() -> list[Found]:
    found = [
        *compiled_patterns(),
        *inline_patterns(),
        *patterns_for_pandas(),
        *patterns_of_the_schema(),
        *patterns_of_fields(),
        *patterns_of_units(),
    ]
    return list({(one.pattern, one.flags, one.methods): one for one in found}.values())


def slow_ones(patterns: list[Found]) -> dict[str, Any]:
    """Try them in a process of its own, which a hang can't take along."""
    try:
        done = subprocess.run(
            [sys.executable, attacking.__file__],
            input=json.dumps([asdict(one) for one in patterns]),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    except subprocess.TimeoutExpired as late:
        tried = (late.stderr or b"").decode().splitlines()
        pytest.fail(f"hangs: {tried[-1:]}")
    return json.loads(done.stdout)


def test_no_pattern_of_the_package_takes_long_on_any_text() -> None:
    assert not slow_ones(all_patterns())


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[A-Za-z0-9][^\s=]*(\.[^\s=]+)+", "fullmatch"),  # once the keys of a sweep
        (r"^\s*-?\s*([\w ]+?)\s*[:=].*#.*\bassumed\b", "match"),  # once of populations
        (r"(a+)+$", "search"),
        (r"(?:\w+\s?)*:", "match"),
        (r"(x|xx)*y", "fullmatch"),
        (r":.*(?:[zZ]|[+-]\d\d)$", "search"),  # quadratic: too slow for texts without a limit
    ],
)
def test_a_bad_pattern_would_be_found(pattern, method) -> None:
    assert slow_ones([Found("bad", pattern, 0, (method,))])


def test_patterns_are_found_wherever_they_stand() -> None:
    found = {one.pattern for one in all_patterns()}
    from cprsim.scenario import schema, sweep, yaml_text

    assert {sweep._RANGE.pattern, yaml_text._FLOAT.pattern, schema.SCENARIO_NAME} <= found
    assert {one.pattern for one in units.DIMENSIONS} <= found
    assert r"[^\w.-]+" in found  # of a call of re.sub


def test_every_compiled_pattern_stands_in_a_module() -> None:
    inside = [
        f"{module_of(path)}:{node.lineno}"
        for path, tree in sources().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    ]
    assert not inside, "compile it where a module begins: this test can't find it otherwise"
