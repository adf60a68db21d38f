"""Files: records read back as they were written, wrong keys by their name, and whole files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given

from cprsim.failures.distributions import PiecewiseHazard, Weibull
from cprsim.files import (
    NOT_STORED,
    OMITTED,
    CodecError,
    Endless,
    Number,
    Stored,
    Tagged,
    decode,
    encode,
    whole_file,
    write_whole,
)
from cprsim.recovery.policy import (
    Capture,
    Groups,
    Medium,
    PartOf,
    Policy,
    Reverts,
    Ring,
    Rule,
    Tier,
)
from tests.generated import comparable, policies


@dataclass(frozen=True)
class Inner:
    x: Number
    y: int = 3


@dataclass(frozen=True)
class Other:
    word: str


@dataclass(frozen=True)
class Outer:
    inner: Inner
    z: int = 4


@dataclass(frozen=True)
class Everything:
    path: Path = field(metadata=NOT_STORED)
    every_h: Endless = field(metadata={"alias": "every"})
    outer: Outer
    more: tuple[Outer, ...] = ()
    size: Annotated[str, Stored(str.lower, str.upper)] = "S"
    best: Mapping[str, Inner | None] | None = None
    pair: tuple[Number, str] = (nan, "a")
    price: float | None = field(default=None, metadata=OMITTED)
    system: Annotated[Any, Tagged(Inner, Other)] = Other("none")


HERE = Path("here")
LEAST = Everything(HERE, 2.0, Outer(Inner(nan)))
WHOLE = Everything(
    HERE, inf, Outer(Inner(-inf), 5), (Outer(Inner(1.0)),), "L",
    {"is": Inner(1.0), "c": None}, (2.0, "b"), 1.5, Inner(inf),
)  # fmt: skip


@pytest.mark.parametrize(
    ("record", "plain"),
    [
        (
            LEAST,
            {
                "every": 2.0, "outer": {"inner": {"x": None, "y": 3}, "z": 4}, "more": [],
                "size": "s", "best": None, "pair": [None, "a"],
                "system": {"is": "Other", "word": "none"},
            },
        ),
        (
            WHOLE,
            {
                "every": None, "outer": {"inner": {"x": "-inf", "y": 3}, "z": 5},
                "more": [{"inner": {"x": 1.0, "y": 3}, "z": 4}],
                "size": "l", "pair": [2.0, "b"], "price": 1.5,
                "best": {"is": {"x": 1.0, "y": 3}, "c": None},  # a name, and no class
                "system": {"is": "Inner", "x": "inf", "y": 3},
            },
        ),
    ],
)  # fmt: skip
def test_a_record_is_read_back(record: Everything, plain: Any) -> None:
    assert encode(record) == plain
    again = decode(Everything, plain | {"unheard": {}}, {"path": HERE})
    assert comparable(again) == comparable(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"more": [{"inner": {"x": 1, "y": 1.5}}]},
            r"more\.0\.inner\.y: Input should be a valid integer",
        ),
        ({"every": "1 h"}, r"every: Value error, could not convert"),
        ({"best": {"b": {"x": 1, "y": "one"}}}, r"best\.b\.y: Input should be a valid integer"),
        ({"pair": [1.0]}, r"pair\.1: Field required"),
        ({"system": {"is": "Nobody"}}, r"system: Input tag 'Nobody'"),
        ({"system": {"is": "Other"}}, r"system\.Other\.word: Field required"),
    ],
)
def test_what_is_wrong_is_named_by_its_key(change: Any, message: str) -> None:
    with pytest.raises(CodecError, match=f"^{message}"):
        decode(Everything, encode(WHOLE) | change, {"path": HERE})


# --------------------------------------------------------------------------- of strategies


def as_file(plain: Any) -> Any:
    """Through the text of a file."""
    return json.loads(json.dumps(plain, allow_nan=False))


@given(policies)
def test_a_policy_is_read_back_as_it_was_written(policy: Policy) -> None:
    assert comparable(decode(Policy, as_file(encode(policy)))) == comparable(policy)


def test_a_system_is_read_back() -> None:
    varying = PartOf(Weibull(0.7, 2.0), 0.5, 0.1)
    policy = Policy(
        "mine",
        (Rule(Reverts.ALL, ()),),
        (
            Tier("near", Medium.HOST, Ring(2), "worker", load=PiecewiseHazard((0.0,), (1.0,))),
            Tier("far", Medium.SSD, Groups(4, 1), "worker", load=varying),
        ),
        (Capture("near", every_h=1.0, stall=varying), Capture("far", after="near")),
    )
    assert decode(Policy, as_file(encode(policy))) == policy


# --------------------------------------------------------------------------- whole files


def test_a_file_is_replaced_and_nobody_sees_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with whole_file(path) as file:
        file.write("ne")
        file.flush()
        assert path.read_text() == "old"
        file.write("w")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("failing", ["fsync", "replace", "writer"])
def test_what_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put = full if failing == "replace" else os.replace
    with monkeypatch.context() as patch:
        if failing == "fsync":
            patch.setattr(os, "fsync", full)
        with (
            pytest.raises((OSError, ZeroDivisionError)) as told,
            whole_file(path, put=put) as it,
        ):
            it.write(str(1 / 0) if failing == "writer" else "new")
    assert isinstance(told.value, OSError) == (failing != "writer")
    if isinstance(told.value, OSError) and failing == "fsync":  # the system names no file
        assert told.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
