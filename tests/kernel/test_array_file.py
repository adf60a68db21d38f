"""Files of arrays that were damaged or cut short."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.errors import CheckpointError
from cprsim.training.kernel.array_file import arrays_in, pieces

RUN = {"plan": {"seed": 1}}
ARRAYS = {
    "table": np.full((50, 4), 200.0, np.float32),
    "position": np.array([200]),
    "row_state": np.zeros((0, 3)),
}
GOOD = b"".join(pieces(ARRAYS, RUN, 200))
PLACES = [*range(0, len(GOOD), 41), len(GOOD) - 1]


def test_what_was_written_comes_back():
    found = arrays_in(GOOD, "file")
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("most_bytes", [1, 7, 1000])
def test_a_file_is_the_same_in_whatever_pieces_it_is_written(most_bytes):
    found = list(pieces(ARRAYS, RUN, 200, most_bytes))
    assert b"".join(found) == GOOD
    assert all(0 < len(piece) <= most_bytes for piece in found[:-1])


def test_a_flipped_byte_a_cut_and_a_longer_file_are_found():
    flipped = [GOOD[:at] + bytes([GOOD[at] ^ 0x10]) + GOOD[at + 1 :] for at in PLACES]
    for bad in (*flipped, GOOD + b"x", b"", GOOD[:5], *(GOOD[:at] for at in PLACES)):
        with pytest.raises(CheckpointError, match="file"):
            arrays_in(bad, "file")
