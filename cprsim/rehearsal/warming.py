"""Have compiled, before anything is timed, what workers run."""

from __future__ import annotations

import numpy as np

from cprsim.kernel.model import Dlrm, Workspace
from cprsim.kernel.optimizers import optimizer_for
from cprsim.records import SubSaves
from cprsim.rehearsal.shard import TRACKERS, Shard, initial_rows
from cprsim.rehearsal.worker import Heirloom


def warm(heirloom: Heirloom) -> None:
    """Go through a batch, a push and a sub-save of each kind on copies."""
    _batch(heirloom)
    for tracker in (None, *TRACKERS):
        _shard(heirloom, tracker)


def _batch(heirloom: Heirloom) -> None:
    material = heirloom.material
    rows = material.clicks.rows[: material.plan.batch]
    integers, label = (
        column[: len(rows)] for column in (material.clicks.integers, material.clicks.label)
    )
    pulled = np.array(heirloom.table[rows.ravel()])
    model = Dlrm(material.shape, table=pulled, dense=heirloom.dense.copy())
    work = Workspace(model, len(rows))
    at = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
    model.forward(integers, at, work)
    model.backward(integers, label, work)
    optimizer_for(material.plan.optimizer, model).update_dense(work.d_dense, 0.0)


def _shard(heirloom: Heirloom, tracker: str | None) -> None:
    material = heirloom.material
    sub_saves = None if tracker is None else SubSaves(tracker)
    shard = Shard(material, 0, initial_rows(material, heirloom.table, 0), sub_saves)
    gradients = np.zeros((1, material.shape.dimension), np.float32)
    shard.push(np.zeros(1, np.int32), gradients, 0.0)
    shard.start_save(ends_interval=True, number=0)
    shard.abandon()
