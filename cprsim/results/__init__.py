"""Results: metrics over replications, and the folder that keeps them.

    Outcome -> rows (one per replication) -> metrics (means, intervals, differences)
                └-> folder: tables, summary, manifest last; read back as DataFrames
"""

from __future__ import annotations

from cprsim.results.compare import compare, differences, same_failures
from cprsim.results.identity import Identity, input_digests
from cprsim.results.manifest import damage
from cprsim.results.metrics import FINISHED, METRICS, summarise, summarise_rows
from cprsim.results.read import Recovered, Result, load_result
from cprsim.results.write import Logbook, write_result

__all__ = [
    "FINISHED",
    "METRICS",
    "Identity",
    "Logbook",
    "Recovered",
    "Result",
    "compare",
    "damage",
    "differences",
    "input_digests",
    "load_result",
    "same_failures",
    "summarise",
    "summarise_rows",
    "write_result",
]
