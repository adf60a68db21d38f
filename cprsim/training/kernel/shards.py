"""Which embedding server holds which rows.

Two assignments, both found in practice. By rows: row i of all tables, one after the other, lives
on server ``i mod n_servers``, every server holds a part of every table, and a failure takes the
same share of each. By tables: a table lives on one server, the next largest always on the one with
the fewest rows so far; failures are then uneven.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.model_shape import TableLayout
from cprsim.job.records import Floats, Ints, ShardBy


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows of one table on one server, as a slice of the fused table."""

    table: int
    server: int
    rows: slice

    @property
    def n_rows(self) -> int:
        return len(range(self.rows.start, self.rows.stop, self.rows.step))

    def ids(self, positions: Ints) -> Ints:
        """Fused row ids of positions within the segment."""
        start: int = self.rows.start
        return start + positions * int(self.rows.step)


class Shards:
    """The embedding rows of a layout, dealt out to `n_servers` embedding servers."""

    def __init__(self, layout: TableLayout, n_servers: int, by: ShardBy = ShardBy.ROWS) -> None:
        if n_servers < 1:
            raise ParameterError(f"needs at least one embedding server, got {n_servers}")
        self.layout, self.n_servers = layout, n_servers
        segments = self._by_rows() if by is ShardBy.ROWS else self._by_tables()
        self.segments = tuple(segment for segment in segments if segment.n_rows)

    def _by_rows(self) -> Iterable[Segment]:
        for table in range(self.layout.n_tables):
            rows = self.layout.of(table)
            for server in range(self.n_servers):
                first = rows.start + (server - rows.start) % self.n_servers
                yield Segment(table, server, slice(first, max(rows.stop, first), self.n_servers))

    def _by_tables(self) -> Iterable[Segment]:
        n_rows = [0] * self.n_servers
        for table in self.layout.largest(self.layout.n_tables):
            server = n_rows.index(min(n_rows))
            n_rows[server] += self.layout.rows[table]
            rows = self.layout.of(table)
            yield Segment(table, server, slice(rows.start, rows.stop, 1))

    def of_tables(self, tables: Iterable[int]) -> tuple[Segment, ...]:
        """The segments of some tables."""
        wanted = set(tables)
        return tuple(segment for segment in self.segments if segment.table in wanted)

    def of_servers(self, servers: Iterable[int]) -> tuple[Segment, ...]:
        """The segments that some servers hold. Raises ParameterError for a server out of range."""
        wanted = set(servers)
        if not wanted <= set(range(self.n_servers)):
            raise ParameterError(f"servers are 0 to {self.n_servers - 1}, got {sorted(wanted)}")
        return tuple(segment for segment in self.segments if segment.server in wanted)

    @property
    def share(self) -> Floats:
        """(n_servers,) share of all rows that each server holds."""
        n_rows = np.zeros(self.n_servers)
        for segment in self.segments:
            n_rows[segment.server] += segment.n_rows
        return n_rows / self.layout.n_rows
