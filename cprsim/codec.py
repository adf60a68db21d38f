"""Frozen dataclasses as what JSON can hold, and back, from their type hints.

A record is the schema of its file: each field is a key, and its type hint says what the key holds.
Where a file differs from that, the field's hint is annotated: with `Key`, `Null` or a `FieldMark`.

JSON has neither NaN nor infinity: NaN becomes null, infinity the text ``inf`` or ``-inf``.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, auto
from functools import cache
from math import inf, isfinite, isnan, nan
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cprsim.errors import one_line

TAG = "is"  # key of a record's class, where only the file tells which it is

Record = TypeVar("Record")


class CodecError(ValueError):
    """Plain data do not hold the record that was asked for; the message names the key."""


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a field, where it is not the field's name."""

    name: str


@dataclass(frozen=True, slots=True)
class Null:
    """The value that stands in the file as null."""

    value: Any


class FieldMark(Enum):
    """How else a field may differ from what its hint says."""

    NOT_STORED = auto()  # the reader knows it from elsewhere
    INLINE = auto()  # the fields of this record stand among those of the outer one
    OMIT_NONE = auto()  # None: the key is not there
    OMIT_ZERO = auto()  # 0, its default: the key is not there
    TAGGED = auto()  # this record and those within it name their class
    BY_NAME = auto()  # an enumeration by its name in lower case, not by its value
    FINITE = auto()  # a number that is not finite becomes null, and null becomes NaN


Endless = Annotated[float, Null(inf)]
"""A number of which infinity stands as null: an interval at which nothing is ever saved."""

Finite = Annotated[float, FieldMark.FINITE]
"""A number that is kept only where it is finite."""


# --------------------------------------------------------------------------- numbers


def plain_number(value: float) -> float | str | None:
    """A number: None where it is NaN, ``inf`` or ``-inf`` where it is infinite."""
    if isnan(value):
        return None
    return float(value) if isfinite(value) else str(float(value))


def number_from(plain: float | str | None) -> float:
    """The number that `plain_number` wrote. Raises ValueError for other texts."""
    return nan if plain is None else float(plain)


def finite_or_none(value: float) -> float | None:
    """A number where it is finite, else None."""
    return float(value) if isfinite(value) else None


# --------------------------------------------------------------------------- texts and digests


def json_text(plain: Any, indent: int = 2) -> str:
    """A file's text of plain data. Raises ValueError for NaN and infinity, which JSON lacks."""
    return json.dumps(plain, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def digest_of(plain: Any) -> str:
    """SHA-256 of plain data as JSON, in whatever order its keys stand."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def canonical_digest(plain: Mapping[str, Any]) -> str:
    """The same without spaces, for files that hold their own digest.

    Raises ValueError for NaN and infinity.
    """
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


# --------------------------------------------------------------------------- fields


@dataclass(frozen=True, slots=True)
class _Stored:
    """A field of a record, as the file has it."""

    name: str
    key: str
    hint: Any
    marks: frozenset[Any]
    null: Any  # the value that null stands for
    is_required: bool


@cache
def _layout(kind: Any) -> tuple[_Stored, ...]:
    """The fields of a record that stand in its file, in order."""
    hints = get_type_hints(kind, include_extras=True)
    stored = (_stored(field, hints[field.name]) for field in fields(kind))
    return tuple(one for one in stored if FieldMark.NOT_STORED not in one.marks)


def _stored(field: Field[Any], hint: Any) -> _Stored:
    hint, notes = _unwrapped(hint)
    return _Stored(
        name=field.name,
        key=next((note.name for note in notes if isinstance(note, Key)), field.name),
        hint=hint,
        marks=frozenset(note for note in notes if isinstance(note, FieldMark)),
        null=_null(hint, notes),
        is_required=field.default is MISSING and field.default_factory is MISSING,
    )


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint without its annotations, and these."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        return inner, tuple(notes)
    return hint, ()


def _null(hint: Any, notes: Iterable[Any]) -> Any:
    """What null stands for: what is annotated, NaN for numbers, else None."""
    given = [note.value for note in notes if isinstance(note, Null)]
    return given[0] if given else nan if hint is float else None


# --------------------------------------------------------------------------- records to JSON


def encode(value: Any, *, tagged: bool = False) -> Any:
    """A record, or what stands in one of its fields, as plain data.

    Parameters
    ----------
    tagged : whether records name their class

    Raises
    ------
    TypeError : a value of a kind that JSON can't hold
    ValueError : NaN, where null stands for something else
    """
    if is_dataclass(value) and not isinstance(value, type):
        return _encoded_record(value, tagged)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(inner, tagged=tagged) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [encode(inner, tagged=tagged) for inner in value]
    if isinstance(value, float):
        return plain_number(value)
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, int):
        return value
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _encoded_record(record: Any, tagged: bool) -> dict[str, Any]:
    kind: Any = type(record)
    plain: dict[str, Any] = {TAG: kind.__name__} if tagged else {}
    for stored in _layout(kind):
        value = getattr(record, stored.name)
        if FieldMark.INLINE in stored.marks:
            plain |= encode(value)
        elif not (
            (value is None and FieldMark.OMIT_NONE in stored.marks)
            or (value == 0 and FieldMark.OMIT_ZERO in stored.marks)
        ):
            plain[stored.key] = _encoded_field(stored, value, tagged)
    return plain


def _encoded_field(stored: _Stored, value: Any, tagged: bool) -> Any:
    if FieldMark.BY_NAME in stored.marks:
        return value.name.lower()
    if FieldMark.FINITE in stored.marks:
        return finite_or_none(value)
    if value == stored.null:
        return None
    if _is_nan(value) and not _is_nan(stored.null):
        raise ValueError(f"{stored.key} is NaN, which its file can't hold")
    return encode(value, tagged=tagged or FieldMark.TAGGED in stored.marks)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


# --------------------------------------------------------------------------- JSON to records

_TAGGED: dict[str, type[Any]] = {}


def register(kinds: Iterable[type[Any]]) -> None:
    """Make records known by the name of their class, which a tagged one says."""
    _TAGGED.update({kind.__name__: kind for kind in kinds})


def decode(kind: type[Record], plain: Any, /, **given: Any) -> Record:
    """The record that `encode` wrote; a key that is missing has its default, others are ignored.

    Parameters
    ----------
    kind : class of the record
    plain : what `json` read
    given : values of the fields that are not stored

    Raises
    ------
    CodecError : a key that is missing, or does not hold what its hint says
    ValueError : the record itself refuses a value
    """
    record: Record = _record(kind, plain, "", given)
    return record


def _record(kind: Any, plain: Any, place: str, given: Mapping[str, Any]) -> Any:
    if not isinstance(plain, Mapping):
        raise _wrong(place, plain, "an object")
    values = dict(given)
    for stored in _layout(kind):
        where = f"{place}.{stored.key}".lstrip(".")
        if FieldMark.INLINE in stored.marks:
            values[stored.name] = _record(stored.hint, plain, place, {})
        elif stored.key in plain:
            values[stored.name] = _field(stored, plain[stored.key], where)
        elif stored.is_required:
            raise CodecError(f"it has no {one_line(where)}")
    return kind(**values)


def _field(stored: _Stored, plain: Any, place: str) -> Any:
    if plain is None and stored.null is not None:
        return stored.null
    if FieldMark.BY_NAME in stored.marks:
        names = {one.name.lower(): one for one in stored.hint}
        return _chosen(plain, names, place)
    return _value(stored.hint, plain, place)


def _value(hint: Any, plain: Any, place: str) -> Any:
    """What a hint makes of plain data."""
    hint, notes = _unwrapped(hint)
    null, of = _null(hint, notes), get_args(hint)
    kind = get_origin(hint) or hint
    if plain is None and null is not None:
        return null
    if isinstance(plain, Mapping) and TAG in plain:
        return _record(_chosen(plain[TAG], _TAGGED, f"{place}.{TAG}"), plain, place, {})
    if hint is Any:
        return plain
    if kind in (Union, types.UnionType):
        return _one_of(of, plain, place)
    if kind is Literal:
        return _chosen(plain, {choice: choice for choice in of}, place)
    if is_dataclass(kind):
        return _record(kind, plain, place, {})
    if issubclass(kind, Enum):
        return _chosen(plain, {one.value: one for one in kind}, place)
    if issubclass(kind, Mapping):
        if not isinstance(plain, Mapping):
            raise _wrong(place, plain, "an object")
        return {str(key): _value(of[1], one, f"{place}.{key}") for key, one in plain.items()}
    if issubclass(kind, Sequence) and not issubclass(kind, str):
        return _items(kind, of, plain, place)
    return _scalar(kind, plain, place)


def _one_of(hints: Sequence[Any], plain: Any, place: str) -> Any:
    """The first alternative that takes the data."""
    if plain is None and type(None) in hints:
        return None
    errors = []
    for hint in hints:
        try:
            return _value(hint, plain, place)
        except CodecError as error:
            errors.append(error)
    raise errors[0]


def _items(kind: Any, of: Sequence[Any], plain: Any, place: str) -> Any:
    if not isinstance(plain, list):
        raise _wrong(place, plain, "a list")
    is_fixed = kind is tuple and ... not in of
    if is_fixed and len(plain) != len(of):
        raise _wrong(place, plain, f"a list of {len(of)}")
    hints = of if is_fixed else [of[0]] * len(plain)
    pairs = enumerate(zip(hints, plain, strict=True))
    return tuple(_value(hint, one, f"{place}.{i}") for i, (hint, one) in pairs)


def _chosen(plain: Any, choices: Mapping[Any, Any], place: str) -> Any:
    if isinstance(plain, str | int) and plain in choices:
        return choices[plain]
    raise _wrong(place, plain, f"one of {', '.join(map(str, choices))}")


def _scalar(kind: Any, plain: Any, place: str) -> Any:
    if issubclass(kind, float):
        is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
        if is_number or plain in ("inf", "-inf"):
            return float(plain)
    elif isinstance(plain, str if issubclass(kind, str) else kind) and (
        kind is bool or not isinstance(plain, bool)
    ):
        return plain if kind in (int, bool, str) else kind(plain)
    words = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    raise _wrong(place, plain, words.get(kind, f"{kind.__name__}, by the name of its class"))


def _wrong(place: str, plain: Any, right: str) -> CodecError:
    return CodecError(f"{one_line(place) or 'it'} is {one_line(repr(plain))}; it holds {right}")
