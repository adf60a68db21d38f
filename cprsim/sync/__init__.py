"""How the trainers of a job stay in step, and how fast they are meanwhile.

    SyncSetting ──> load_model: closed forms      ─┐
         └────────> simulate: SimPy processes ─────┴─> Throughput
                          └─> SyncLog ──> training of replicas by it

The room computes times and bytes, no weights: what a synchronisation does to a model is in
`cprsim.kernel.replicas`.
"""

from __future__ import annotations

from cprsim.sync.load_model import LoadModel, load_model
from cprsim.sync.setting import ALL, Algorithm, Method, Stragglers, SyncEvent, SyncLog, SyncSetting
from cprsim.sync.simulation import SpeedPoint, Throughput, over_trainers, run_log, throughput
from cprsim.sync.trainers import Outage

__all__ = [
    "ALL",
    "Algorithm",
    "LoadModel",
    "Method",
    "Outage",
    "SpeedPoint",
    "Stragglers",
    "SyncEvent",
    "SyncLog",
    "SyncSetting",
    "Throughput",
    "load_model",
    "over_trainers",
    "run_log",
    "throughput",
]
