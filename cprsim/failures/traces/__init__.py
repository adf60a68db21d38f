"""Readers of logs: each yields the same `Outages`, or one clear error with file and line.

    tidy.read_table   a table with a row per outage: node, start, end, optionally cause
    read_infinitehbd  JSON with a start and an end event per fault (InfiniteHBD's format)
    read_lanl         CSV of the failure records LA-UR-05-7318 of Los Alamos

Files may be compressed (.xz, .gz, .bz2, .zip).
"""

from cprsim.failures.traces.infinitehbd import read_infinitehbd
from cprsim.failures.traces.lanl import read_lanl
from cprsim.failures.traces.reading import Period

__all__ = ["Period", "read_infinitehbd", "read_lanl"]
