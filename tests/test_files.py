"""Files: records read back as they were written, wrong keys by their name, and whole files."""

import errno
import json
import os
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from cprsim.files import decode, encode, write_whole
from cprsim.job.distributions import PiecewiseHazard, Weibull
from cprsim.job.losses import Metric
from cprsim.job.policy import RELOAD, Groups, Medium, PartOf, Ring, Tier
from cprsim.job.records import Decision, Estimate, SmallTables, SubSaves
from cprsim.results.limit import Limit
from tests.making import paper_policy

NEAR = Tier("near", Medium.HOST, Ring(2), "worker", load=PartOf(Weibull(0.7, 2.0), 0.5, 0.1))
GROUPS = Tier("far", Medium.SSD, Groups(4, 1), "worker", load=PiecewiseHazard((0.0,), (1.0,)))
SAVES = SubSaves("scar", 1 / 3, 0.5, 9, SmallTables.EACH_SUB_SAVE, 4)
CHOSEN = Decision("partial", inf, 1.5, 0.0, inf, 0.1)
CPR = paper_policy("cpr", RELOAD, inf, "cpr", CHOSEN, SAVES)
WEIBULL = {"is": "Weibull", "shape": 0.7, "scale_h": 2.0}


@pytest.mark.parametrize(
    ("record", "keys"),
    [
        (Estimate(nan, -inf, inf), {"mean": None, "low": "-inf", "high": "inf"}),
        (Estimate(1.5, 1.0, 2.0, 7), {"mean": 1.5, "low": 1.0, "high": 2.0, "n": 7}),
        (Limit(Metric.AUC, 0.001), {"quantity": "auc", "risk": None}),
        (NEAR, {"medium": "host", "placement": {"is": "Ring", "copies": 2},
                "load": {"is": "PartOf", "whole": WEIBULL, "fraction": 0.5, "extra_h": 0.1}}),
        (GROUPS, {"load": {"is": "PiecewiseHazard", "from_h": [0.0], "rates_per_h": [1.0]}}),
        (CPR, {"name": "cpr"}),
    ],
)  # fmt: skip
def test_a_record_is_read_back(record: Any, keys: dict[str, Any]) -> None:
    plain = encode(record)
    assert plain == plain | keys
    assert ("n" in plain) == ("n" in keys)  # left out where it is 0
    again = decode(type(record), json.loads(json.dumps(plain, allow_nan=False)) | {"unheard": 1})
    assert repr(again) == repr(record)  # in which NaN equals NaN, and 1.0 is not 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"placement": {"is": "Nobody"}}, r"placement: Input tag 'Nobody'"),
        ({"placement": {"is": "Ring", "copies": 1.5}}, r"placement\.Ring\.copies: Input should be"),
    ],
)
def test_what_is_wrong_is_named_by_its_key(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        decode(Tier, encode(NEAR) | change)


# --------------------------------------------------------------------------- whole files


def test_a_file_is_replaced_and_nobody_sees_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "old")

    def put(unfinished: Path, path: Path) -> None:
        assert (unfinished.read_text(), path.read_text()) == ("new", "old")
        unfinished.replace(path)

    write_whole(path, "new", put)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    path.symlink_to(os.devnull)
    write_whole(path, "gone")
    assert path.is_char_device()


@pytest.mark.parametrize("failing", ["fsync", "replace"])
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
        with pytest.raises(OSError, match="No space left") as told:
            write_whole(path, "new", put)
    if failing == "fsync":  # the system names no file
        assert told.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
