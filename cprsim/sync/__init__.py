"""How the trainers of a job stay in step, and how fast they are meanwhile.

    SyncSetting ──> load_model: closed forms      ─┐
         └────────> simulate: SimPy processes ─────┴─> Throughput
                          └─> SyncLog ──> training of replicas by it

What simulates comes with SimPy, and stands in `simulation` and `trainers` alone. The room computes
times and bytes, no weights: what a synchronisation does to a model is in
`cprsim.kernel.replicas`.
"""

from __future__ import annotations

from cprsim.sync.load_model import LoadModel, load_model
from cprsim.sync.setting import ALL, Algorithm, Method, Stragglers, SyncEvent, SyncLog, SyncSetting

__all__ = [
    "ALL",
    "Algorithm",
    "LoadModel",
    "Method",
    "Stragglers",
    "SyncEvent",
    "SyncLog",
    "SyncSetting",
    "load_model",
]
