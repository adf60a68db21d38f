"""Readers of logs: each yields the same `Outages`, or one clear error with file and line.

formats           a file for each format, and which one a log has
files             bytes, lines and text of a log, unpacked (.xz, .gz, .bz2, .zst, .zip)
reading, times    cells and instants of tables
tables, slurm     tables of any program, and Slurm's
log               `Outages` of a frame with node, start, end and cause
"""

from cprsim.failures.traces.asked import Period
from cprsim.failures.traces.formats.infinitehbd import read_infinitehbd
from cprsim.failures.traces.formats.lanl import read_lanl

__all__ = ["Period", "read_infinitehbd", "read_lanl"]
