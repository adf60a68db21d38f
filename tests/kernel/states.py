"""The whole state of a run as arrays by name: to compare runs, and to go on from a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from cprsim.kernel.saving import Saver

State = dict[str, np.ndarray]


def of_saver(saver: Saver) -> State:
    """What decides its later saves and failures. Raises RuntimeError while a save is under way."""
    saver._require_idle()
    names = ("table", "row_state", "dense", "dense_state")
    tracker = {} if saver.tracker is None else saver.tracker.state()
    saved = {f"stored/{name}": getattr(saver.stored, name) for name in names}
    return saved | tracker | {"bytes": np.array(saver.bytes_written)}


def joint_state(trainer: Any, saver: Saver) -> State:
    """The arrays of both together."""
    return trainer.arrays() | of_saver(saver)
