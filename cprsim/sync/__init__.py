"""How the trainers of a job stay in step, and how fast they are meanwhile.

    SyncSetting ──> load_model: closed forms      ─┐
         └────────> simulate: SimPy processes ─────┴─> Throughput
                          └─> SyncLog ──> whoever trains replicas by it

The room knows times and bytes, no weights: what a synchronisation does to a model is the kernel's.
"""

from __future__ import annotations

from cprsim.sync.load_model import LoadModel, load_model
from cprsim.sync.log import ALL, SyncEvent, SyncLog
from cprsim.sync.setting import Algorithm, Method, Stragglers, SyncSetting
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
