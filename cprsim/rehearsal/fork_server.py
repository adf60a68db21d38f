"""The warmed parent of all workers: it has imported and read everything, and forks on demand.

    python -m cprsim.rehearsal.fork_server PARENT    stdin: the material, then an address a process

It is killed when the supervisor ends, and ends when its input does; its children with it.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from functools import partial

import numpy as np

import cprsim.rehearsal.trainer  # noqa: F401  # for the workers, who are told their role
from cprsim.job.records import SubSaves
from cprsim.rehearsal.material import Material, fresh_model
from cprsim.rehearsal.server import Shard
from cprsim.rehearsal.worker import Worker, die_with_parent
from cprsim.rehearsal.worker import main as work
from cprsim.training.kernel.model import Dlrm, Workspace
from cprsim.training.kernel.optimizers import OPTIMIZERS
from cprsim.training.kernel.trackers import TRACKER_CLASSES
from cprsim.training.kernel.training import learned

TO_SUPERVISOR = 1  # the supervisor reads a pipe there


def warm(material: Material, start: Dlrm) -> None:
    """Compile what workers run before anything is timed: a batch, a push, each kind of sub-save."""
    _batch(material, start)
    for tracker in (None, *TRACKER_CLASSES):
        if tracker == "momentum" and material.plan.optimizer == "sgd":
            continue
        sub_saves = None if tracker is None else SubSaves(tracker)
        shard = Shard(material, 0, start.table, sub_saves)
        gradients = np.zeros((1, material.shape.dimension), np.float32)
        shard.push(np.zeros(1, np.int32), np.zeros(1, np.int64), gradients, 0.0, 0)
        shard.start_save(ends_interval=True, number=0)
        shard.abandon()


def _batch(material: Material, start: Dlrm) -> None:
    some = slice(0, min(material.plan.batch, len(material.clicks)))
    rows = material.clicks.rows[some]
    model = Dlrm(material.shape, table=start.table[rows.ravel()], dense=start.dense.copy())
    at = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
    _, (d_dense, _) = learned(model, material.clicks, some, at, partial(Workspace, model))
    OPTIMIZERS[material.plan.optimizer](model).update_dense(d_dense, 0.0)


def main() -> None:
    """Read the material, say so, and fork until the input ends."""
    die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies: nobody waits for the children
    material: Material = pickle.load(sys.stdin.buffer)  # the supervisor's, over its own pipe
    start = fresh_model(material)
    warm(material, start)
    gc.collect()
    gc.freeze()
    os.write(TO_SUPERVISOR, b"warm\n")
    own = os.getpid()
    for line in sys.stdin.buffer:
        if os.fork() == 0:
            work(Worker(material, start), line.decode().rstrip("\n"), own)


if __name__ == "__main__":
    main()
