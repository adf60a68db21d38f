"""Records as JSON: what is read back is what was written, and what is wrong is named by its key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from math import inf, isnan, nan
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from cprsim import codec
from cprsim.codec import CodecError, Endless, FieldMark, Finite, Key, Null, decode, encode


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@dataclass(frozen=True)
class Inner:
    x: float
    y: int = 3


@dataclass(frozen=True)
class Other:
    word: str


@dataclass(frozen=True)
class Everything:
    path: Annotated[Path, FieldMark.NOT_STORED]
    name: str
    every_h: Annotated[Endless, Key("every")]
    level: Annotated[Level, FieldMark.BY_NAME]
    inner: Annotated[Inner, FieldMark.INLINE]
    colour: Colour = Colour.RED
    tier: Annotated[str, Key("from"), Null("")] = ""
    best: Mapping[str, Inner | None] | None = None
    pair: tuple[float, str] = (nan, "a")
    flags: tuple[bool, ...] = ()
    how: Literal["line", "steps"] = "line"
    count: int | float = 1
    share: Finite = nan
    price: Annotated[float | None, FieldMark.OMIT_NONE] = None
    system: Annotated[Any, FieldMark.TAGGED] = None
    free: Any = None


codec.register([Inner, Other])
HERE = Path("here")
WHOLE = Everything(
    HERE, "a", inf, Level.HIGH, Inner(-inf), Colour.BLUE, "remote", {"b": Inner(1.0), "c": None},
    (2.0, "b"), (True, False), "steps", 2.5, 0.5, 1.5, (Inner(inf), Other("w")), {"is it": [1]},
)  # fmt: skip
LEAST = Everything(HERE, "a", 2.0, Level.LOW, Inner(1.0))
PLAIN = {
    "name": "a", "every": None, "level": "high", "x": "-inf", "y": 3, "colour": "blue",
    "from": "remote", "best": {"b": {"x": 1.0, "y": 3}, "c": None}, "pair": [2.0, "b"],
    "flags": [True, False], "how": "steps", "count": 2.5, "share": 0.5, "price": 1.5,
    "system": [{"is": "Inner", "x": "inf", "y": 3}, {"is": "Other", "word": "w"}],
    "free": {"is it": [1]},
}  # fmt: skip


def test_the_keys_are_those_of_the_fields_in_order_but_for_what_is_annotated() -> None:
    assert encode(WHOLE) == PLAIN
    assert list(encode(WHOLE)) == list(PLAIN)


def test_what_is_not_there_is_null_or_left_out() -> None:
    plain = encode(LEAST)
    assert [plain[key] for key in ("from", "best", "share", "pair")] == [
        None,
        None,
        None,
        [None, "a"],
    ]
    assert "price" not in plain
    assert encode(Everything(HERE, "a", 2.0, Level.LOW, Inner(1.0), share=inf))["share"] is None


def test_a_record_is_read_back() -> None:
    again = decode(Everything, json.loads(json.dumps(encode(WHOLE), allow_nan=False)), path=HERE)
    read_as_tuple = Everything(**{**vars(WHOLE), "system": again.system})
    assert again == read_as_tuple
    assert again.system == [{"is": "Inner", "x": "inf", "y": 3}, {"is": "Other", "word": "w"}]


def test_a_tagged_record_is_read_by_the_name_of_its_class() -> None:
    one = Everything(HERE, "a", 2.0, Level.LOW, Inner(1.0), system=Other("w"))
    assert decode(Everything, encode(one), path=HERE).system == Other("w")
    with pytest.raises(CodecError, match=r"system\.is is 'Nobody'; it holds one of"):
        decode(Everything, encode(one) | {"system": {"is": "Nobody"}}, path=HERE)


def test_keys_that_are_missing_have_their_defaults_and_others_are_ignored() -> None:
    least = {"name": "a", "every": 2, "level": "low", "x": 1, "unheard": {}}
    again = decode(Everything, least, path=HERE)
    assert (again.every_h, again.inner, again.tier) == (2.0, Inner(1.0), "")
    assert isinstance(again.every_h, float)
    assert isnan(again.share)


def test_a_whole_number_stays_one_where_both_are_possible() -> None:
    for count in (2, 2.0):
        found = decode(Everything, {**PLAIN, "count": count}, path=HERE).count
        assert type(found) is type(count)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", 3, "name is 3; it holds a text"),
        ("every", "1 h", "every is '1 h'; it holds a number"),
        ("y", 1.5, "y is 1.5; it holds a whole number"),
        ("level", 1, "level is 1; it holds one of low, high"),
        ("colour", "green", "colour is 'green'; it holds one of red, blue"),
        ("how", "dots", "how is 'dots'; it holds one of line, steps"),
        ("best", {"b": {"x": "one"}}, r"best\.b\.x is 'one'; it holds a number"),
        ("best", {"b": 1}, r"best\.b is 1; it holds an object"),
        ("pair", [1.0], r"pair is \[1.0\]; it holds a list of 2"),
        ("flags", [True, 1], r"flags\.1 is 1; it holds true or false"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_key(key, value, message) -> None:
    with pytest.raises(CodecError, match=f"^{message}$"):
        decode(Everything, {**PLAIN, key: value}, path=HERE)


@pytest.mark.parametrize("key", ["name", "every", "level", "x"])
def test_what_is_missing_is_named(key) -> None:
    rest = {name: value for name, value in PLAIN.items() if name != key}
    with pytest.raises(CodecError, match=f"^it has no {key}$"):
        decode(Everything, rest, path=HERE)


@pytest.mark.parametrize("plain", [None, [], "a", 3])
def test_what_is_no_object_is_no_record(plain) -> None:
    with pytest.raises(CodecError, match="it holds an object"):
        decode(Everything, plain, path=HERE)


def test_what_json_can_not_hold_is_an_error() -> None:
    with pytest.raises(ValueError, match="every is NaN"):
        encode(Everything(HERE, "a", nan, Level.LOW, Inner(1.0)))
    with pytest.raises(TypeError, match="complex has no place in JSON"):
        encode({"a": 1j})


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert codec.digest_of({"a": 1, "b": 2}) == codec.digest_of({"b": 2, "a": 1})
    assert codec.canonical_digest({"a": 1, "b": 2}) == codec.canonical_digest({"b": 2, "a": 1})
    assert codec.digest_of({"a": 1}) != codec.digest_of({"a": 2})
