"""The cluster as SimPy processes; its only product is the event log."""

from __future__ import annotations

from cprsim.cluster.fold import cost_breakdown, shard_loss
from cprsim.cluster.simulation import Block, replicate
from cprsim.setting import JobSetting

__all__ = ["Block", "JobSetting", "cost_breakdown", "replicate", "shard_loss"]
