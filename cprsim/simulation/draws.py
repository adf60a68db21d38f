"""What varies in the replications of a job: costs, and saves that fail."""

from __future__ import annotations

from typing import overload
from zlib import crc32

import numpy as np

from cprsim.compiling import part
from cprsim.failures.sources import require_room, stream
from cprsim.job.records import Floats, Ints
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.spec import spec_of
from cprsim.simulation.state import Drawn

MASK = 2**32 - 1


class BlockDraws:
    """Draws of a block of replications under one job: varying costs, and failed or corrupt saves.

    Costs are drawn for the whole block, nth after nth, so that a value depends on (seed, block,
    name, replication, n) alone, not on the strategy that asks, nor on `rows`.

    Parameters
    ----------
    n_of_block : replications of the whole block
    rows : those that are wanted, numbered within it; they are numbered from 0 on here
    """

    def __init__(
        self, job: SimulatedJob, seed: int, block: int, n_of_block: int, rows: range
    ) -> None:
        _, tables = spec_of(job)
        self.of_saves, self.of_failures = tables.of_saves, tables.of_failures
        self._durations = self.of_saves | self.of_failures
        self._n_of_block, self._rows, self.n_rows = n_of_block, rows, len(rows)
        self._rngs = {
            name: stream(seed, block, f"costs/{job.policy.draw_name(name)}")
            for name in self._durations
        }
        self._tables: dict[str, Floats] = dict.fromkeys(self._durations, np.zeros((0, len(rows))))
        tiers = [capture.tier for capture in job.policy.captures]
        numbers = np.arange(rows.start, rows.stop)
        first = [crc32(f"saves/{seed}/{block}/{tier}".encode()) for tier in tiers]
        self.keys: Ints = np.array(
            [stream_keys(number, numbers) for number in first], dtype=np.int64
        ).reshape(len(tiers), self.n_rows)

    def table(self, name: str, n: int) -> Floats:
        """The first n draws of a cost, and perhaps more, (n_drawn, n_rows) [h]."""
        table = self._tables[name]
        n_before = len(table)
        if n <= n_before:
            return table
        n_now = max(n, 2 * n_before)
        require_room(
            8.0 * self.n_rows * (n_before + n_now),
            f"{n_now} draws of {name} for {self.n_rows} replications",
            "{} times fewer failures or saves would fit",
            fewer_fit=True,
        )
        longer: Floats = np.empty((n_now, self.n_rows))
        longer[:n_before] = table
        for number in range(n_before, n_now):
            drawn_h = self._durations[name].sample(self._rngs[name], self._n_of_block)
            longer[number] = drawn_h[self._rows.start : self._rows.stop]
        self._tables[name] = longer
        return longer

    def first(self, n: int) -> Drawn:
        """The first n draws of each cost."""
        none = np.zeros((0, 0, self.n_rows))
        of_saves, of_failures = (
            np.stack([self.table(name, n)[:n] for name in names]) if names else none
            for names in (self.of_saves, self.of_failures)
        )
        return Drawn(of_saves, of_failures, self.keys)


@overload
def uniform(key: int, n: int) -> float: ...
@overload
def uniform(key: Ints, n: Ints) -> Floats: ...
@part
def uniform(key: int | Ints, n: int | Ints) -> float | Floats:
    """The nth number in [0, 1) of a stream, by hashing; of many streams where these are arrays.

    The steps and constants are those of a known 32-bit integer hash (recalled).
    """
    x = (key + n * 0x9E3779B1) & MASK
    x ^= x >> 16
    x = (x * 0x7FEB352D) & MASK
    x ^= x >> 15
    x = (x * 0x846CA68B) & MASK
    x ^= x >> 16
    return x / 4294967296.0


def stream_keys(first: int, numbers: Ints) -> Ints:
    """Keys of the streams of `uniform` of some replications, numbered within their block."""
    return (first + numbers * 0x85EBCA6B) & MASK
