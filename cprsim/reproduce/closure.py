"""Which source files a module is made of: its own, and those that it imports, directly or not.

A result has to be made again when code changes that it runs, and only then. What a package's
`__init__` only passes on counts where it is imported by name.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import cprsim

PACKAGE = Path(cprsim.__file__).parent
NAME = cprsim.__name__


def digest_of(*modules: str, without: Sequence[str] = ()) -> str:
    """Digest of the source of some modules and of all that they import from this package.

    Parameters
    ----------
    modules : full names, such as ``cprsim.reproduce.fleet``
    without : modules that do not count, nor what only they import
    """
    digest = hashlib.sha256()
    for name in sorted(closure(*modules, without=without)):
        digest.update(name.encode() + b"\0" + _file(name).read_bytes() + b"\0")
    return digest.hexdigest()


def closure(*modules: str, without: Sequence[str] = ()) -> set[str]:
    """Names of the modules and of all modules of this package that they import."""
    found: set[str] = set()
    new = set(modules)
    while new:
        found |= new
        new = {one for module in new for one in _imported(module)} - found - {*without}
    return found


@cache
def _imported(module: str) -> frozenset[str]:
    tree = ast.parse(_file(module).read_text("utf-8"))
    names = {name for node in ast.walk(tree) for name in _named(node)}
    return frozenset(name for name in names if _is_module(name))


def _named(node: ast.AST) -> Iterator[str]:
    """What an import statement may mean: modules, or things within them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_module(name: str) -> bool:
    return name.split(".")[0] == NAME and name != NAME and _path(name) is not None


def _file(name: str) -> Path:
    path = _path(name)
    if path is None:
        raise ValueError(f"{name} is no module of this package")
    return path


@cache
def _path(name: str) -> Path | None:
    """The file of a module; of a package its `__init__`."""
    stem = PACKAGE.joinpath(*name.split(".")[1:])
    files = (stem.with_name(f"{stem.name}.py"), stem / "__init__.py")
    return next((file for file in files if file.is_file()), None)
