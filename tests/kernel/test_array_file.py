"""Files of arrays that were damaged, cut short, or being written when the process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cprsim.errors import CheckpointError
from cprsim.kernel.array_file import arrays_in, pieces, read_arrays, write_arrays

RUN = {"plan": {"seed": 1}}


def arrays(fill: float) -> dict[str, np.ndarray]:
    return {
        "table": np.full((50, 4), fill, np.float32),
        "position": np.array([int(fill)]),
        "row_state": np.zeros((0, 3)),
    }


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "saved"
    write_arrays(path, 200, arrays(200), RUN)
    return path


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert list(one) == list(other)
    for name in one:
        assert (one[name].dtype, one[name].shape) == (other[name].dtype, other[name].shape)
        assert one[name].tobytes() == other[name].tobytes()


def test_what_was_written_comes_back_mapped_or_at_once(file):
    assert_same(read_arrays(file, RUN), arrays(200))
    assert_same(arrays_in(file.read_bytes(), file.name), arrays(200))


@pytest.mark.parametrize("most_bytes", [1, 7, 1000])
def test_a_file_is_the_same_in_whatever_pieces_it_is_written(file, most_bytes):
    found = list(pieces(arrays(200), RUN, 200, most_bytes))
    assert b"".join(found) == file.read_bytes()
    assert all(0 < len(piece) <= most_bytes for piece in found[:-1])


def places_in(content: bytes) -> list[int]:
    return [*range(0, len(content), 41), len(content) - 1]


def refused(path) -> None:
    with pytest.raises(CheckpointError, match=path.name):
        read_arrays(path, RUN)
    with pytest.raises(CheckpointError, match=path.name):
        arrays_in(path.read_bytes(), path.name)


def test_a_flipped_byte_anywhere_is_found(file):
    good = file.read_bytes()
    for at in places_in(good):
        file.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        refused(file)


def test_a_file_cut_short_anywhere_or_too_long_is_found(file):
    good = file.read_bytes()
    file.write_bytes(good + b"x")
    refused(file)
    for length in [0, 5, *places_in(good)]:
        file.write_bytes(good[:length])
        refused(file)


def test_another_runs_file_is_refused(file):
    with pytest.raises(CheckpointError, match="another run"):
        read_arrays(file, {"plan": {"seed": 2}})


WRITER = """
import sys
from pathlib import Path
import numpy as np
from cprsim.kernel.array_file import write_arrays
table = np.zeros((2_000_000, 4), np.float32)
for position in range(1, 10_000):
    table[:] = position
    write_arrays(Path(sys.argv[1]), position, {"table": table}, {})
    print(position, flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.004, 0.011, 0.017])
def test_killed_while_writing_leaves_a_whole_file(tmp_path, delay_s):
    path = tmp_path / "saved"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
    announced = [int(writer.stdout.readline()) for _ in range(2)]
    time.sleep(delay_s)
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.communicate()[0].split()
    last = int(rest[-1]) if rest else announced[-1]
    table = read_arrays(path, {})["table"]
    assert table[0, 0] in (last, last + 1)  # it may have died before it could say so
    assert (table == table[0, 0]).all()
