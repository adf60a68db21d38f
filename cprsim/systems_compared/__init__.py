"""Which recovery system for a job: all that can run it, each at its best, on the same failures.

scenario ──> lineup: who can run this job ──> each at its best interval ──> one run of all
                └── who can't, and why                                        └──> standings
"""

from __future__ import annotations

from cprsim.systems_compared.best import Found, best_policies
from cprsim.systems_compared.folder import BESIDE, Comparison, is_comparison, load_comparison
from cprsim.systems_compared.lineup import Entrant, Lineup, lineup_of
from cprsim.systems_compared.standings import Standing, standings

__all__ = [
    "BESIDE",
    "Comparison",
    "Entrant",
    "Found",
    "Lineup",
    "Standing",
    "best_policies",
    "is_comparison",
    "lineup_of",
    "load_comparison",
    "standings",
]
