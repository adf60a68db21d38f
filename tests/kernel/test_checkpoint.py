"""Checkpoints that were damaged, cut short, or being written when the process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cprsim.errors import CheckpointError
from cprsim.kernel.checkpoint import read_latest, write_checkpoint

RUN = {"plan": {"seed": 1}}


def arrays(fill: float) -> dict[str, np.ndarray]:
    return {"table": np.full((50, 4), fill, np.float32), "position": np.array([int(fill)])}


@pytest.fixture
def two(tmp_path):
    """A folder with a good checkpoint at 100 and one at 200."""
    for position in (100, 200):
        write_checkpoint(tmp_path, position, arrays(position), RUN)
    return tmp_path


def newest(folder):
    return max(folder.glob("*.checkpoint"))


def test_the_newest_checkpoint_comes_back(two):
    live = arrays(0)
    restored = read_latest(two, live, RUN)
    assert (restored.position, restored.damaged) == (200, ())
    assert (live["table"] == 200).all()
    assert live["position"] == 200


def test_only_the_newest_two_stay(two):
    write_checkpoint(two, 300, arrays(300), RUN)
    assert [path.stem.lstrip("0") for path in sorted(two.iterdir())] == ["200", "300"]


def places_in(content: bytes) -> list[int]:
    return [*range(0, len(content), 41), len(content) - 1]


def test_a_flipped_byte_anywhere_falls_back_and_says_so(two):
    good = newest(two).read_bytes()
    for at in places_in(good):
        newest(two).write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        live = arrays(0)
        restored = read_latest(two, live, RUN)
        assert (live["table"] == 100).all()
        assert restored.position == 100
        assert str(newest(two)) in restored.damaged[0]
        assert str(restored).startswith("passed over ")


def test_a_file_cut_short_anywhere_falls_back(two):
    good = newest(two).read_bytes()
    for length in [0, 5, *places_in(good)]:
        newest(two).write_bytes(good[:length])
        assert read_latest(two, arrays(0), RUN).position == 100


def test_bytes_after_the_end_are_damage_too(two):
    newest(two).write_bytes(newest(two).read_bytes() + b"x")
    assert read_latest(two, arrays(0), RUN).position == 100


def test_nothing_whole_is_an_error_that_names_each_file_and_changes_nothing(two):
    for path in two.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    live = arrays(7)
    with pytest.raises(CheckpointError, match=r"no whole checkpoint\n.*200.*\n.*100.*: damaged"):
        read_latest(two, live, RUN)
    assert (live["table"] == 7).all()


def test_an_empty_folder_holds_no_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        read_latest(tmp_path, arrays(0), RUN)


def test_another_runs_checkpoint_is_refused_and_the_difference_named(two):
    with pytest.raises(CheckpointError, match=r"another run: `plan` is .*1.*, here .*2"):
        read_latest(two, arrays(0), {"plan": {"seed": 2}})
    other = arrays(0) | {"table": np.zeros((9, 4), np.float32)}
    with pytest.raises(CheckpointError, match="other arrays"):
        read_latest(two, other, RUN)


def test_arrays_that_could_not_be_read_back_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="contiguous"):
        write_checkpoint(tmp_path, 1, {"table": np.zeros((4, 4))[:, ::2]}, RUN)
    assert not list(tmp_path.glob("*.checkpoint"))


WRITER = """
import sys
from pathlib import Path
import numpy as np
from cprsim.kernel.checkpoint import write_checkpoint
table = np.zeros((2_000_000, 4), np.float32)
for position in range(1, 10_000):
    table[:] = position
    write_checkpoint(Path(sys.argv[1]), position, {"table": table}, {})
    print(position, flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.004, 0.011, 0.017])
def test_killed_while_writing_leaves_a_whole_checkpoint(tmp_path, delay_s):
    writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE)
    announced = [int(writer.stdout.readline()) for _ in range(2)]
    time.sleep(delay_s)
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.communicate()[0].split()
    last = int(rest[-1]) if rest else announced[-1]
    table = np.zeros((2_000_000, 4), np.float32)
    restored = read_latest(tmp_path, {"table": table}, {})
    assert restored.position in (last, last + 1)  # it may have died before it could say so
    assert restored.damaged == ()
    assert (table == restored.position).all()
