"""Records that numba and Python read under the same names.

A record is a class of annotated fields. Compiled functions take it as a numpy record (`dtype_of`,
`as_record`); Python takes the object itself, which it reads several times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import (
    Annotated,
    Any,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

R = TypeVar("R")
DTYPES: dict[type, str] = {float: "f8", int: "i8", bool: "?"}
RECORD_FIELDS: dict[type, dict[str, tuple[type, tuple[int, ...]]]] = {}  # of the records so far


@dataclass_transform(eq_default=False)
def record(kind: type[R]) -> type[R]:
    """A class of fields: numbers, and lists annotated with their greatest length."""
    return dataclass(slots=True, eq=False)(kind)


def fields_of(kind: type) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Each field's kind, and the shape of a list."""
    if kind not in RECORD_FIELDS:
        hints = get_type_hints(kind, include_extras=True)
        RECORD_FIELDS[kind] = {
            field.name: _kind_and_shape(hints[field.name]) for field in fields(kind)
        }
    return RECORD_FIELDS[kind]


def _kind_and_shape(hint: Any) -> tuple[type, tuple[int, ...]]:
    if get_origin(hint) is not Annotated:
        return hint, ()
    of, *shape = get_args(hint)
    while get_origin(of) is list:
        (of,) = get_args(of)
    return of, tuple(shape)


def dtype_of(kind: type) -> np.dtype[Any]:
    """What numpy calls a record of this kind."""
    columns = [
        (name, DTYPES.get(of) or dtype_of(of), shape)
        for name, (of, shape) in fields_of(kind).items()
    ]
    return np.dtype(columns, align=True)


def as_record(value: Any) -> NDArray[Any]:
    """An object as an array of one numpy record; what its lists lack is 0."""
    made = np.zeros(1, dtype_of(type(value)))
    _write(value, made[0])
    return made


def _write(value: Any, into: Any) -> None:
    for name, (of, shape) in fields_of(type(value)).items():
        held = getattr(value, name)
        if of in DTYPES and shape:
            into[name][: len(held)] = held
        elif of in DTYPES:
            into[name] = held
        elif not shape:
            _write(held, into[name])
        else:
            for one, place in zip(held, into[name], strict=False):
                _write(one, place)


class Places(list[R]):
    """A list of records for Python: one that is put into a place is copied, as in numpy."""

    def __setitem__(self, place: Any, of: Any) -> None:
        for name in fields_of(type(of)):
            setattr(self[place], name, getattr(of, name))


def zeros(kind: type[R], lengths: Mapping[str, tuple[int, ...]]) -> R:
    """An object whose numbers are all 0, its lists no longer than is said."""
    made = object.__new__(kind)
    for name, (of, shape) in fields_of(kind).items():
        setattr(made, name, _zero(of, lengths.get(name, shape), lengths))
    return made


def _zero(of: type, shape: tuple[int, ...], lengths: Mapping[str, tuple[int, ...]]) -> Any:
    if shape:
        made = [_zero(of, shape[1:], lengths) for _ in range(shape[0])]
        return made if of in DTYPES else Places(made)
    return of() if of in DTYPES else zeros(of, lengths)
