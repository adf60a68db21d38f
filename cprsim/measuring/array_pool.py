"""ArrayPool for copies of tables: memory up to half of the machine's, files beyond."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any

import numpy as np

from cprsim.kernel.loops import Array

SHARE = 0.5  # of the machine's memory


def memory_bytes() -> int:
    """Of this machine [bytes]."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class ArrayPool:
    """Arrays in memory while there is room, then in files that vanish with them.

    Parameters
    ----------
    most_bytes : that all arrays in memory take together; None: half of this machine's
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        self.most_bytes = int(SHARE * memory_bytes()) if most_bytes is None else most_bytes
        self.taken_bytes = 0
        self.spilled_bytes = 0

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array whose content is not set yet."""
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self.taken_bytes + n_bytes > self.most_bytes and n_bytes:
            self.spilled_bytes += n_bytes
            with tempfile.TemporaryFile(prefix="cprsim-") as file:  # the map keeps it alive
                return np.memmap(file, dtype, "w+", shape=shape)
        array = np.empty(shape, dtype)
        self.taken_bytes += n_bytes
        weakref.finalize(array, self._give_back, n_bytes)
        return array

    def _give_back(self, n_bytes: int) -> None:
        self.taken_bytes -= n_bytes
