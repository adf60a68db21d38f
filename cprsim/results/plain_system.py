"""Recovery systems as what JSON can hold, and back: records by their names, fields by theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, get_args, get_type_hints

from cprsim.failures import distributions
from cprsim.failures.piecewise import PiecewiseHazard
from cprsim.recovery import policy

_CLASS = "is"  # key of the record's name
_KNOWN: dict[str, type[Any]] = {
    name: known
    for module in (policy, distributions)
    for name, known in vars(module).items()
    if isinstance(known, type) and is_dataclass(known)
} | {PiecewiseHazard.__name__: PiecewiseHazard}


def plain_system(value: Any) -> Any:
    """A record of a system, or what stands in one of its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: plain_system(getattr(value, one.name)) for one in fields(value)}
        return {_CLASS: type(value).__name__, **parts}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain_system(one) for one in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def system_from(plain: Any, kind: Any = None) -> Any:
    """What `plain_system` wrote.

    Parameters
    ----------
    kind : type of the field that it stands in, where that is known

    Raises
    ------
    KeyError, TypeError, ValueError : it is none
    """
    if isinstance(plain, Mapping):
        known = _KNOWN[plain[_CLASS]]
        kinds = get_type_hints(known)
        parts = {name: value for name, value in plain.items() if name != _CLASS}
        return known(**{name: system_from(value, kinds[name]) for name, value in parts.items()})
    if isinstance(plain, list):
        inner = next(iter(get_args(kind)), None)
        return tuple(system_from(value, inner) for value in plain)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain)
    return float(plain) if kind is float and isinstance(plain, str) else plain
