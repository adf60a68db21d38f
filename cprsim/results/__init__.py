"""Results: metrics over replications, and the folder that keeps them.

An outcome becomes rows (one per replication); rows become metrics (means, intervals,
differences) and go into a folder (tables, summary, the manifest last) that reads back.
"""

from __future__ import annotations

from cprsim.results.compare import (
    Differing,
    compare,
    differences,
    different,
    inputs_of,
    same_failures,
    shared_errors,
)
from cprsim.results.identity import Identity
from cprsim.results.manifest import damage
from cprsim.results.metrics import FINISHED, METRICS, records_of, summarise
from cprsim.results.run import Logbook, Recovered, Result, load_result, write_result

__all__ = [
    "FINISHED",
    "METRICS",
    "Differing",
    "Identity",
    "Logbook",
    "Recovered",
    "Result",
    "compare",
    "damage",
    "differences",
    "different",
    "inputs_of",
    "load_result",
    "records_of",
    "same_failures",
    "shared_errors",
    "summarise",
    "write_result",
]
